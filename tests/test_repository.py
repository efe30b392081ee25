"""The repository is the same everywhere, and importing the package is cheap."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import sfumato

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


# ---- what others who join find ---------------------------------------------------------------------------------------

FOR_NEWCOMERS = [
    "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md",
    ".pre-commit-config.yaml", ".github/workflows/test.yml", ".github/ISSUE_TEMPLATE/bug.yml",
    ".github/ISSUE_TEMPLATE/feature.yml", "docs/architecture.md",
]  # fmt: skip
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"
MAKE = re.compile(r"\bmake (?:[A-Z]+=\S* )*([a-z-]+)")


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("name", FOR_NEWCOMERS)
def test_what_a_newcomer_looks_for_is_there(name):
    assert (ROOT / name).read_text(encoding="utf-8").strip()


def test_the_workflow_runs_make_targets_that_exist_and_all_of_the_tests():
    runs = re.findall(r"^\s*- run: (.*)$", WORKFLOW.read_text(encoding="utf-8"), re.M)
    called = {match[1] for line in runs for match in MAKE.finditer(line)}
    assert called == {"test", "test-oldest"} and called <= targets()


def test_the_workflow_tests_every_python_that_is_claimed_and_two_systems():
    text = WORKFLOW.read_text(encoding="utf-8")
    claimed = [c.split(" :: ")[-1] for c in project()["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    assert json.loads(re.search(r"python: (\[.*\])", text)[1]) == claimed
    assert "ubuntu-latest, macos-latest" in text
    assert f">={claimed[0]}" == project()["requires-python"]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"])
def test_a_make_target_that_a_page_names_exists(page):
    named = set(re.findall(r"`make ([a-z-]+)|^make ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8"), re.M))
    assert {a or b for a, b in named} <= targets()


def test_hooks_run_the_tools_of_the_environment_and_download_nothing():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"- repo: (.*)", text) == ["local"]
    assert all(entry.startswith(".venv/bin/") for entry in re.findall(r"entry: (.*)", text))


def test_one_version_is_named_everywhere():
    version = project()["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released, date = re.search(r"^## (\d\S*) \((\d{4}-\d{2}-\d{2})\)$", changelog, re.M).groups()
    assert version == sfumato.__version__ == released
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {version}\n" in citation and f'date-released: "{date}"\n' in citation
    assert f"| {'.'.join(version.split('.')[:2])} | yes |" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
