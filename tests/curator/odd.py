"""Odd values of every kind for engines to agree on, and expressions over them."""

import itertools
import math

from sfumato.sql.policy import Policy

LEAST, MOST = 5e-324, 1.7976931348623157e308
NUMBERS = [
    None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.5, 0.49999999999999994, 0.1, 0.3,
    7.0, -7.0, 2.675, 60.0, 1e15, 9007199254740993.0, 4503599627370497.5, 9223372036854775807.0, -1e200, 1e-200, 1e300,
    -1e308, MOST, -MOST, LEAST, -LEAST, 2.2250738585072014e-308, 1e-310, 1 / 3,
]  # fmt: skip
NUMERALS = [
    "", " ", " 1 ", "1", "-1", "+5", ".5", "5.", "1e5", "1E5", "1e999", "-1e999", "1e-999", "-1e-400", "1e9999999999",
    "0e99999999999999", "1e-99999999999", "1_000", "1__0", "_1", "1.5_5", "1e1_0", "0x1F", "0b1", "inf", "-Infinity",
    "nan", "-nan", "+inf", "infin", "abc", "1,000", "1d", "--1", "1e", ".", "e5", "\t1\n", "1 2", "\u00a01", "9" * 400,
    "0." + "0" * 400 + "1", "true", "TRUE", "t", "yes", "y", "on", "no", "off", "f", "5", "tru",
]  # fmt: skip
WORDS = [
    None, "a", "A", "ä", "Ä", "ß", "İ", "ı", "ǆ", "Σ", "ς", "é", "e\u0301", "😀x", "aXbX", "%", "_", "\\", "a\\b", "a%",
    "'; --", "\u2003b\u3000", "B", "Z", "z", "x" * 12000, "ß" * 1001, "1" * 1001,
]  # fmt: skip
MOMENTS = [
    "2024-02-29", "2024-02-29 10:11:12.5", "2024-02-29T23:59:59.999999", "2023-02-29", "2024-2-9", "2024-13-01",
    "2024-00-10", "2024-04-31", "1900-02-29", "2000-02-29", " 2024-02-09 ", "2024-02-09x", "2024-02-09 10:61:00",
    "2024-02-09 24:00:00", "2024-02-09 10:11", "2024-02-09 10:11:12.1234567", "2024-02-09 10:11:12+02", "0001-01-01",
    "9999-12-31", "10000-01-01", "294247-01-10", "294248-01-01", "5000000-01-01", "99999999-01-01", "infinity",
    "-infinity", "now", "today", "yesterday", "0044-03-15 (BC)",
]  # fmt: skip
TEXTS = [*NUMERALS, *WORDS, *MOMENTS]
DATES = [
    None, "infinity", "-infinity", "0001-01-01", "9999-12-31 23:59:59.999999", "1970-01-01", "2024-02-29 10:11:12.5",
    "1900-03-01", "1582-10-10", "1969-12-31 23:59:59", "10000-01-01", "294246-01-01", "2000-12-31", "2024-02-29",
    "1752-09-02", "2038-01-19 03:14:08", "BC 0044-03-15", "BC 0001-12-31 12:00:00", "2024-12-31", "2024-01-01",
    "1900-02-28 23:59:59.999999", "2262-04-11", "1677-09-21", "0004-02-29", "99999-12-31",
]  # fmt: skip
PATTERNS = [None, "", "a", "%", "_", "%a%", "\\", "a\\b", "%\\", "b", "1", "X"]
TABLES = {  # columns with their types, and rows
    "numbers": ({"a": "DOUBLE PRECISION", "b": "DOUBLE PRECISION"}, list(itertools.product(NUMBERS, NUMBERS))),
    "texts": (dict.fromkeys("spnmt", "TEXT"), [(s, p, s, s, s) for s in TEXTS for p in PATTERNS]),
    "dates": ({"d": "TIMESTAMP", "e": "DATE"}, list(itertools.product(DATES, DATES))),
    "truths": ({"y": "BOOLEAN", "z": "BOOLEAN"}, list(itertools.product([None, True, False], repeat=2))),
}
RULES = Policy.read("""
version = 1
[budget]
epsilon = 500
delta = 1e-6
[tables.numbers]
unit = "id"
rows = 1
[tables.numbers.columns]
a = {type = "number"}
b = {type = "number"}
[tables.texts]
unit = "id"
rows = 1
[tables.texts.columns]
s = {type = "text"}
p = {type = "text"}
n = {type = "number"}
m = {type = "date"}
t = {type = "boolean"}
[tables.dates]
unit = "id"
rows = 1
[tables.dates.columns]
d = {type = "date"}
e = {type = "date"}
[tables.truths]
unit = "id"
rows = 1
[tables.truths.columns]
y = {type = "boolean"}
z = {type = "boolean"}
""")

