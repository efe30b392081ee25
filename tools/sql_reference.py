"""Write the tables of docs/sql.md: every aggregate, function and clause with an example, and what it gives.

`python tools/sql_reference.py` writes them; `python tools/sql_reference.py --check` only says whether they are current.
Values of functions are worked out by DuckDB from the SQL that a question would send to it.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb

from sfumato.aggregates.registry import AGGREGATES
from sfumato.sql.dialects.duckdb import DuckDB
from sfumato.sql.expressions import Call, Expression
from sfumato.sql.functions.dates import BEGINNINGS
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.parse.text import parse_statement
from sfumato.sql.plan import Table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "sql.md"
BEGIN = "<!-- Written by tools/sql_reference.py: change it or the registries, then run `make docs-index`. -->"
END = "<!-- End of what tools/sql_reference.py writes. -->"
DAY, MOMENT = "DATE '2024-02-29'", "TIMESTAMP '2024-02-29 10:11:12.5'"
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "Logic": (
        "1 < 2 AND NOT 2 <= 1 OR NULL", "3 BETWEEN 1 AND 5", "3 BETWEEN SYMMETRIC 5 AND 1", "'b' IN ('a', 'b')",
        "NULL IS NULL", "(1 = 2) IS NOT TRUE", "NULL IS DISTINCT FROM 1", "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END",
        "IF(1 < 2, 'yes', 'no')", "COALESCE(NULL, 3)", "NULLIF(3, 3)", "'north' LIKE 'n%'", "'North' ILIKE 'n_rth'",
        "'north' LIKE ANY ('s%', 'n%')", "'north' NOT LIKE ALL ('s%', 'w%')",
    ),
    "Numbers": (
        "7 + 2 * 3 - 1", "7 / 2", "7 / 0", "SAFE_DIVIDE(7, 0)", "7 // 2", "-7 // 2", "7 % 4", "MOD(-7, 4)", "ABS(-3)",
        "SIGN(-3)", "FLOOR(-2.5)", "CEIL(2.1)", "TRUNC(-2.5)", "TRUNC(2.567, 1)", "ROUND(2.567)", "ROUND(2.567, 2)",
        "ROUND(1234, -2)", "LEAST(3, NULL, 2)", "GREATEST(3, 5)", "CLAMP(130, 0, 120)", "WIDTH_BUCKET(35, 0, 60, 6)",
        "SQRT(2)", "POWER(3, 4)", "EXP(1)", "LN(10)", "LOG10(1000)", "LOG2(8)",
    ),
    "Texts": (
        "LOWER('Ward A')", "UPPER('ward')", "TRIM('  a ')", "LTRIM('  a')", "RTRIM('a  ')", "LENGTH('north')",
        "LEFT('north', 2)", "RIGHT('north', 2)", "SUBSTR('north', 2, 3)", "SPLIT_PART('a.b.c', '.', 2)",
        "STRPOS('north', 'r')", "POSITION('r' IN 'north')", "REPLACE('a-b', '-', '')", "LPAD('7', 3, '0')",
        "RPAD('a', 3)",
        "'a' || 'b'", "CONCAT('a', NULL, 3)", "CONCAT_WS('-', 'a', NULL, 'b')", "STARTS_WITH('north', 'no')",
        "ENDS_WITH('north', 'th')", "CONTAINS('north', 'ort')", "REGEXP_MATCHES('d12', '^d[0-9]+$')",
        "REGEXP_FULL_MATCH('d12', 'd[0-9]')", "REGEXP_EXTRACT('me@web.org', '@([a-z]+)', 1)",
        "REGEXP_REPLACE('d12', '[0-9]+', '')", """'{"a": {"b": 3}}' ->> '$.a.b'""", """'{"a": [5, 6]}' -> 'a' ->> 1""",
        """json_extract_string('{"a": "x"}', '$.a')""",
    ),
    "Dates and times": (
        f"YEAR({DAY})", f"QUARTER({DAY})", f"MONTH({DAY})", f"WEEK({DAY})", f"DAY({DAY})", f"DAYOFYEAR({DAY})",
        f"WEEKDAY({DAY})", f"ISODOW({DAY})", f"ISOYEAR({DAY})", f"HOUR({MOMENT})", f"MINUTE({MOMENT})",
        f"SECOND({MOMENT})", f"EXTRACT(DECADE FROM {DAY})", f"DATE_PART('month', {DAY})", f"EPOCH({MOMENT})",
        f"DAYNAME({DAY})", f"MONTHNAME({DAY})",
        *(f"DATE_TRUNC('{unit}', {MOMENT})" for unit in BEGINNINGS),
        f"LAST_DAY({DAY})", f"TIME_BUCKET(INTERVAL 15 MINUTE, {MOMENT})", f"TIME_BUCKET(INTERVAL 3 MONTH, {DAY})",
        f"{DAY} + 30", f"{DAY} + INTERVAL 1 MONTH", f"{MOMENT} - INTERVAL '1 day 2 hours'",
        f"DATE '2024-03-03' - {DAY}", f"{MOMENT} - TIMESTAMP '2024-02-29 09:00:00' > INTERVAL 1 HOUR",
        *(f"DATE_DIFF('{unit}', {MOMENT}, TIMESTAMP '2025-03-01 08:00:00')" for unit in
          ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")),
        f"DATE_SUB('month', {DAY}, DATE '2025-02-28')",
        f"EXTRACT(EPOCH FROM {MOMENT} - TIMESTAMP '2024-02-29 10:00:00')",
        f"EXTRACT(YEAR FROM AGE(DATE '2025-02-28', {DAY}))",
        f"{MOMENT} AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'", f"STRFTIME({DAY}, '%Y-%m')",
        f"STRFTIME({MOMENT}, '%a %d %b, %H:%M')", f"TO_CHAR({DAY}, 'IYYY-\"W\"IW')",
    ),
    "Casts": (
        "CAST('3.5' AS DOUBLE)", "CAST(2.5 AS INT)", "CAST('x' AS INT)", "CAST(TRUE AS INT)", "CAST(3.0 AS TEXT)",
        "CAST(2.567 AS DECIMAL(8, 2))", "CAST('2024-02-29' AS DATE)", f"CAST({DAY} AS TIMESTAMP)",
        f"CAST({DAY} AS TEXT)",
    ),
}  # fmt: skip
CLAUSES: dict[str, tuple[str, ...]] = {
    "Rows": (
        "SELECT COUNT(*) FROM visits WHERE stay > 3",
        "FROM visits SELECT COUNT(*)",
        "WITH long AS (SELECT * FROM visits WHERE stay > 3) SELECT AVG(stay) FROM long",
        "SELECT AVG(stay * 24) FROM visits WHERE stay * 24 BETWEEN 0 AND 500",
        "SELECT COUNT(*) FROM (SELECT cost FROM visits UNION ALL SELECT stay FROM visits)",
    ),
    "Keys": (
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ALL",
        "SELECT stay > 7 AS long, COUNT(*) FROM visits GROUP BY 1",
        "SELECT ward, stay > 7 AS long, COUNT(*) FROM visits GROUP BY ROLLUP (ward, long)",
        "SELECT ward, stay > 7 AS long, COUNT(*), GROUPING(ward) FROM visits GROUP BY GROUPING SETS ((ward, long), ())",
        "SELECT s.m, COUNT(v.stay) FROM generate_series(1, 12) s(m) LEFT JOIN visits v ON MONTH(v.day) = s.m"
        " GROUP BY s.m",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 10 ORDER BY n DESC LIMIT 3 OFFSET 1",
    ),
    "Rows of one person": (
        "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
        "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, ward FROM visits)",
        "SELECT ward, COUNT(*) FROM (SELECT patient_id, FIRST(ward ORDER BY day) AS ward FROM visits"
        " GROUP BY patient_id) GROUP BY ward",
        "SELECT AVG(gap) FROM (SELECT DATE_DIFF('day', LAG(day) OVER (PARTITION BY patient_id ORDER BY day), day)"
        " AS gap FROM visits) WHERE gap BETWEEN 0 AND 365",
        "SELECT ward, COUNT(*) FROM (SELECT ward FROM visits"
        " QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day DESC) = 1) GROUP BY ward",
        "SELECT ward, COUNT(*) FROM (SELECT DISTINCT ON (patient_id) ward FROM visits ORDER BY patient_id, day)"
        " GROUP BY ward",
        "SELECT SUM(share) FROM (SELECT stay / SUM(stay) OVER (PARTITION BY patient_id) AS share FROM visits)"
        " WHERE share BETWEEN 0 AND 1",
    ),
    "Joins": (
        "SELECT floor, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY floor",
        "SELECT floor, COUNT(*) FROM visits v, wards w WHERE v.ward = w.ward GROUP BY floor",
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.day < b.day",
        "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE floor = 1)",
        "SELECT COUNT(*) FROM visits v WHERE NOT EXISTS"
        " (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.day < v.day)",
        "SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE stay > 7"
        " INTERSECT SELECT patient_id FROM visits WHERE stay < 2)",
    ),
    "Released values": (
        "SELECT ward, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM visits GROUP BY ward",
        "SELECT MAX(n) - MIN(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)",
        "PIVOT (SELECT ward, stay > 7 AS long, COUNT(*) AS n FROM visits GROUP BY ALL)"
        " ON long IN (FALSE, TRUE) USING SUM(n) GROUP BY ward ORDER BY ward",
        "SELECT 'all' AS what, COUNT(*) FROM visits UNION ALL SELECT 'long', COUNT(*) FROM visits WHERE stay > 7",
    ),
}  # fmt: skip
NOWHERE = Scope(Table("nothing", {}), {})


def expression_of(text: str) -> Expression:
    """An expression without columns, as the parser reads it."""
    return parse_expression(parse_statement(f"SELECT {text}").expressions[0], NOWHERE)


def functions_in(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Call):
        yield expression.name
        for one in expression.arguments:
            yield from functions_in(one)


def value_of(text: str, connection: duckdb.DuckDBPyConnection) -> object:
    """What an expression gives, by the SQL that a question would send."""
    sql = DuckDB().compiled(expression_of(text)).sql("duckdb")
    return connection.execute(f"SELECT {sql}").fetchall()[0][0]


def shown(value: object) -> str:
    match value:
        case None | bool():
            return str(value).upper().replace("NONE", "NULL")
        case float():
            return f"{value:.10g}"
        case str():
            return f"'{value}'"
    return str(value).removesuffix(" 00:00:00")


def line(*cells: str) -> str:
    return "| " + " | ".join(one.replace("|", "\\|") for one in cells) + " |"


def tables() -> str:
    """All tables."""
    connection = duckdb.connect()
    lines = [BEGIN, "", "### All aggregates", "", "| aggregate | an example |", "|---|---|"]
    for kind in sorted(AGGREGATES.classes, key=lambda one: one.listed):
        if kind.listed and kind.example:
            lines.append(line(f"`{kind.listed}`", f"`{kind.example}`"))
    for title, examples in CLAUSES.items():
        lines += ["", f"### Clauses: {title.lower()}", "", *(f"- `{one}`" for one in examples)]
    for title, examples in FUNCTIONS.items():
        lines += ["", f"### All functions: {title.lower()}", "", "| example | gives |", "|---|---|"]
        lines += [line(f"`{one}`", f"`{shown(value_of(one, connection))}`") for one in examples]
    return "\n".join([*lines, "", END])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true", help="only say whether they are current")
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    written = f"{before}{tables()}{after}"
    if options.parse_args().check:
        print("current" if written == page else "docs/sql.md is not current: run `make docs-index`")
        return int(written != page)
    PAGE.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
