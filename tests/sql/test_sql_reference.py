"""Every function and clause has an example in docs/sql.md, which runs and means what plain DuckDB says."""

import datetime

import duckdb
import pytest

from sfumato.aggregates.registry import AGGREGATES
from sfumato.curator import Curator
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tools import sql_reference

FOLDED = {"in", "is null", "<=", "date"}  # of literals: worked out where the text is read
INTERNAL = {"magnitude", "listed number", "listed date"}
OWN = (  # not in DuckDB, or with another meaning there, as docs/sql.md says
    "SYMMETRIC", "LIKE ANY", "LIKE ALL", "/ 0", "SAFE_DIVIDE", "CLAMP", "WIDTH_BUCKET", "RPAD('a', 3)", "TO_CHAR",
    "'x' AS INT", "' AS TEXT)",
    "3.0 AS TEXT",
)  # fmt: skip
EXAMPLES = [one for listed in sql_reference.FUNCTIONS.values() for one in listed]
QUESTIONS = [one for listed in sql_reference.CLAUSES.values() for one in listed]


def test_the_tables_are_current():
    assert sql_reference.tables() in sql_reference.PAGE.read_text(), "run `make docs-index`"


def test_every_function_has_an_example():
    shown = {name for one in EXAMPLES for name in sql_reference.functions_in(sql_reference.expression_of(one))}
    assert set(FUNCTIONS) - shown == FOLDED | INTERNAL
    assert all(one.example for one in AGGREGATES.classes if one.listed and one.listed != "TRIANGLES")


def test_examples_mean_what_they_mean_in_plain_sql():
    connection = duckdb.connect()
    for text in EXAMPLES:
        if any(one in text for one in OWN):
            continue
        plain = connection.execute(f"SELECT {text}").fetchall()[0][0]
        found = sql_reference.value_of(text, connection)
        if isinstance(plain, int | float) and not isinstance(plain, bool):
            assert found == pytest.approx(float(plain), rel=1e-12), text
        elif isinstance(plain, datetime.date):
            assert str(found).removesuffix(" 00:00:00") == str(plain).removesuffix(" 00:00:00"), text
        else:
            assert found == plain or str(found) == str(plain), text


def test_every_clause_is_answered(tmp_path):
    curator = Curator.open(built(tmp_path / "clinic.duckdb"), Policy.read(POLICY.replace("8.0", "900.0")))
    for sql in QUESTIONS:
        assert curator.ask(sql, epsilon=1.0).columns, sql
