"""The shell snippets of the page for analysts, run against the demo. Its Python is run with all documents."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.server.demo import serve_demo
from tests.test_documents import blocks

ROOT = Path(__file__).parents[2]
SHELL = [
    block
    for block in blocks((ROOT / "docs/ask-from-your-tool.md").read_text(encoding="utf-8"))
    if block.kind == "bash run"
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    service = serve_demo(tmp_path_factory.mktemp("demo"))
    yield service
    service.stop()


@pytest.mark.slow
@pytest.mark.parametrize("block", SHELL, ids=lambda block: f"line {block.line}")
def test_a_snippet_runs_as_it_is_written(demo, block, tmp_path):
    if "curl" in block.code and shutil.which("curl") is None:
        pytest.skip("no curl here")
    (tmp_path / "sfumato").write_text(f'#!/bin/sh\nexec {sys.executable} -m sfumato "$@"\n')
    (tmp_path / "sfumato").chmod(0o755)
    settings = {"URL": demo.url, "SFUMATO_TOKEN": demo.tokens["journalist"], "PYTHONPATH": str(ROOT)}
    settings["PATH"] = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code], cwd=tmp_path, env={**os.environ, **settings},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_there_are_snippets_for_the_command_line_and_for_curl():
    assert ["sfumato ask" in block.code or "curl" in block.code for block in SHELL] == [True, True]
