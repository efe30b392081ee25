"""The command line, as one types it."""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.cli import ask as asking
from sfumato.cli import main
from sfumato.engines.duckdb import DuckDB
from sfumato.ledger import Ledger
from tests.curator.clinic import POLICY, built

ROOT = Path(__file__).parents[1]


@pytest.fixture
def run(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # output goes to a file here, whatever the terminal of the tests
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


# ---- asking ---------------------------------------------------------------------------------------------------------

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture
def clinic(tmp_path):
    place = built(tmp_path / "clinic.duckdb", patients=200)
    (tmp_path / "clinic.toml").write_text(POLICY)
    return place


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


def test_the_history_shows_what_was_asked_as_it_was_asked(run, clinic):
    asked = "select  count(*) as everybody\nfrom visits where 1 = 1"
    assert run("ask", clinic, asked, "--epsilon", 1).exit_code == 0
    charged, answered = run("ledger", "history", f"{clinic}.ledger").output.splitlines()[-2:]
    assert charged.endswith("select count(*) as everybody from visits where 1 = 1")
    number = charged.split()[0]
    assert answered.endswith(f"charge {number}")
    assert run("ledger", "history", clinic).output.splitlines()[-2:] == [charged, answered]  # by the data's name


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


@pytest.mark.parametrize("words", [("verify",), ("report",), ("blocked",), ("history",)])
def test_every_command_on_a_ledger_speaks_json(run, clinic, words):
    assert run("ask", clinic, COUNT, "--epsilon", 1).exit_code == 0
    lines = run("ledger", *words, f"{clinic}.ledger", "--json").output
    found = [json.loads(lines)] if words[0] in ("verify", "report") else list(map(json.loads, lines.splitlines()))
    assert all(isinstance(one, dict) for one in found)


# ---- policies -------------------------------------------------------------------------------------------------------


def test_a_policy_is_drafted_and_checked(run, clinic, tmp_path):
    draft = run("policy", "init", clinic)
    assert draft.exit_code == 0
    assert 'unit = "patient_id"' in draft.output
    place = tmp_path / "drafted.toml"
    assert "wait for you" in run("policy", "init", clinic, "-o", place).output
    assert place.read_text() == draft.output
    assert run("policy", "init", clinic, "-o", place).exit_code == 7  # never written over
    assert run("policy", "check", clinic, "--policy", place).exit_code == 7  # whose are the wards?
    told = run("policy", "check", clinic)
    assert told.exit_code == 0
    assert "a person is a patient_id" in told.output
    assert json.loads(run("policy", "check", clinic, "--json").output)["wrong"] == []


def test_a_draft_can_be_asked_when_its_owner_has_checked_it(run, clinic, tmp_path):
    place = tmp_path / "drafted.toml"
    run("policy", "init", clinic, "-o", place)
    text = place.read_text().replace("draft = true", "draft = false")
    place.write_text(text.replace("# public = true", "public = true").replace("# most", "#"))
    told = run("policy", "check", clinic, "--policy", place)
    assert told.exit_code == 0
    examples = json.loads(run("policy", "check", clinic, "--policy", place, "--json").output)["examples"]
    assert len(examples) == 3
    for sql in examples:
        assert sql in told.output
        assert (
            run("preview", clinic, sql, "--policy", place, "--epsilon", 0.1, "--ledger", tmp_path / "l").exit_code == 0
        )


def test_an_upgrade_is_shown_and_then_written(run, clinic, tmp_path):
    place = tmp_path / "clinic.toml"
    before = place.read_text()
    shown = run("policy", "upgrade", place)
    assert shown.exit_code == 0
    assert "-groups = 2" in shown.output and "+# groups = 2" in shown.output
    assert place.read_text() == before
    assert "written" in run("policy", "upgrade", place, "--write").output
    assert place.read_text() == before.replace("groups = 2", "# groups = 2").replace("rows = 3", "# rows = 3")
    assert "nothing to change" in run("policy", "upgrade", place, "--write").output
    assert run("policy", "upgrade", tmp_path / "gone.toml").exit_code == 7


def test_suggested_bounds_are_written_with_their_price(run, clinic, tmp_path):
    place = tmp_path / "clinic.toml"
    before = place.read_text()
    shown = run("policy", "suggest", clinic, "visits.stay", "--epsilon", 4)
    assert shown.exit_code == 0
    assert "+stay = {step = 0.125, low = " in shown.output
    assert place.read_text() == before
    assert run("policy", "suggest", clinic, "visits.stay", "--epsilon", 4, "--write").exit_code == 0
    assert "# suggested for ε = 4: about " in place.read_text()
    assert run("policy", "suggest", clinic, "visits.ward", "--epsilon", 4).exit_code == 3


def test_a_draft_is_made_of_metadata_alone(run, tmp_path, monkeypatch):
    """Of a database only the catalogue is asked; other values give the same draft."""
    asked = []

    class Spy:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, sql, *values):
            asked.append(sql)
            return self.connection.execute(sql, *values)

        def close(self):
            self.connection.close()

    connect = duckdb.connect
    few, many = (built(tmp_path / f"{n}" / "clinic.duckdb", patients=n) for n in made(tmp_path, 1, 300))
    monkeypatch.setattr(duckdb, "connect", lambda *words, **options: Spy(connect(*words, **options)))
    assert run("policy", "init", few).output == run("policy", "init", many).output
    assert len(asked) == 2
    assert all("FROM duckdb_columns()" in sql for sql in asked)


