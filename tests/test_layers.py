"""Imports inside the package only go downwards, so that each layer can be read without the ones above it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "sfumato"

# A unit is a file or folder directly inside the package; it may import units with a smaller number.
LAYERS = {
    "errors": 0,
    "checks": 0,
    "progress": 0,
    "rounding": 0,
    "wording": 0,
    "sensitivity": 0,
    "loss": 1,
    "noise": 1,
    "mechanisms": 2,
    "sampling": 2,
    "ledger": 3,
    "sql": 3,
    "engines": 3,
    "aggregates": 3.5,  # one file for one aggregate: above sql and mechanisms, below curator
    "curator": 4,
    "local": 4,
    "client": 4.1,  # a service, asked with the methods of a curator
    "notebook": 4.2,  # the magic of Jupyter, over a curator or a client
    "learn": 3.8,  # below curator, which fits estimators in the database
    "audit": 4.1,  # of all that is below
    "sfumato": 4.5,  # the public names: only the surfaces above may use the package as a user does
    "teach": 4.6,  # classical accountants, figures, attacks, demos: nothing below needs them
    "dependent": 4.7,  # aliases of older names
    "groups": 4.7,
    "plots": 4.7,
    "cli": 5,
    "server": 5,
    "__main__": 6,
}

# Downwards or not, these do not know each other: the curator is where plan, price, noise and data meet.
STRANGERS = {"loss", "noise", "sql", "engines"}

# The few imports within one layer: importer, imported.
NEIGHBOURS = {
    ("checks", "errors"),  # what makes no sense is refused in words
    ("sensitivity", "errors"),
    ("sensitivity", "checks"),
    ("sensitivity", "rounding"),  # norms that follow from others are rounded up
    ("cli", "server"),  # `sfumato serve`
}


def imported(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of all that a file imports, `from a import b` giving a.b.

    Imports inside functions and for type checking count: they, too, are knowledge of the other module.
    """
    here = path.relative_to(package.parent).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            origin = ".".join([*base, *filter(None, [node.module])])
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def unit_of(name: str, package: Path) -> str | None:
    """The unit a dotted name belongs to: the package's own name for its public face, None outside the package."""
    first, *rest = name.split(".")
    if first != package.name:
        return None
    is_unit = rest and ((package / rest[0]).is_dir() or (package / f"{rest[0]}.py").exists())
    return rest[0] if is_unit else first


def refusal(importer: str, target: str) -> str | None:
    """Why one unit may not import another, or None if it may."""
    if importer == target or (importer, target) in NEIGHBOURS:
        return None
    if {importer, target} <= STRANGERS:
        return f"{importer} and {target} do not know each other"
    if LAYERS[importer] <= LAYERS[target]:
        return f"{importer} (layer {LAYERS[importer]}) may not import {target} (layer {LAYERS[target]})"
    return None


def complaints(package: Path) -> list[str]:
    """All that is wrong with the imports of a package, each with file and line."""
    found = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        importer = inside.parts[0].removesuffix(".py")
        if importer not in LAYERS and importer != "__init__":
            found.append(f"{inside}: {importer} has no layer; give it one in tests/test_layers.py")
            continue
        for line, name in imported(path, package):
            if f"{name}.".startswith("scipy.stats."):
                found.append(f"{inside}:{line}: scipy.stats takes 0.7 s to import; scipy.special has what we need")
            target = unit_of(name, package)
            if importer == "__init__" or target is None or target not in LAYERS:
                continue
            if reason := refusal(importer, target):
                found.append(f"{inside}:{line}: {reason}")
    return found


def test_imports_only_go_downwards():
    assert not complaints(PACKAGE)


