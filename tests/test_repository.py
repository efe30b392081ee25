"""The repository is the same everywhere, and importing the package is cheap."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Written so that this file does not contain what it forbids.
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:(?:work|root)/|(?:tmp)/[a-z])", re.I)
REGISTRY = re.compile(r"(?:py)pi\.org|(?:python)hosted\.org|(?:ana)conda\.org|(?:npm)js\.(?:org|com)", re.I)


def ours() -> list[Path]:
    """All files that are in git, or would be after `git add .`: they are judged before they are committed."""
    git = shutil.which("git")
    command = [git or "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=False) if git else None
    if listing is None or listing.returncode:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in listing.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def mentions(pattern: re.Pattern[str]) -> list[str]:
    """File, line and text of all that matches; bytes that are no text are passed over."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in ours()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if (match := pattern.search(line))
    ]


def test_no_file_knows_the_machine_it_was_written_on():
    assert not mentions(MACHINE_PATH)


def test_no_file_names_a_package_registry():
    assert not mentions(REGISTRY)


@pytest.mark.parametrize("folder", ["work", "root", "tmp"])
def test_a_machine_path_is_recognised_and_a_link_is_not(folder):
    assert MACHINE_PATH.search(f"see /{folder}/somewhere/a.py")
    assert MACHINE_PATH.search(f"'file:///{folder}/somewhere'")
    assert not MACHINE_PATH.search(f"https://example.org/{folder}/somewhere and docs/{folder}/somewhere")


@pytest.mark.parametrize("name", ["py" + "pi.org", "files.python" + "hosted.org", "conda.ana" + "conda.org"])
def test_a_registry_is_recognised(name):
    assert REGISTRY.search(f"https://{name}/simple")


def test_importing_sfumato_imports_neither_scipy_nor_matplotlib():
    program = "import sys, sfumato; print(*({'scipy', 'matplotlib'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not answer.stdout.split()
