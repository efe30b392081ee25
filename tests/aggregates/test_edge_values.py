"""Edge values of every type, in every aggregate: right, finite, and within bounds."""

import math

import duckdb
import numpy as np
import pytest

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.errors import QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.questions import exactly

LOW, HIGH, OTHER = -100.0, 1000.0, 7.0
SUMS = "COUNT(*), COUNT(x), SUM(x), AVG(x), VARIANCE(x), STDDEV(x)"
RANKS = "COUNT(DISTINCT x), MIN(x), MAX(x), MEDIAN(x), QUANTILE(x, 0.9)"
OTHERS = "TRIMMED_MEAN(x, 0.2), MODE(CLAMP(x, 0, 9))"
FLOATS = ["'nan'", "'-nan'", "'inf'", "'-inf'", "NULL", "-0.0", "0", "5e-324", "-5e-324", "1e308", "-1e308",
"1e-308", "60",
          "7.3", "0.1", "-100", "1000", "999.9999999", "1000.0000001", "-100.000001", "1e15", "-1e15",
          "9007199254740993",
          "9223372036854775807", "1e-17", "3.0000001"]  # fmt: skip
WHOLES = ["9223372036854775807", "(-9223372036854775808)", "0", "1", "-1", "NULL", "9007199254740993",
"-9007199254740993",
          "1000", "1001", "999", "-100", "-101", "-99", "2147483647", "-2147483648", "127", "-128", "255", "32768",
          "4294967296", "1000000007", "7", "60", "-7", "100"]  # fmt: skip
DECIMALS = ["99999999999999999999.99", "-99999999999999999999.99", "0.01", "-0.01", "0", "NULL", "1000.01", "999.99",
"-100.01",
            "-99.99", "7.30", "60", "0.10", "0.05", "123.45", "-1", "1", "2.5", "3.5", "1000", "-100", "500.5", "33.33",
            "66.67", "0.99", "12345678.9"]  # fmt: skip
DATES = ["'infinity'", "'-infinity'", "'5877642-06-25 (BC)'", "'5881580-07-10'", "NULL", "'0001-01-01'", "'9999-12-31'",
         "'1970-01-01'", "'2024-02-29'", "'1900-03-01'", "'0044-03-15 (BC)'", "'290309-12-22 (BC)'", "'294247-01-10'",
         "'2000-12-31'", "'1582-10-15'", "'1582-10-04'", "'2038-01-19'", "'1969-12-31'", "'10000-01-01'",
         "'2023-01-01'",
         "'2262-04-11'", "'1677-09-21'", "'2024-12-31'", "'2024-01-01'", "'1752-09-02'"]  # fmt: skip
TEXTS = ["''", "' '", "NULL", "'NULL'", "chr(0)", "'a'", "'A'", "'ä'", "'ß'", "'İ'", "'😀'", "repeat('x', 1000000)",
"'''; --'",
         "'%'", "'_'", "'\\'", "'nan'", "'inf'", "'1e400'", "'0x1F'", "'true'", "chr(1114111)", "'e' || chr(769)",
         "'é'",
         "chr(10)", "'123456789012345678901234567890'"]  # fmt: skip
CASES = {
    "DOUBLE": FLOATS, "BIGINT": WHOLES, "DECIMAL(38, 2)": DECIMALS, "HUGEINT": WHOLES, "VARCHAR": TEXTS, "DATE": DATES,
}  # fmt: skip
KIND = {"VARCHAR": 'type = "text"', "DATE": 'type = "date"'}


def rules(kind, many, unit="id"):
    column = KIND.get(kind, f"low = {LOW}, high = {HIGH}, step = 0.00390625")
    return Policy.read(
        "version = 1\n[budget]\nepsilon = 500\ndelta = 1e-6\n"
        f'[tables.odd]\nunit = "{unit}"\n'
        + ("groups = 40\nrows = 2\n" if unit == "id" else "")
        + "[tables.odd.columns]\n"
        f"x = {{{column}}}\nk = {{type = 'number', keys = {list(range(many))}}}\n"
    )


def database(place, kind, values):
    """In group k: person k with value k, and person −1 with an ordinary one."""
    other = {"VARCHAR": "'b'", "DATE": "'2024-05-05'"}.get(kind, str(OTHER))
    connection = duckdb.connect(str(place))
    connection.execute(f"CREATE TABLE odd (id BIGINT, k INTEGER, x {kind})")
    for k, value in enumerate(values):
        connection.execute(
            f"INSERT INTO odd VALUES ({k}, {k}, CAST({value} AS {kind})), (-1, {k}, CAST({other} AS {kind}))"
        )
    return connection


