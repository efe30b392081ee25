"""No question can make the engine raise: an error that hangs on data would be an answer, and a free one.

golden/duckdb_raising_functions.json: the functions of DuckDB 2.0.0 that raise for some value, with the type and the
value, found by calling each scalar function with edge values; plain operators are among them.
"""

import itertools
import json
from pathlib import Path

import duckdb
import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.engines.duckdb import SETTINGS
from sfumato.errors import QueryRefused
from sfumato.sql.emit.bounding import statement
from sfumato.sql.policy import Policy

RAISING = json.loads((Path(__file__).parents[2] / "golden" / "duckdb_raising_functions.json").read_text())
ACCEPTED = {
    "%",
    "*",
    "+",
    "-",
    "/",
    "//",
    "isoyear",
    "@",
    "abs",
    "mod",
    "week",
    "weekofyear",
}  # compiled to total forms; the rest is refused

TYPES = {  # columns, each with all values of its type that make something raise, and more
    "num": ("DOUBLE", ["1e308", "-1e308", "'nan'", "'inf'", "'-inf'", "0", "-0.0", "5e-324", "0.5", "NULL"]),
    "small": ("TINYINT", ["-128", "127", "0", "-1", "1"]),
    "int": ("INTEGER", ["2147483647", "-2147483648", "0", "-1"]),
    "big": ("BIGINT", ["9223372036854775807", "(-9223372036854775808)", "0", "-1"]),
    "huge": ("HUGEINT", ["(-170141183460469231731687303715884105728)", "170141183460469231731687303715884105727", "0"]),
    "dec": ("DECIMAL(38, 2)", ["999999999999999999999999999999999999.99", "-1", "0"]),
    "words": ("VARCHAR", ["''", "'('", "'%'", "'abc'", "'1e400'", "'5877642-06-25 (BC)'", "'5000000-01-01'", "'\\'",
                          "repeat('a', 100000)", "chr(0)", "'1'", "'true'"]),
    "bits": ("BLOB", ["'\\xFF'::BLOB", "''::BLOB"]),
    "day": ("DATE", ["'infinity'", "'-infinity'", "'5877642-06-25 (BC)'", "'5881580-07-10'", "'2024-02-29'"]),
    "time": ("TIMESTAMP", ["'infinity'", "'-infinity'", "'290309-12-22 (BC) 00:00:00'", "'294247-01-10 04:00:54'"]),
    "span": ("INTERVAL", ["INTERVAL 178000000 YEAR", "INTERVAL (-178000000) YEAR"]),
    "yes": ("BOOLEAN", ["true", "false", "NULL"]),
}  # fmt: skip
KINDS = {"words": "text", "bits": "text", "span": "text", "day": "date", "time": "date", "yes": "boolean"}
RULES = Policy.read(
    'version = 1\n[budget]\nepsilon = 1\ndelta = 1e-6\n[tables.odd]\nunit = "id"\ngroups = 3\nrows = 2\n'
    "[tables.odd.columns]\n"
    + "".join(f'{name} = {{type = "{KINDS.get(name, "number")}"}}\n' for name in TYPES)
    + "bound = {low = -1e15, high = 1e15, step = 9.313225746154785e-10}\n"
)
NAMES = ["num", "big", "words", "day", "time", "yes"]


@pytest.fixture(scope="module")
def odd():
    """One row for each value of each column; the others NULL there. Ten people."""
    connection = duckdb.connect()
    listed = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    connection.execute(f"CREATE TABLE odd (id BIGINT, bound DOUBLE, {listed})")
    for name, (kind, values) in TYPES.items():
        for i, value in enumerate(values):
            connection.execute(f"INSERT INTO odd (id, bound, {name}) VALUES ({i % 10}, 1e300, CAST({value} AS {kind}))")
    longest = max(len(values) for _, values in TYPES.values())
    for i in range(longest):  # and rows where all are odd at once
        row = ", ".join(f"CAST({values[i % len(values)]} AS {kind})" for kind, values in TYPES.values())
        connection.execute(f"INSERT INTO odd VALUES ({i % 10}, -1e300, {row})")
    for setting in SETTINGS:
        connection.execute(setting)
    return connection


def runs(sql, connection):
    """True if the question is answered; whatever it is, the engine must not raise."""
    try:
        plan = parse_question(sql, RULES).plan
    except QueryRefused:
        return False
    connection.execute(statement(plan, 7, "duckdb")).fetchall()
    return True


def spellings(name):
    """Ways to write it with one, two and three arguments; more of them where some are answered."""
    if name.isalpha() or "_" in name:
        for one in NAMES:
            yield f"{name}({one})"
        few = ["num", "big", "words", "0", "'('"] if name in ACCEPTED else ["num", "words", "'('"]
        for one, two in itertools.product(few, repeat=2):
            yield f"{name}({one}, {two})"
        yield from (
            f"{name}({one}, 9223372036854775807, {two})" for one, two in zip(NAMES, ["1", "'a'"] * 3, strict=True)
        )
    else:
        for one, two in itertools.product(["num", "big", "time", "0", "1e308"], repeat=2):
            yield f"{one} {name} {two}"
        yield from (f"{name} {one}" for one in NAMES)


