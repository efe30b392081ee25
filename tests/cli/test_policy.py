"""`sfumato policy`: init, check, suggest, upgrade."""

import json

import duckdb
import pytest

from tests.curator.clinic import built


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


@pytest.mark.parametrize("name", ["gone.duckdb", "empty"])
def test_data_that_are_not_there_are_told(run, tmp_path, name):
    (tmp_path / "empty").mkdir()
    found = run("policy", "init", tmp_path / name)
    assert found.exit_code == 7
    assert "found:" in found.output
