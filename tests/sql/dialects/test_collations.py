"""What a column's collation calls equal is not equal here: which of two texts stood for both would hang on the data."""

import random

import duckdb
import pytest

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator.contribution_sketch import Sketch, tables_to_sketch
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.engines.duckdb import COLUMNS, schema_from_rows
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.duckdb import DuckDB
from sfumato.sql.policy import Policy

RULES = Policy.read("""
version = 1
[budget]
epsilon = 20
delta = 1e-6
[tables.visits]
unit = "person"
groups = 2
rows = 3
[tables.visits.columns]
ward = {type = "text", keys = ["a", "b", "c"]}
note = {type = "text"}
stay = {low = 0, high = 60, step = 0.5}
[tables.labs]
unit = "person"
groups = 2
rows = 2
[tables.labs.columns]
visit = {type = "text"}
value = {low = 0, high = 60, step = 0.5}
[tables.tests]
unit = "labs.person"
key = "visit"
groups = 2
rows = 2
[tables.tests.columns]
kind = {type = "text"}
[tables.wards]
public = true
[tables.wards.columns]
ward = {type = "text"}
floor = {type = "number", keys = [1, 2]}
""")
TEXTS = {
    "visits": ["person", "ward", "note"],
    "labs": ["person", "visit"],
    "tests": ["visit", "kind"],
    "wards": ["ward"],
}
NUMBERS = {"visits": "stay", "labs": "value", "wards": "floor"}
QUESTIONS = [
    "SELECT COUNT(*), COUNT(DISTINCT person), SUM(stay), COUNT(DISTINCT note), MEDIAN(stay) FROM visits",
    "SELECT ward, COUNT(*), COUNT(DISTINCT person), SUM(stay), COUNT(DISTINCT note), MEDIAN(stay) FROM visits"
    " GROUP BY ward",
    "SELECT note, COUNT(*), AVG(stay), COUNT(DISTINCT ward), MEDIAN(stay) FROM visits GROUP BY note",
    "SELECT UPPER(note), CASE WHEN ward = 'a' THEN note ELSE 'z' END, COUNT(*) FROM visits GROUP BY 1, 2",
    "SELECT COUNT(*) FROM visits WHERE note = 'a' OR note IN ('É', 'b') OR note || ward LIKE '%B' OR note < ward",
    "SELECT floor, COUNT(*), SUM(stay) FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT COUNT(*), SUM(stay + value) FROM visits JOIN labs USING (person) WHERE note <> visit",
    "SELECT kind, COUNT(*), COUNT(DISTINCT person) FROM tests GROUP BY kind",
    "SELECT t, COUNT(*), SUM(x) FROM (SELECT note AS t, stay AS x FROM visits UNION ALL SELECT visit, value FROM"
    " labs) v GROUP BY t",
    "SELECT t, COUNT(*) FROM (SELECT note AS t FROM visits UNION ALL SELECT ward FROM visits) v GROUP BY t",
]
SPELLINGS = ["'a'", "'A'", "'b'", "'B'", "'c'", "'é'", "'É'", "'e'", "NULL"]


def filled(seed, run, text):
    """The same tables, with texts of this type."""
    chance = random.Random(seed)
    for table, columns in TEXTS.items():
        number = NUMBERS.get(table)
        kinds = [f"{name} {text}" for name in columns] + ([f"{number} DOUBLE PRECISION"] if number else [])
        run(f"CREATE TABLE {table} ({', '.join(kinds)})")
        for _ in range(30):
            words = [chance.choice(SPELLINGS) for _ in columns] + [str(chance.randrange(1, 3))] * bool(number)
            run(f"INSERT INTO {table} VALUES ({', '.join(words)})")


def numbers(run, dialect):
    """All that is exact of each question and each sketch: rows, in no order."""
    texts = [
        text
        for sql in QUESTIONS
        for text in statements(offer_for_epsilon(parse_question(sql, RULES), 1.0, 1e-9, Mu), 7, dialect)
    ]
    for table in tables_to_sketch(RULES):
        texts += Sketch(table, Mu(0.1)).statements(dialect)
    return [sorted(map(repr, run(text))) for text in texts]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"])
def test_collations_change_nothing(seed, collation):
    found = []
    for text in ("VARCHAR", f"VARCHAR COLLATE {collation}"):
        with duckdb.connect() as database:
            filled(seed, database.execute, text)
            schema = schema_from_rows(database.execute(COLUMNS).fetchall())
            for dialect in (DuckDB(), DuckDB(schema=schema)):
                found.append(numbers(lambda sql, at=database: at.execute(sql).fetchall(), dialect))
    assert found[:2] == found[2:]  # with types and without, rows may be chosen by other hashes


def test_collations_of_a_server_change_nothing(server):
    psycopg = pytest.importorskip("psycopg")
    loose = "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    found = []
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        try:
            connection.execute(loose)
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this build of PostgreSQL has no ICU, and without it no collation calls two texts equal")
        for text in ("TEXT", "TEXT COLLATE loose"):
            connection.execute("DROP SCHEMA IF EXISTS collated CASCADE")
            connection.execute("CREATE SCHEMA collated")
            connection.execute("SET search_path = collated, public")
            filled(1, connection.execute, text)
            found.append(numbers(lambda sql: connection.execute(sql).fetchall(), dialect_of("postgres")))
    assert found[1] == found[0]
