"""`sfumato ledger`: create, verify, report, history, renew, blocked, unblock."""

import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.ledger import Ledger
from tests.cli.conftest import COUNT


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


def test_a_budget_is_renewed_by_an_act_that_says_what_it_adds_up_to(run, tmp_path):
    place = tmp_path / "clinic.ledger"
    run("ledger", "create", place, "--epsilon", 1, "--delta", 1e-6)
    words = ("ledger", "renew", place, "--epsilon", 1, "--why", "a new year")
    asked = run(*words)  # nobody says yes
    assert asked.exit_code == 1
    assert "cannot be undone" in asked.output
    assert Ledger.open(place).verify().seq == 1
    told = json.loads(run(*words, "--yes", "--json").output)
    assert (told["epsilon"], told["delta"], told["union_delta"]) == (1.0, 1e-6, 2e-6)
    assert 1.0 < told["union"] < 2.0
    again = run(*words, "--yes").output
    assert f"until now ε = {told['union']:.4g} at δ = 2e-06" in again
    text = run("ledger", "report", place).output
    assert told["union"] < json.loads(run("ledger", "report", place, "--json").output)["union"] < 3.0
    assert "at δ = 3e-06" in text
    assert [e.content["kind"] for e in Ledger.open(place).history()] == ["opened", "renewed", "renewed"]
    assert run("ledger", "renew", place, "--epsilon", -1, "--why", "x", "--yes").exit_code == 1
    assert run("ledger", "renew", place, "--epsilon", 1, "--why", "", "--yes").exit_code == 1
    assert Ledger.open(place).verify().seq == 3


def test_periods_of_pure_budgets_add_up(run, tmp_path):
    place = tmp_path / "pure.ledger"
    run("ledger", "create", place, "--epsilon", 1, "--kind", "pure")
    told = json.loads(run("ledger", "renew", place, "--epsilon", 0.5, "--why", "more", "--yes", "--json").output)
    assert (told["union"], told["union_delta"]) == (1.5, 0)


def test_the_history_shows_what_was_asked_as_it_was_asked(run, clinic):
    asked = "select  count(*) as everybody\nfrom visits where 1 = 1"
    assert run("ask", clinic, asked, "--epsilon", 1).exit_code == 0
    charged, answered = run("ledger", "history", f"{clinic}.ledger").output.splitlines()[-2:]
    assert charged.endswith("select count(*) as everybody from visits where 1 = 1")
    number = charged.split()[0]
    assert answered.endswith(f"charge {number}")
    assert run("ledger", "history", clinic).output.splitlines()[-2:] == [charged, answered]  # by the data's name


def test_a_blocked_question_is_listed_and_unblocked(run, clinic, monkeypatch):
    run_well = DuckDB.run

    def fails(self, sql, *name):
        if sql.startswith("DESCRIBE") or "duckdb_columns()" in sql:  # what is looked at before the charge
            return run_well(self, sql)
        raise RuntimeError("a secret")

    book = f"{clinic}.ledger"
    with monkeypatch.context() as broken:
        broken.setattr(DuckDB, "run", fails)
        broken.setattr(DuckDB, "keep", fails)
        failed = run("ask", clinic, COUNT, "--epsilon", 1, "--key", "mine")
    assert failed.exit_code == 5
    assert "secret" not in failed.output
    assert "a secret" in Path(f"{book}.log").read_text()  # for the operator only
    refused = run("ask", clinic, COUNT, "--epsilon", 1, "--as", "ann")
    assert refused.exit_code == 8
    assert "secret" not in refused.output
    assert "charge      2" in run("ledger", "blocked", book).output
    (line,) = run("ledger", "blocked", book, "--json").output.splitlines()
    charge = json.loads(line)["charge"]
    assert run("ledger", "unblock", book, charge).exit_code == 2  # without a reason
    assert run("ledger", "unblock", book, charge, "--why", "a new disk").exit_code == 0
    assert "no question is blocked" in run("ledger", "blocked", book).output
    assert "a new disk" in run("ledger", "history", book).output
    assert run("ledger", "unblock", book, charge, "--why", "again").exit_code == 1
    assert run("ask", clinic, COUNT, "--epsilon", 1, "--key", "mine").exit_code == 0
    assert len(Ledger.open(book).verify().costs) == 1


@pytest.mark.parametrize("words", [("report",), ("blocked",), ("create", "--epsilon", "1"), ("backup", "x")])
def test_the_address_of_a_service_is_not_taken_for_a_file(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    command, *more = words
    found = run("ledger", command, "https://stats.example/clinic", *more)
    assert found.exit_code == 2 and "of a service ask" in found.output and not list(tmp_path.iterdir())
    assert "not by a service" in run("register", "https://stats.example/clinic", "--epsilon", "1").output


@pytest.mark.parametrize("words", [("verify",), ("report",), ("blocked",), ("history",)])
def test_every_command_on_a_ledger_speaks_json(run, clinic, words):
    assert run("ask", clinic, COUNT, "--epsilon", 1).exit_code == 0
    lines = run("ledger", *words, f"{clinic}.ledger", "--json").output
    found = [json.loads(lines)] if words[0] in ("verify", "report") else list(map(json.loads, lines.splitlines()))
    assert all(isinstance(one, dict) for one in found)
