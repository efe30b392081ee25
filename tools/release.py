"""`make dist`: a wheel and a source distribution, checked, tried in empty environments, with a list of their parts.

1. version: the package, the citation file and the changelog name the same one;
2. build, twine check, and what the archives hold;
3. the wheel and the source distribution, each installed into an empty environment and tried;
4. the wheel with the oldest and with the newest versions of its dependencies, tried;
5. dist/sbom.json: the newest of these environments as CycloneDX.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

import sfumato
from tools.oldest import constraints

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SMOKE = """
from pathlib import Path
import sfumato as sf
from sfumato.teach.demo import clinic
clinic.build(Path("clinic.duckdb"))
Path("clinic.toml").write_text(clinic.POLICY)
curator = sf.Curator.open("clinic.duckdb", policy="clinic.toml")
answer = curator.ask("SELECT ward, COUNT(*) AS n, AVG(stay) AS days FROM visits GROUP BY ward", epsilon=0.5)
assert len(answer.rows) == 6 and answer.charged, answer
assert 4.886 < float((100 * sf.loss.GaussianLoss(0.1)).epsilon(1e-6)) < 4.887
noisy = sf.Gaussian(sigma=50).release(1000)
print(f"sfumato {sf.__version__}: asked, charged, composed, {noisy:.0f}")
"""


class Unready(Exception):
    """The repository does not hold a release that fits together."""


def require_one_version() -> str:
    """The version that everything states."""
    version = sfumato.__version__
    stated = {
        "pyproject.toml": rf'^version = "{re.escape(version)}"$',
        "CITATION.cff": rf"^version: {re.escape(version)}$",
        "CHANGELOG.md": rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)",
    }
    for name, pattern in stated.items():
        if not re.search(pattern, (ROOT / name).read_text("utf-8"), re.M):
            raise Unready(f"{name} does not state version {version} as {pattern}")
    return version


def run(*command: str | Path, folder: Path = ROOT) -> None:
    print("·", " ".join(str(part) for part in command if "\n" not in str(part)), flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=folder)


def build() -> tuple[Path, Path]:
    """(wheel, source distribution)"""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source)
    return wheel, source


def require_contents(wheel: Path, source: Path) -> None:
    """The wheel holds the package and its licence alone; the source distribution tests and documents, too."""
    inside = zipfile.ZipFile(wheel).namelist()
    odd = [name for name in inside if not re.match(r"sfumato(/|-[\d.]+\.dist-info/)", name)]
    needed = ("sfumato/py.typed", "sfumato/server/console/static", "sfumato/local/survey/client/pets.html", "LICENSE")
    missing = [name for name in needed if not any(name in one for one in inside)]
    with tarfile.open(source) as archive:
        names = archive.getnames()
    missing += [
        name for name in ("/docs/index.md", "/tests/conftest.py", "/LICENSE") if not any(name in n for n in names)
    ]
    if odd or missing:
        raise Unready(f"the archives hold {odd[:5]} and miss {missing}")


def environment(folder: Path, *options: str | Path) -> Path:
    """The Python of an empty environment into which something was installed."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *options)
    return python


def smoke(python: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-I", "-c", SMOKE, folder=Path(folder))
        run(python.parent / "sfumato", "--version", folder=Path(folder))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one environment, with the newest versions")
    quick = parser.parse_args().quick
    version = require_one_version()
    wheel, source = build()
    require_contents(wheel, source)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        newest = environment(folder / "newest", wheel)
        smoke(newest)
        if not quick:
            smoke(environment(folder / "source", source))
            oldest = folder / "oldest.txt"
            oldest.write_text("\n".join(constraints((ROOT / "pyproject.toml").read_text("utf-8"), [])), "utf-8")
            smoke(environment(folder / "oldest", "-c", oldest, wheel))
        run(sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml",
            "--output-reproducible", "--of", "JSON", "-o", DIST / "sbom.json", newest)  # fmt: skip
    print(f"dist/: sfumato {version}, {wheel.name}, {source.name}, sbom.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
