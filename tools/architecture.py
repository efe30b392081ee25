"""Write the generated parts of docs/architecture.md: the picture of the layers, and the list of files.

The picture shows the rooms of the package (the files and folders directly inside it), placed by the layers that
tests/test_layers.py enforces, with an arrow for each room that another imports. The list gives each file the first
sentence of its docstring. Both follow from the source; only the text around them is written by hand.

`python tools/architecture.py` writes them; `python tools/architecture.py --check` says whether they are current.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, PICTURE, LAYER_TEST = Path("docs/architecture.md"), Path("docs/figures/rooms.svg"), Path("tests/test_layers.py")
BEGIN, END = "<!-- files: written by tools/architecture.py -->", "<!-- files: end -->"
DESCRIBED = re.compile(r"^\| `(?P<room>\w+)(?:/|\.py)?` \|", re.M)  # a row of the table of rooms

HIDDEN = {"__init__", "__main__", "dependent", "groups", "plots"}  # public names, aliases: no part of the layering
WIDTH, ROW, BOX, MARGIN = 920, 84, (118, 44), 24  # pixels


@dataclass(frozen=True)
class Room:
    """A file or folder directly inside the package, its layer, and the rooms that it imports."""

    name: str
    layer: float
    imports: set[str]


def layers(root: Path) -> dict[str, float]:
    """The layers that the tests enforce, read from the text of the test: there is no second list."""
    for node in ast.parse((root / LAYER_TEST).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
            numbers: dict[str, float] = ast.literal_eval(node.value)
            return numbers
    raise SystemExit(f"{LAYER_TEST} has no LAYERS")


def rooms(root: Path) -> list[Room]:
    """The rooms that exist, from the lowest layer upwards."""
    package, numbers = root / "sfumato", layers(root)
    names = {path.relative_to(package).parts[0].removesuffix(".py") for path in package.rglob("*.py")} - HIDDEN
    found = [Room(name, numbers[name], names & set(imported_rooms(package, name)) - {name}) for name in names]
    return sorted(found, key=lambda room: (room.layer, room.name))


def imported_rooms(package: Path, name: str) -> Iterator[str]:
    """First parts of all `sfumato.…` names that a room imports, functions and type checking included."""
    folder, file = package / name, package / f"{name}.py"
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [file]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("sfumato."))
            elif isinstance(node, ast.ImportFrom) and node.module == "sfumato":
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sfumato."):
                yield (node.module or "").split(".")[1]


# ---- the picture ----------------------------------------------------------------------------------------------------


def picture(found: list[Room]) -> str:
    """The rooms in rows by layer, surfaces on top.

    Left out are arrows to the lowest row, which every room may use, and arrows that a chain of others implies.
    """
    rows = [[room for room in found if room.layer == layer] for layer in sorted({room.layer for room in found})]
    height = ROW * len(rows) + 2 * MARGIN
    centres = {
        room.name: (column(i, len(row), level), height - MARGIN - ROW * (level + 0.5))
        for level, row in enumerate(rows)
        for i, room in enumerate(row)
    }
    below = {room.name: room.imports - {low.name for low in rows[0]} for room in found if room not in rows[0]}
    lines = [
        arrow(centres[name], centres[target]) for name, targets in below.items() for target in reduced(targets, below)
    ]
    boxes = [box(room.name, *centres[room.name]) for room in found]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
            "<title>Rooms of sfumato by layer; an arrow points to a room that is imported</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6"'
            ' orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            *lines,
            *boxes,
            "</svg>\n",
        ]
    )


def column(i: int, count: int, level: int) -> float:
    """Where the i-th of so many boxes of a row stands. Rows of one box are shifted, so that arrows pass beside them."""
    shift = 0 if count > 1 else 110 * (-1) ** level
    return (2 * i + 1) * WIDTH / (2 * count) + shift


def reduced(targets: set[str], below: dict[str, set[str]]) -> list[str]:
    """The targets that cannot be reached through another target."""

    def reachable(name: str) -> set[str]:
        return set(below[name]).union(*(reachable(target) for target in below[name]))

    return sorted(targets - set().union(*(reachable(target) for target in targets)))


def arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A curve from the lower edge of one box to the upper edge of another."""
    (x1, y1), (x2, y2) = (start[0], start[1] + BOX[1] / 2), (end[0], end[1] - BOX[1] / 2)
    bend = (y2 - y1) / 2
    curve = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    return f'<path d="{curve}" fill="none" stroke="#94a3b8" stroke-width="1.2" marker-end="url(#head)"/>'


def box(name: str, x: float, y: float) -> str:
    wide, high = BOX
    return (
        f'<rect x="{x - wide / 2:.0f}" y="{y - high / 2:.0f}" width="{wide}" height="{high}" rx="6"'
        f' fill="#f1f5f9" stroke="#334155"/>'
        f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" font-size="15" fill="#0f172a">{escape(name)}</text>'
    )


# ---- the list of files ----------------------------------------------------------------------------------------------


def first_sentence(path: Path) -> str:
    """The first sentence of a file's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", paragraph)[0].replace("|", r"\|").replace("<", "&lt;")


def files(root: Path) -> str:
    """Every file of the package, by folder."""
    package = root / "sfumato"
    parts = []
    for folder in [package, *sorted(path for path in package.rglob("*") if path.is_dir())]:
        modules = sorted(folder.glob("*.py"))
        if not modules:
            continue
        place = folder.relative_to(root).as_posix()
        parts.append(f"### `{place}/`\n")
        if (folder / "__init__.py").exists():
            parts.append(f"{first_sentence(folder / '__init__.py')}\n")
        lines = [f"- `{path.name}`: {first_sentence(path)}" for path in modules if path.name != "__init__.py"]
        parts.append("\n".join(lines) + "\n" if lines else "")
    return "\n".join(filter(None, parts))


def page(root: Path) -> str:
    """docs/architecture.md with its list of files made anew."""
    text = (root / PAGE).read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{files(root)}\n{END}{after}"


def described_rooms(root: Path) -> set[str]:
    """The rooms that the table on the page describes by hand."""
    return {match["room"] for match in DESCRIBED.finditer((root / PAGE).read_text(encoding="utf-8"))}


def complaints(root: Path) -> list[str]:
    """All that is not current, each with what to do."""
    existing, known = {room.name for room in rooms(root)}, set(layers(root))
    found = [f"{PAGE} does not describe {name}: add a row for it" for name in sorted(existing - described_rooms(root))]
    found += [f"{PAGE} describes {name}, which has no layer" for name in sorted(described_rooms(root) - known)]
    for path, text in ((PAGE, page(root)), (PICTURE, picture(rooms(root)))):
        if not (root / path).exists() or (root / path).read_text(encoding="utf-8") != text:
            found.append(f"{path} does not match the source; run `make docs-index` and commit the result")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the generated parts of docs/architecture.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something is not current")
    if not parser.parse_args().check:
        (ROOT / PAGE).write_text(page(ROOT), encoding="utf-8")
        (ROOT / PICTURE).write_text(picture(rooms(ROOT)), encoding="utf-8")
    found = complaints(ROOT)
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