FORMS = {
    "numbers": [
        "a + b", "a - b", "a * b", "a / b", "MOD(a, b)", "-a", "ABS(a)", "FLOOR(a)", "CEIL(a)", "ROUND(a)",
        "ROUND(a, 2)", "ROUND(a, 0)", "ROUND(a, 12)", "LEAST(a, b)", "GREATEST(a, b)", "CLAMP(a, -3, b)",
        "WIDTH_BUCKET(a, 0, 60, 6)", "a = b", "a < b", "a <= b", "a IN (b, 1, NULL)", "a IS NULL", "COALESCE(a, b)",
        "CASE WHEN a < b THEN a ELSE b END", "NULLIF(a, b)", "a + b > 1e308", "CAST(a AS INT)", "a * b * a",
        "a / b / b", "(a - b) / (a + b)", "a BETWEEN -1 AND b", "1e308 * 10 + a", "a * 1e-320 * 1e-10",
        "MOD(a * 0.1, 0.3)",
    ],
    "texts": [
        "CAST(s AS DOUBLE)", "CAST(s AS INT)", "CAST(s AS DATE)", "CAST(s AS TIMESTAMP)", "LOWER(s)", "UPPER(s)",
        "TRIM(s)", "LTRIM(s)", "RTRIM(s)", "LENGTH(s)", "SUBSTR(s, 2, 3)", "SUBSTR(s, 1, 0)", "REPLACE(s, 'X', '')",
        "REPLACE(s, 'a', 'b')", "s || p", "CONCAT(s, p, 'x')", "STARTS_WITH(s, p)", "ENDS_WITH(s, p)", "CONTAINS(s, p)",
        *(f"s LIKE '{pattern}'" for pattern in PATTERNS if pattern),
        "s = p", "s < p", "s <= 'Z'", "s IN (p, 'a', NULL)", "COALESCE(s, p)", "n", "m",
        "t", "CASE WHEN s < 'ä' THEN 'B' ELSE p END", "CASE WHEN t THEN 'a' ELSE 'B' END < 'C'",
    ],
    "dates": [
        "d", "e", "d = e", "d < e", "YEAR(d)", "MONTH(d)", "DAY(d)", "HOUR(d)", "WEEKDAY(d)", "DATE_TRUNC('year', d)",
        "DATE_TRUNC('month', d)", "DATE_TRUNC('day', d)", "CAST(d AS DATE)", "CAST(d AS TEXT)", "d > '2000-01-01'",
        "d < '5000000-01-01'", "CAST(e AS TEXT)", "COALESCE(d, e)", "CAST(d AS TIMESTAMP)",
        "d BETWEEN '1900-01-01' AND e",
    ],
    "truths": [
        "y AND z", "y OR z", "NOT y", "y = z", "CAST(y AS DOUBLE)", "CAST(y AS TEXT)", "COALESCE(y, z)", "y IS NULL",
    ],
}  # fmt: skip


def spelled(value, dialect):
    """Years before the first are written in different ways."""
    if not (isinstance(value, str) and value.startswith("BC ")):
        return value
    day, _, time = value[3:].partition(" ")
    return f"{day} (BC) {time}".strip() if dialect == "duckdb" else f"{day} {time} BC"


def filled(execute, dialect, tables):
    """Tables with these rows; each row is a person of its own, unless a column says whose it is."""
    mark = {"duckdb": "?", "postgres": "%s"}[dialect]
    for name, (columns, rows) in tables.items():
        types = {**({} if "id" in columns else {"id": "BIGINT"}), **columns}
        execute(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in types.items())})")
        listed = [[spelled(value, dialect) for value in one] for one in zip(*rows, strict=True)]
        listed = listed if "id" in columns else [list(range(len(rows))), *listed]
        taken = ", ".join(f"UNNEST(CAST({mark} AS {kind}[]))" for kind in types.values())
        execute(f"INSERT INTO {name} SELECT {taken}", listed)
