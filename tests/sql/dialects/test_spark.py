"""What Spark is told, run by DuckDB: there is no Spark here, but sqlglot translates the few words in which they differ.

So a text that lost a part, or has the other function, gives another value here or cannot be read. What the two engines
do differently is not seen: errors of ANSI mode, integers of other widths, which day of the week is the first.
Dates, which need Spark's own functions, are tested on Spark (tests/engines/test_spark.py), where there is one.
"""

import re
from datetime import datetime
from functools import cache

import duckdb
import pytest
import sqlglot

from sfumato.sql.dialects import spark
from sfumato.sql.dialects.base import raw
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.texts import SPACES

NOON = datetime(2024, 2, 29, 12, 34, 56)
CASES = [
    (spark.OWN["upper"], (spark.quote("aZ o'neil ß é"),), "AZ O'NEIL ẞ É"),
    (spark.OWN["lower"], (spark.quote("Az O'NEIL É"),), "az o'neil é"),
    (spark.OWN["trim"], ("'  a b \u2003'",), "a b"),
    (spark.OWN["ltrim"], ("'  a b  '",), "a b  "),
    (spark.OWN["rtrim"], ("'  a b  '",), "  a b"),
    (FUNCTIONS["starts_with"].sql_in["spark"], ("'abc'", "'ab'"), True),
    (FUNCTIONS["ends_with"].sql_in["spark"], ("'abc'", "'ab'"), False),
    (lambda a, b: FUNCTIONS["contains"].emit(raw(a), raw(b)).sql("spark"), ("'abc'", "'bc'"), True),
    *((spark.floor, (f"{a}D",), value) for a, value in [(2.5, 2), (-2.5, -3), (1e300, 1e300)]),
    *((spark.ceil, (f"{a}D",), value) for a, value in [(2.5, 3), (-2.5, -2), (1e300, 1e300)]),
    *((spark.round_half_away, (f"{a}D",), value) for a, value in [(2.5, 3), (-2.5, -3), (2.4, 2), (1e300, 1e300)]),
    *((lambda a: spark.round_to(a, 1), (f"{a}D",), value) for a, value in [(2.25, 2.3), (-2.25, -2.3)]),
    *((spark.width_bucket, (f"{a}D", "0D", "10D", "5D"), value)
      for a, value in [(-3, 0), (0, 1), (3.9, 2), (4, 3), (9.9, 5), (10, 6), (30, 6)]),
    (spark.width_bucket, ("CAST(NULL AS DOUBLE)", "0D", "10D", "5D"), None),
    *((spark.number_of_text, (f"'{a}'",), value)
      for a, value in [(" 1_0.5e2 ", 1050), ("-inf", float("-inf")), ("+Infinity", float("inf")), ("1 2", None)]),
    *((spark.truth_of_text, (f"'{a}'",), value) for a, value in [("YES", True), ("f", False), ("maybe", None)]),
    *((spark.OWN[f"start of {unit}"], (f"CAST('{NOON}' AS TIMESTAMP_NTZ)",), value) for unit, value in [
        ("year", datetime(2024, 1, 1)), ("month", datetime(2024, 2, 1)), ("day", datetime(2024, 2, 29)),
    ]),
]  # fmt: skip


@cache
def database():
    connection = duckdb.connect()
    connection.execute("CREATE MACRO padded(a, n, sign) AS LPAD(a, CAST(n AS INTEGER), sign)")  # LPAD takes no BIGINT
    connection.create_function("extracted", extracted, ["VARCHAR", "VARCHAR", "INTEGER"], "VARCHAR")  # has ten groups
    return connection


def extracted(words: str, pattern: str, group: int) -> str:
    found = re.search(pattern, words)
    return (found and found.group(group)) or ""


@pytest.mark.parametrize(("form", "arguments", "value"), CASES)
def test_a_function_of_spark_means_what_it_means_at_home(form, arguments, value):
    (text,) = sqlglot.transpile(f"SELECT {form(*arguments)}", read="spark", write="duckdb")
    assert database().execute(text.replace("LPAD(", "padded(").replace("REGEXP_EXTRACT(", "extracted(")).fetchone() == (
        value,
    )


@pytest.mark.parametrize("name", ["trim", "ltrim", "rtrim"])
def test_spaces_that_are_trimmed_are_listed(name):
    """Spark would trim one kind of space only, DuckDB trims all that are listed here."""
    found = sqlglot.parse_one(spark.OWN[name]("a"), read="spark")
    assert isinstance(found, sqlglot.exp.Trim) and found.args["expression"].this == SPACES
