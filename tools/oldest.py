"""The oldest versions that pyproject.toml allows, as constraints for pip: what `make test-oldest` installs.

python tools/oldest.py                 all of them, one line each
python tools/oldest.py duckdb          of these alone
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
LEAST = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?:>=|==)\s*(?P<version>[0-9][0-9A-Za-z.]*)")


def requirements(text: str) -> list[str]:
    """What the package and its extras need, without the package itself."""
    project = tomllib.loads(text)["project"]
    listed = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    return [one for one in listed if not one.startswith(f"{project['name']}[")]


def oldest(requirement: str) -> tuple[str, str]:
    """(name, version): the version after >=, or the only one, after ==; every requirement begins with one of them."""
    found = LEAST.match(requirement)
    if found is None:
        raise SystemExit(
            f"a requirement without an oldest version.\n  found:  {requirement}\n  do:     write name>=1.2,<2"
        )
    return found["name"].lower(), found["version"]


def constraints(text: str, names: list[str]) -> list[str]:
    """name==version of these requirements, or of all."""
    pairs = [oldest(one) for one in requirements(text)]
    if unknown := sorted(set(names) - {name for name, _ in pairs}):
        raise SystemExit(f"not in pyproject.toml: {', '.join(unknown)}")
    return [f"{name}=={version}" for name, version in pairs if not names or name in names]


if __name__ == "__main__":
    print("\n".join(constraints(PROJECT.read_text("utf-8"), sys.argv[1:])))