def made_up(folder: Path, file: str, text: str) -> Path:
    """A package with one interesting file, and an empty one in every unit that it could import."""
    package = folder / "sfumato"
    shipped = ("errors.py", "loss/gaussian.py", "noise/exact.py", "sql/plan.py", "curator.py", "plots.py")
    for name in (*shipped, "teach/figures.py", file):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    (package / file).write_text(text)
    return package


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("loss/a.py", "from sfumato.curator import Curator", "loss (layer 1) may not import curator (layer 4)"),
        ("loss/a.py", "def f():\n    from ..curator import Curator", "loss (layer 1) may not import curator"),
        ("loss/__init__.py", "from .. import plots", "loss (layer 1) may not import plots"),
        ("loss/a.py", "from sfumato import Gaussian", "loss (layer 1) may not import sfumato (layer 4.5)"),
        ("audit/a.py", "import sfumato as sf", "audit (layer 4.1) may not import sfumato (layer 4.5)"),
        ("audit/a.py", "import sfumato.teach.figures", "audit (layer 4.1) may not import teach (layer 4.6)"),
        ("noise/a.py", "from sfumato.loss.kinds.gaussian import GaussianLoss", "noise and loss do not know each other"),
        ("sql/a.py", "from ..loss import gaussian", "sql and loss do not know each other"),
        ("errors.py", "from .sensitivity import Sensitivity", "errors (layer 0) may not import sfumato (layer 4.5)"),
        ("novelty.py", "", "novelty has no layer"),
        ("loss/a.py", "import scipy.stats as s", "scipy.stats takes"),
        ("loss/a.py", "from scipy import stats", "scipy.stats takes"),
        ("__init__.py", "from scipy.stats import norm", "scipy.stats takes"),
    ],
)
def test_a_forbidden_import_is_reported(tmp_path, file, text, complaint):
    (found,) = complaints(made_up(tmp_path, file, text))
    assert found.startswith(file)
    assert complaint in found


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("loss/a.py", "from ..errors import Refused\nfrom .gaussian import GaussianLoss\nfrom . import gaussian"),
        ("mechanisms/a.py", "from sfumato.loss import gaussian\nimport sfumato.noise.exact\nimport scipy.special"),
        ("curator.py", "from . import loss, noise, sql, errors"),
        ("sensitivity.py", "from .errors import Refused"),
        ("cli/a.py", "import sfumato as sf\nfrom sfumato import plots, Gaussian"),
        ("__init__.py", "from .curator import Curator"),
    ],
)
def test_an_import_downwards_is_fine(tmp_path, file, text):
    assert not complaints(made_up(tmp_path, file, text))


# Packages whose modules still import each other in a circle; a package that is put in order leaves this set for good.
KNOTTED = {"curator", "mechanisms", "sampling"}


def module_name(path: Path, package: Path) -> str:
    """sfumato.loss.base for …/sfumato/loss/base.py, sfumato.loss for its __init__.py."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_cycles(package: Path, unit: str) -> list[list[str]]:
    """Groups of modules of one unit that import each other in a circle, each sorted.

    A module is in a circle if it can reach itself. Imports inside functions and for type checking count.
    """
    paths = {module_name(path, package): path for path in package.rglob("*.py")}
    mine = {name: path for name, path in paths.items() if f"{name}.".startswith(f"{package.name}.{unit}.")}
    targets = {
        name: {t if t in paths else t.rpartition(".")[0] for _, t in imported(path, package)} & mine.keys()
        for name, path in mine.items()
    }
    reach = {name: reachable(name, targets) for name in mine}
    groups = {tuple(sorted(b for b in reach[a] if a in reach[b])) for a in mine if a in reach[a]}
    return [list(group) for group in sorted(groups)]


def reachable(start: str, targets: dict[str, set[str]]) -> set[str]:
    """All modules that a module imports, directly or through others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = targets[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return found


@pytest.mark.parametrize("unit", sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} - KNOTTED))
def test_no_modules_of_a_package_import_each_other_in_a_circle(unit):
    assert not import_cycles(PACKAGE, unit)


@pytest.mark.parametrize(
    "text",
    [
        "from sfumato.loss.gaussian import GaussianLoss",
        "def f():\n    from sfumato.loss import gaussian",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .gaussian import GaussianLoss",
    ],
)
def test_a_circle_of_imports_is_found_wherever_they_stand(tmp_path, text):
    package = made_up(tmp_path, "loss/a.py", text)
    assert import_cycles(package, "loss") == []
    (package / "loss/gaussian.py").write_text("import sfumato.loss.b")
    (package / "loss/b.py").write_text("from .a import f")
    assert import_cycles(package, "loss") == [["sfumato.loss.a", "sfumato.loss.b", "sfumato.loss.gaussian"]]