def made(folder, *names):
    for name in names:
        (folder / f"{name}").mkdir()
        yield name


def test_a_draft_reads_the_footer_of_parquet_and_the_header_of_csv(run, tmp_path):
    """Pages of values overwritten, rows broken: the draft does not notice."""
    table = tmp_path / "visits.parquet"
    duckdb.sql("SELECT i AS patient_id, 'a secret' || i AS word FROM range(5000) t(i)").write_parquet(str(table))
    bytes_ = bytearray(table.read_bytes())
    footer = int.from_bytes(bytes_[-8:-4], "little") + 8
    bytes_[4:-footer] = bytes(len(bytes_) - footer - 4)
    table.write_bytes(bytes_)
    with pytest.raises(duckdb.Error):
        duckdb.sql(f"CREATE OR REPLACE TEMP TABLE t AS SELECT word FROM '{table}'").fetchall()
    draft = run("policy", "init", table)
    assert draft.exit_code == 0
    assert 'word = {type = "text"}' in draft.output
    (tmp_path / "visits.csv").write_bytes(b"patient_id,word\n1,2,3,4\n\xff\xfe\n")
    assert 'word = {type = "text"}' in run("policy", "init", tmp_path / "visits.csv").output


@pytest.mark.parametrize("odd", [b"3", b"3,c,extra", b"3,\xff\xfe", b"", b"3,'"])
def test_an_odd_line_of_a_csv_file_neither_raises_nor_changes_the_others(tmp_path, odd):
    (tmp_path / "t.csv").write_bytes(b"id,code\n1,a\n" + odd + b"\n2,b\n")
    rows = DuckDB(tmp_path / "t.csv").run("SELECT id, code FROM t WHERE id IN ('1', '2') ORDER BY id")
    assert rows == [("1", "a"), ("2", "b")]


def test_one_value_of_a_csv_file_does_not_change_the_others(tmp_path):
    """Were types sniffed, one patient's word would turn everybody's 007 into 7, or back."""
    found = []
    for last in ("8", "eight"):
        (tmp_path / "t.csv").write_text(f"id,code\n1,007\n2,007\n3,{last}\n")
        engine = DuckDB(tmp_path / "t.csv")
        found.append(engine.run("SELECT code FROM t WHERE id <> '3'"))
    assert found == [[("007",), ("007",)]] * 2


@pytest.mark.parametrize("name", ["gone.duckdb", "empty"])
def test_data_that_are_not_there_are_told(run, tmp_path, name):
    (tmp_path / "empty").mkdir()
    found = run("policy", "init", tmp_path / name)
    assert found.exit_code == 7
    assert "found:" in found.output


def test_a_new_version_of_the_data_is_an_act_of_the_owner(run, clinic):
    words = (COUNT, "--epsilon", 0.5, "--json")
    assert json.loads(run("ask", clinic, *words).output)["charged"]
    assert not json.loads(run("ask", clinic, *words).output)["charged"]
    assert run("data", "version", clinic).output == "version 1\n"
    assert run("data", "version", clinic, "--raise", "May").exit_code == 1  # nobody says yes
    assert run("data", "version", clinic, "--raise", " ", "--yes").exit_code == 1
    assert not json.loads(run("ask", clinic, *words).output)["charged"]
    told = json.loads(run("data", "version", clinic, "--raise", "visits of May", "--yes", "--json").output)
    assert told["version"] == 2
    assert [(one["version"], one["why"]) for one in told["changes"]] == [(2, "visits of May")]
    spent = json.loads(run("budget", clinic, "--json").output)["left"]
    assert json.loads(run("ask", clinic, *words).output)["charged"]  # from the same budget
    assert json.loads(run("budget", clinic, "--json").output)["left"] < spent
    assert "visits of May" in run("data", "version", clinic).output


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
