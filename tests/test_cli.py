"""The command line, as one types it."""

import json

import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.cli import main
from sfumato.ledger import Ledger


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *words: runner.invoke(main, [str(word) for word in words])


def test_a_ledger_is_made_charged_verified_and_reported(run, tmp_path):
    place = tmp_path / "clinic.ledger"
    assert run("ledger", "create", place, "--epsilon", 1, "--delta", 1e-6).exit_code == 0
    book = Ledger.open(place)
    book.charge(sf.loss.GaussianLoss(0.02), question="SELECT COUNT(*) FROM visits", who="ann")
    book.close()
    assert "2 lines, intact" in run("ledger", "verify", place).output
    text = run("ledger", "report", place).output
    assert max(map(len, text.splitlines())) <= 80
    for part in ("ε = 1 at δ = 1e-06", "not a guarantee", "ann 1", "it frees nothing"):
        assert part in text
    found = json.loads(run("ledger", "report", place, "--json").output)
    exact = sf.loss.GaussianLoss(0.02).epsilon(1e-6)
    assert found["meter"] == pytest.approx(exact.upper, rel=1e-6)
    assert found["elsewhere"] == pytest.approx(exact.upper, rel=1e-6)
    assert "SELECT COUNT(*)" in run("ledger", "history", place).output
    lines = run("ledger", "history", place, "--json").output.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["opened", "charged"]


def test_errors_are_told_without_a_traceback(run, tmp_path):
    for words in (("verify", tmp_path / "none"), ("create", tmp_path / "x", "--epsilon", -1)):
        found = run("ledger", *words)
        assert found.exit_code == 1
        assert "found:" in found.output
        assert "Traceback" not in found.output


@pytest.mark.parametrize("words", [(), ("ledger",), ("ledger", "report"), ("demo",)])
def test_help_teaches_within_eighty_columns(run, words):
    found = run(*words, "--help")
    assert found.exit_code == 0
    assert max(map(len, found.output.splitlines())) <= 80
