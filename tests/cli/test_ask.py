"""`sfumato ask`, `preview` and `budget`, as one types them."""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from sfumato.cli import ask as asking
from sfumato.cli import main
from sfumato.ledger import Ledger
from tests.cli.conftest import COUNT

ROOT = Path(__file__).parents[2]


def test_a_question_is_previewed_asked_and_accounted(run, clinic):
    assert "costs ε = 0.5" in run("preview", clinic, COUNT, "--epsilon", 0.5).output
    told = run("ask", clinic, COUNT, "--epsilon", 0.5, "--as", "ann")
    assert told.exit_code == 0
    assert "north" in told.output
    again = json.loads(run("ask", clinic, COUNT.lower(), "--epsilon", 0.5, "--json").output)
    assert not again["charged"]
    assert [row[0] for row in again["rows"]] == ["north", "south", "west"]
    seen = json.loads(run("preview", clinic, COUNT, "--error", 200, "--json").output)
    assert seen["errors"]["n"] <= 200
    standing = json.loads(run("budget", clinic, "--json").output)
    assert 0 < standing["spent"] < 0.5
    assert "promised:  ε = 8" in run("budget", clinic).output
    assert "ann 1" in run("ledger", "report", f"{clinic}.ledger").output


def test_a_question_comes_from_the_standard_input(clinic):
    found = CliRunner().invoke(main, ["ask", str(clinic), "-", "--epsilon", "1"], input="SELECT COUNT(*) FROM visits")
    assert found.output.startswith("count")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["SELECT * FROM visits", "--epsilon", 1], 3, "would show rows"),
        ([COUNT, "--epsilon", 1000], 4, "budget does not cover"),
        ([COUNT], 1, "how much privacy or how much accuracy"),
        ([COUNT, "--epsilon", 1, "--policy", "gone.toml"], 7, "gone.toml"),
        ([COUNT, "--epsilon", "much"], 2, "not a valid float"),
    ],
)
def test_a_refusal_has_its_exit_code_and_costs_nothing(run, clinic, words, code, told):
    found = run("ask", clinic, *words)
    assert found.exit_code == code
    assert told in found.output
    assert "Traceback" not in found.output
    book = clinic.with_name("clinic.duckdb.ledger")
    assert not book.exists() or Ledger.open(book).verify().spent.gauss == 0


def test_a_budget_that_nobody_has_used_is_told(run, clinic):
    found = run("budget", clinic)
    assert found.exit_code == 6
    assert "nothing has been asked yet" in found.output


@pytest.mark.parametrize(("point", "charged"), [("ask: priced", False), ("data: before", True), ("noise: drawn", True)])
def test_ctrl_c_says_what_was_charged_and_the_same_key_is_not_charged_again(run, clinic, monkeypatch, point, charged):
    def probe(here):
        if here == point:
            raise KeyboardInterrupt

    opened = asking.open_curator
    monkeypatch.setattr(asking, "open_curator", lambda *words: replace(opened(*words), probe=probe))
    found = run("ask", clinic, COUNT, "--epsilon", 1, "--key", "mine")
    assert found.exit_code == 130
    assert ("stays charged" in found.output) == charged
    assert ("Nothing was charged" in found.output) != charged
    monkeypatch.undo()
    spent = Ledger.open(f"{clinic}.ledger").verify().spent
    assert (spent.gauss > 0) == charged
    assert run("ask", clinic, COUNT, "--epsilon", 1, "--key", "mine").exit_code == 0
    if charged:
        assert Ledger.open(f"{clinic}.ledger").verify().spent == spent


WIDE = "SELECT ward, COUNT(*) AS visits_of_all_patients, AVG(stay) AS days_in_hospital, SUM(cost) AS cost FROM visits "


@pytest.mark.parametrize(("screen", "sql"), [(80, COUNT), (60, WIDE + "GROUP BY ward")])
def test_on_a_terminal_names_stand_out_and_nothing_is_wider_than_the_screen(clinic, screen, sql):
    """Asked through a real terminal, which has so many columns."""
    reading, writing = os.openpty()
    words = [sys.executable, "-m", "sfumato", "ask", clinic, sql, "--epsilon", "1"]
    size = {**os.environ, "COLUMNS": str(screen), "PYTHONPATH": str(ROOT)}
    size.pop("NO_COLOR", None)
    child = subprocess.Popen(words, stdout=writing, stderr=subprocess.PIPE, env=size, cwd=ROOT)
    os.close(writing)
    told = b""
    with suppress(OSError):  # Linux says so when the other end is closed
        while part := os.read(reading, 4096):
            told += part
    os.close(reading)
    assert child.communicate()[1] == b""
    assert child.returncode == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", told.decode()).splitlines()
    assert max(map(len, plain)) <= screen
    assert any("north" in line for line in plain)
    assert (b"\x1b[1m" in told) == (screen == 80)


@pytest.mark.parametrize("words", [("ask",), ("preview",)])
def test_columns_are_respected_where_there_is_no_terminal(run, clinic, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "44")
    lines = run(*words, clinic, COUNT, "--epsilon", 1).output.splitlines()
    lines += run("budget", clinic).output.splitlines()
    assert lines and max(map(len, lines)) <= 44


def test_one_form_of_output_is_chosen(run, clinic):
    found = run("ask", clinic, COUNT, "--epsilon", 1, "--csv", "--json")
    assert found.exit_code == 2 and "--arrow" in found.output


def test_a_misspelt_name_is_refused_and_told_who_may(run, clinic):
    place = clinic.with_suffix(".toml")
    place.write_text(place.read_text() + "[analysts]\nann = 0.5\nbob = 0\n")
    found = run("ask", clinic, COUNT, "--epsilon", 0.5, "--as", "typo")
    assert found.exit_code == 3
    assert "'ann', 'bob', 'owner' may" in found.output
    found = run("ask", clinic, COUNT, "--epsilon", 0.5, "--as", "bob")
    assert found.exit_code == 4
    assert "nothing is left of ε" in found.output
    assert run("ask", clinic, COUNT, "--epsilon", 0.5, "--as", "ann").exit_code == 0
