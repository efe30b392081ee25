"""Help, errors and start of the command line."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_errors_are_told_without_a_traceback(run, tmp_path):
    for words, code in ((("verify", tmp_path / "none"), 6), (("create", tmp_path / "x", "--epsilon", -1), 1)):
        found = run("ledger", *words)
        assert found.exit_code == code
        assert "found:" in found.output
        assert "Traceback" not in found.output


COMMANDS = [
    (), ("ask",), ("preview",), ("budget",), ("demo",), ("policy",), ("policy", "init"), ("policy", "check"),
    ("policy", "suggest"), ("policy", "upgrade"),
    ("ledger",), ("ledger", "create"), ("ledger", "verify"), ("ledger", "report"), ("ledger", "history"),
    ("ledger", "blocked"), ("ledger", "unblock"), ("ledger", "renew"), ("data",), ("data", "version"),
    ("attack",), ("attack", "differencing"), ("attack", "averaging"),
    ("attack", "reconstruction"), ("attack", "membership"), ("attack", "linkage"), ("attack", "refusals"), ("audit",),
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_teaches_within_eighty_columns(run, words):
    found = run(*words, "--help")
    assert found.exit_code == 0
    assert max(map(len, found.output.splitlines())) <= 80


def test_nothing_heavy_is_imported_to_start():
    program = "import sys, sfumato.cli; print(*({'numpy', 'scipy', 'duckdb', 'sqlglot', 'flint'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not answer.stdout.split()
