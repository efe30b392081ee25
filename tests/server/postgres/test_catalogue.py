"""The catalogues: what clients ask is understood, and everything in them is public."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sfumato.errors import QueryRefused
from sfumato.server.postgres import types
from sfumato.server.postgres.catalogue import Catalogue
from sfumato.server.postgres.shadow import shape
from sfumato.server.postgres.statements import Kind, sort

TABLES = {
    "visits": {"patient_id": types.FLOAT8, "ward": types.TEXT, "day": types.TIMESTAMP},
    'odd "name"; --': {"a b": types.BOOL},
}


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Catalogue]:
    found = Catalogue("clinic", TABLES)
    yield found
    found.close()


def rows(catalogue: Catalogue, text: str):
    statement = sort(text)
    assert statement.kind is Kind.CATALOGUE, text
    return catalogue.run(statement.tree, {})[1]


def recorded() -> list[str]:
    text = (Path(__file__).parent / "catalogue_questions.sql").read_text()
    return [part for part in text.split(";\n") if part.strip()]


@pytest.mark.parametrize("text", recorded(), ids=range(len(recorded())))
def test_clients_are_understood(catalogue, text):
    statement = sort(text)
    assert statement.kind in (Kind.CATALOGUE, Kind.SHOW)
    if statement.kind is Kind.CATALOGUE:
        columns, found = catalogue.run(statement.tree, {})
        assert columns and all(len(row) == len(columns) for row in found)


def test_tables_and_columns_are_listed(catalogue):
    found = rows(catalogue, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
    assert {name for (name,) in found} == set(TABLES)
    found = rows(catalogue, "SELECT attname, format_type(atttypid, -1) FROM pg_attribute JOIN pg_class c ON "
                            "attrelid = c.oid WHERE relname = 'visits' ORDER BY attnum")  # fmt: skip
    assert found == [("patient_id", "double precision"), ("ward", "text"), ("day", "timestamp without time zone")]
    assert rows(catalogue, "SELECT 'visits'::regclass::oid, to_regtype('int8')")[0][1] == 20


def test_what_is_never_missing_in_postgresql_is_not_missing_here(catalogue):
    """ODBC takes no NULL in such columns: it failed to describe any table because of pg_class.relhassubclass."""
    for relation, columns in shape()[0].items():
        schema, name = relation.split(".")
        sure = [column for column, kind in columns.items() if schema == "pg_catalog" and kind.endswith("!")]
        if sure:
            missing = " + ".join(f'count(*) FILTER (WHERE "{column}" IS NULL)' for column in sure)
            assert rows(catalogue, f"SELECT {missing} FROM pg_catalog.{name}") == [(0,)], relation
    assert rows(catalogue, "SELECT relhassubclass FROM pg_class WHERE relname = 'visits'") == [(False,)]


def test_columns_have_the_names_of_postgresql(catalogue):
    statement = sort("SELECT 1, version(), current_database(), 'a'::text, relname FROM pg_class")
    columns, _ = catalogue.run(statement.tree, {})
    assert [name for name, _ in columns] == ["?column?", "version", "current_database", "text", "relname"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT relname FROM pg_class, visits",
        "SELECT (SELECT COUNT(*) FROM visits) FROM pg_class",
        "WITH c AS (SELECT * FROM pg_class) SELECT * FROM c JOIN visits ON true",
        "SELECT 1 FROM pg_class WHERE EXISTS (SELECT 1 FROM visits)",
    ],
)
def test_catalogues_and_data_do_not_mix(text):
    with pytest.raises(QueryRefused, match="mixes"):
        sort(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM pg_class, read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM '/etc/passwd'",
        "SELECT getenv('HOME')",
        "SELECT * FROM pg_class WHERE (SELECT content FROM read_text('/etc/passwd')) = 'x'",
    ],
)
def test_nothing_of_the_machine_is_reached(catalogue, text):
    """No file, no setting, no environment. A table that is no catalogue's is a question, which the curator sees."""
    try:
        statement = sort(text)
    except QueryRefused:
        return
    if statement.kind is Kind.CATALOGUE:
        with pytest.raises(QueryRefused):
            catalogue.run(statement.tree, {})


@pytest.mark.parametrize(
    "text", ["INSERT INTO pg_class VALUES (1)", "CREATE TABLE a (b int)", "ATTACH 'x'", "PRAGMA x"]
)
def test_only_questions_reach_the_catalogues(text):
    with suppress(QueryRefused):
        assert sort(text).kind is not Kind.CATALOGUE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT count(*) FROM pg_type a, pg_type b, pg_type c, pg_type d, pg_type e", "longer than"),
        ("SELECT * FROM generate_series(1, 1000000)", "too large"),
        ("SELECT repeat('x', 100000) FROM generate_series(1, 100)", "too large"),
        ("SELECT length(repeat('x', 2000000000))", "longer than|memory"),
    ],
)
def test_a_question_that_takes_too_much_is_stopped_and_the_next_one_is_answered(text, found):
    catalogue = Catalogue("clinic", TABLES)
    catalogue.engine.timeout = 0.5
    try:
        with pytest.raises(QueryRefused, match=found):
            rows(catalogue, text)
        assert rows(catalogue, "SELECT 1") == [(1,)]
    finally:
        catalogue.close()


def test_tables_of_ones_own_are_made_when_they_are_asked_for(catalogue):
    made = []

    def budget():
        made.append(1)
        return {"left": "DOUBLE"}, [(0.5,)]

    statement = sort('SELECT b."left" FROM sfumato.budget b')
    assert catalogue.run(statement.tree, {"budget": budget})[1] == [(0.5,)] and made == [1]
    rows(catalogue, "SELECT 1")
    assert made == [1]