def as_double(connection, kind, value):
    found = connection.execute(f"SELECT TRY_CAST(CAST({value} AS {kind}) AS DOUBLE)").fetchone()[0]
    return None if found is None or math.isnan(found) else min(max(found, LOW), HIGH)


@pytest.mark.parametrize("kind", ["DOUBLE", "BIGINT", "DECIMAL(38, 2)", "HUGEINT"])
def test_sums_of_edge_values_are_right(kind, tmp_path):
    values = CASES[kind]
    assert len(set(values)) >= 25
    connection = database(tmp_path / "odd.duckdb", kind, values)
    question = parse_question(f"SELECT k, {SUMS} FROM odd GROUP BY k", rules(kind, len(values)))
    (text,) = statements(offer_for_epsilon(question, 1.0, 1e-9, Mu), 3, "duckdb")
    exact = {row[0]: row[1:] for row in connection.execute(text).fetchall()}
    for k, value in enumerate(values):
        there = [v for v in (as_double(connection, kind, value), OTHER) if v is not None]
        found = exactly(question, exact[k])
        truth = [2, len(there), sum(there), np.mean(there), np.var(there), np.std(there)]
        assert found[:2] == truth[:2]
        np.testing.assert_allclose(found[2:], truth[2:], rtol=1e-4, atol=0.3)


@pytest.mark.parametrize("kind", CASES)
def test_answers_about_edge_values_are_finite(kind, tmp_path):
    values = CASES[kind]
    database(tmp_path / "odd.duckdb", kind, values).close()
    curator = Curator.open(tmp_path / "odd.duckdb", rules(kind, len(values)))
    numbers = "COUNT(*), COUNT(x), COUNT(DISTINCT x)"
    if kind in KIND:
        for name in ("SUM", "AVG", "VARIANCE", "MIN", "MEDIAN"):
            with pytest.raises(QueryRefused):
                curator.ask(f"SELECT {name}(x) FROM odd", epsilon=1.0)
        shown = ", MONTH(x), COUNT(YEAR(x))" if kind == "DATE" else ", LENGTH(x), COUNT(UPPER(x))"
        assert curator.ask(f"SELECT COUNT(*){shown} FROM odd GROUP BY 2", epsilon=1.0).charged
        modes = curator.ask("SELECT k, MODE(x) AS m FROM odd GROUP BY k", epsilon=5.0)
        assert modes.column("m") == [None] * len(values)  # two people have each value, at most
    else:
        numbers = f"{SUMS}, {RANKS}"
        others = curator.ask(f"SELECT k, {OTHERS} FROM odd GROUP BY k", epsilon=5.0)
        assert all(isinstance(cell, int | float | None) for row in others.rows for cell in row)
        assert all(LOW <= cell <= HIGH for row in others.rows for cell in row[1:4])
    answer = curator.ask(f"SELECT k, {numbers} FROM odd GROUP BY k", epsilon=50.0)
    assert len(answer) == len(values)
    for row in answer.rows:
        assert all(isinstance(cell, int | float) and math.isfinite(cell) for cell in row)


@pytest.mark.parametrize("unit", ["id", "row"])
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("empty", "SELECT 1::BIGINT AS id, 1 AS k, 1.0::DOUBLE AS x LIMIT 0"),
        ("all NULL", "SELECT i AS id, NULL::INTEGER AS k, NULL::DOUBLE AS x FROM range(100) t(i)"),
        ("nobody's", "SELECT NULL::BIGINT AS id, 1 AS k, 1.0::DOUBLE AS x FROM range(100)"),
        ("one person's", "SELECT 5 AS id, i % 3 AS k, i::DOUBLE AS x FROM range(1000000) t(i)"),
        ("all equal", "SELECT i AS id, 1 AS k, 5.0::DOUBLE AS x FROM range(1000) t(i)"),
    ],
)
def test_odd_tables_are_answered(name, rows, unit, tmp_path):
    connection = duckdb.connect(str(tmp_path / "odd.duckdb"))
    connection.execute(f"CREATE TABLE odd AS {rows}")
    connection.close()
    curator = Curator.open(tmp_path / "odd.duckdb", rules("DOUBLE", 3, unit))
    whole = curator.ask(f"SELECT {SUMS}, MIN(x), MEDIAN(x) FROM odd", epsilon=50.0)
    assert len(whole) == 1
    assert all(math.isfinite(cell) for cell in whole.rows[0])
    by_key = curator.ask("SELECT k, COUNT(*) AS n FROM odd GROUP BY k", epsilon=50.0)
    assert [row[0] for row in by_key.rows] == [0, 1, 2]
    if unit == "id" and name != "all equal":  # 2 rows of one person count in a group, nobody's rows do not
        assert all(n < 40 for n in by_key.column("n"))  # σ < 2: a false alarm has probability below 1e-80