@pytest.mark.parametrize("name", RAISING)
def test_a_raising_function_is_refused_or_total(name, odd):
    answered = 0
    for text in spellings(name):
        answered += runs(f"SELECT {text}, COUNT({text}), SUM(CLAMP({text}, -3, 5)) FROM odd GROUP BY 1", odd)
    assert (answered > 0) == (name in ACCEPTED)


def test_the_values_do_make_plain_sql_raise(odd):
    """So that the test above can fail."""
    for text in ("int % 0", "num::BIGINT", "-small", "big + 1", "abs(huge)", "date_trunc('year', time)",
                 "words::DOUBLE",                 "left(words, big)", "words::BOOLEAN", "day + int"):  # fmt: skip
        with pytest.raises(duckdb.Error):
            odd.execute(f"SELECT {text} FROM odd").fetchall()


FORMS = [
    "CAST({} AS DOUBLE)", "CAST({} AS INT)", "CAST({} AS DATE)", "CAST({} AS TIMESTAMP)", "CAST({} AS TEXT)", "ABS({})",
    "-{}", "FLOOR({})", "CEIL({})", "ROUND({})", "ROUND({}, 12)", "LENGTH({})", "LOWER({})", "UPPER({})", "TRIM({})",
    "LTRIM({})", "RTRIM({})", "SUBSTR({}, 1000000, 1000000)", "SUBSTR({}, 1, 0)", "REPLACE({}, 'a', '')", "{} || {}",
    "CONCAT({}, {}, 'x')", "STARTS_WITH({}, {})", "CONTAINS({}, {})", "ENDS_WITH({}, {})", "{} LIKE '%a_b%'",
    "{} LIKE '%\\'", "YEAR({})", "MONTH({})", "DAY({})", "HOUR({})", "WEEKDAY({})",
    "EXTRACT(dow FROM {})", "DATE_TRUNC('year', {})",
    "DATE_TRUNC('month', {})", "DATE_TRUNC('day', {})", "{} = {}", "{} < {}", "{} IN ({}, NULL)", "NULLIF({}, {})",
    "COALESCE({}, {})", "LEAST({}, {})", "GREATEST({}, 1e300)", "CLAMP({}, {}, {})", "CASE WHEN {} IS NULL THEN {} END",
    "SQRT({})", "LN({})", "LOG10({})", "LOG2({})", "EXP({})", "POWER({}, 10)", "SIGN({})", "TRUNC({})",
    "CAST({} AS DECIMAL(38, 12))", "RIGHT({}, 1000000)", "LEFT({}, 0)", "SPLIT_PART({}, 'a', 1000)",
    "STRPOS({}, {})", "{} ILIKE '%Ä%b%'", "{} IS DISTINCT FROM {}", "({} = {}) IS TRUE", "QUARTER({})", "WEEK({})",
    "DAYOFYEAR({})", "ISODOW({})", "MINUTE({})", "DAYNAME({})", "MONTHNAME({})", "strftime({}, '%Y-%m')",
    "DATE_TRUNC('week', {})", "DATE_TRUNC('quarter', {})", "DATE_DIFF('day', {}, {})", "DATE_DIFF('month', {}, {})",
    "DATE_DIFF('day', DATE '0001-01-01', {})",
    "{} + {}", "{} - {}", "{} * {}", "{} / {}", "MOD({}, {})", "NOT {}", "{} AND {}", "{} > '5000000-01-01'",
    "{} BETWEEN '0001-01-01' AND CAST(words AS DATE)", "{} = CAST(words AS DATE)",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_all_that_is_allowed_is_total(form, odd):
    answered = 0
    for name in [*TYPES, "bound"]:
        text = form.replace("{}", name)
        rows = f"FROM odd WHERE ({text}) IS NULL OR id > 1 GROUP BY 1"
        numbers = f"AVG(CLAMP({text}, -1e15, 1e15)), VARIANCE(CLAMP({text}, -1, 1e9))"
        answered += runs(f"SELECT {text}, COUNT(*), {numbers} {rows}", odd) or runs(
            f"SELECT {text}, COUNT(*) {rows}", odd
        )
    assert answered > 0


def test_a_lattice_that_is_too_fine_for_64_bits_is_made_coarser(odd):
    for text in ("SUM(bound)", "AVG(bound)", "STDDEV(bound)", "SUM(bound * bound)",
                 "SUM(CLAMP(num, 1e15, 1.000001e15))",                  "SUM(CLAMP(num, 0, 1e-300))"):  # fmt: skip
        assert runs(f"SELECT {text} FROM odd", odd)
