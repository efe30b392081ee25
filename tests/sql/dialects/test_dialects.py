"""What each engine is told of: nothing that only another engine knows, and of every function, or it is refused."""

import itertools
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import duckdb
import pytest
import sqlglot
from sqlglot.tokens import TokenType

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.sql.dialects import DIALECTS, dialect_of
from sfumato.sql.expressions import Call, Column
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.numbers import SIZES
from sfumato.sql.functions.texts import case_pairs
from sfumato.sql.policy import Policy
from tests.curator import odd
from tests.engines.test_conformance import JOINED, MORE, ORDERED, WIDE
from tests.sql.emit.test_bounding import QUESTIONS

WORDS = {  # of SQL, before a bracket
    "AND", "AS", "BETWEEN", "BY", "CASE", "ELSE", "FROM", "IN", "IS", "JOIN", "LIKE", "MATERIALIZED", "NOT", "ON", "OR",
    "OVER", "SELECT", "THEN", "USING", "WHEN", "WHERE", "ESCAPE", "BOTH",
}  # fmt: skip
COMMON = {
    "ABS", "CAST", "COALESCE", "COUNT", "DATE_TRUNC", "DECIMAL", "DENSE_RANK", "FLOOR", "GREATEST", "LEAST", "LEFT",
    "LENGTH", "LOWER", "MAX", "MIN", "NULLIF", "REPLACE", "ROW_NUMBER", "SUBSTRING", "SUM", "TRANSLATE", "CEIL",
}  # fmt: skip
KNOWN = {
    "postgres": COMMON | {
        "ARRAY_AGG", "ASCII", "BIT", "BTRIM", "CHR", "DATE_PART", "DIV", "ENCODE", "FLOAT8SEND",
        "ISFINITE", "LTRIM", "MAKE_INTERVAL", "MAKE_TIMESTAMP", "MOD", "OCTET_LENGTH", "REGEXP_MATCH", "REGEXP_REPLACE",
        "RIGHT", "ROW", "RPAD", "RTRIM", "SPLIT_PART", "STARTS_WITH", "STRING_AGG", "STRING_TO_ARRAY", "STRPOS",
        "CONCAT", "MD5", "SUBSTR", "UNNEST", "UPPER",
    },
    "spark": COMMON | {
        "ARRAY", "COLLECT_LIST", "CONCAT", "CONV", "CONTAINS", "DAY", "DAYOFWEEK", "DOUBLE", "ELEMENT_AT",
        "ENDSWITH", "MD5", "HOUR", "ISNAN", "LPAD", "MONTH", "NANVL", "REGEXP_EXTRACT", "REGEXP_REPLACE",
        "SORT_ARRAY", "STARTSWITH", "STRUCT", "TIMESTAMP_MICROS", "TRANSFORM", "TRIM", "TRY_CAST", "YEAR",
    },
}  # fmt: skip


@cache
def offers():
    asked = [
        (f"SELECT {form}, COUNT(*) FROM {source} GROUP BY 1", odd.RULES)
        for source in odd.FORMS
        for form in odd.FORMS[source]
    ]
    asked += [(sql, Policy.read(WIDE + MORE)) for sql in [*QUESTIONS, *ORDERED, *JOINED]]
    return [offer_for_epsilon(parse_question(sql, policy), 1.0, 1e-9, Mu) for sql, policy in asked]


def told(name):
    """All that an engine is told."""
    return [text for offer in offers() for text in statements(offer, 7, name)]


@pytest.mark.parametrize("name", ["postgres", "spark"])
def test_a_dialect_uses_nothing_that_its_engine_does_not_have(name):
    seen = set()
    texts = told(name)
    for text in texts[::8]:  # which takes longer than all the rest
        sqlglot.parse_one(text, read=name)
    for text in texts:
        for word, after in itertools.pairwise(sqlglot.tokenize(text, read=name)):
            if after.token_type is TokenType.L_PAREN and word.text.replace("_", "").isalnum():
                seen.add(word.text.upper())
    seen = {word for word in seen - WORDS if not word.isdigit()}
    assert seen <= KNOWN[name], seen - KNOWN[name]
    assert len(seen) > 30


@pytest.mark.parametrize("name", DIALECTS)
def test_no_dialect_draws_or_counts_on_where_a_row_lies(name):
    for text in told(name):
        assert not re.search(r"\b(random|rand|uuid|rowid|ctid|now|current_|nextval|monotonically)", text, re.I)


@pytest.mark.parametrize("name", ["postgres", "spark"])
def test_a_function_that_a_dialect_does_not_know_is_refused_in_words(name, monkeypatch):
    """So a new one is, until somebody has seen to it that it cannot raise there."""
    monkeypatch.setitem(FUNCTIONS, "novelty", replace(FUNCTIONS["abs"], same_in=()))
    column = Column("t0.a", odd.RULES.tables["numbers"].columns["a"])
    with pytest.raises(QueryRefused, match=rf"NOVELTY cannot be asked of {name}(.|\n)*docs/engines.md"):
        DIALECTS[name].compiled(Call("novelty", (column,)))
    with pytest.raises(QueryRefused, match="number itself"):
        DIALECTS[name].compiled(Call("text", (column,)))


@pytest.mark.parametrize("name", ["postgres", "spark"])
def test_a_magnitude_is_looked_up_among_all_powers_of_two(name):
    column = Column("t0.a", odd.RULES.tables["numbers"].columns["a"])
    tree = sqlglot.parse_one(DIALECTS[name].compiled(Call("magnitude", (column,))).sql(name), read=name)
    lists = [list(array.find_all(sqlglot.exp.Literal)) for array in tree.find_all(sqlglot.exp.Array)]
    sizes = [[float(one.this) for one in found] for found in lists if len(found) == SIZES]
    assert sizes and all(2 * a == b for found in sizes for a, b in itertools.pairwise(found))


def test_there_are_no_other_dialects():
    with pytest.raises(InvalidParameter, match="duckdb, postgres, spark"):
        dialect_of("sqlite")


def test_letters_change_their_case_as_at_home():
    """DuckDB, and the table that other engines are given. New editions of Unicode have a few more letters."""
    letters = "".join(chr(n) for n in range(128, 0x110000) if not 0xD800 <= n < 0xE000)
    with duckdb.connect() as connection:
        for name in ("upper", "lower"):
            there = connection.execute(f"SELECT {name}(?)", [letters]).fetchone()[0]
            here = letters.translate(str.maketrans(*case_pairs(name)))
            differ = [letter for letter, a, b in zip(letters, here, there, strict=True) if a != b]
            assert len(differ) < 100
            assert not [letter for letter in differ if letter < "\u0250" or "\u0370" <= letter < "\u0590"]


def test_the_documents_name_every_function():
    """docs/sql.md lists what may be asked: one spelling of each function that has a name of its own."""
    page = (Path(__file__).parents[3] / "docs" / "sql.md").read_text()
    section = page.partition("## Rows")[2].partition("### Lengths")[0].upper()
    for name, function in FUNCTIONS.items():
        nodes = [one for one in function.spelled if isinstance(one, str) or issubclass(one, sqlglot.exp.Func)]
        words = {word for one in nodes for word in ([one.upper()] if isinstance(one, str) else one.sql_names())}
        found = [re.search(rf"(?<!\w){re.escape(word)}(?!\w)", section) for word in (*words, name.upper())]
        assert not nodes or any(found), (name, words)


def test_the_table_in_the_documents_is_right():
    """docs/engines.md says of each function whether an engine is told of it."""
    page = (Path(__file__).parents[3] / "docs" / "engines.md").read_text()
    lines = [line for line in page.partition("## Functions")[2].splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    found = {row[0].strip("`").replace("\\", ""): row[1:] for row in rows}
    marks = {True: "yes", False: "no"}
    expected = {name: [marks[name in one.functions] for one in DIALECTS.values()] for name in FUNCTIONS}
    assert {name: [cell.split()[0] for cell in cells] for name, cells in found.items()} == expected


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_types_are_those_of_the_table_that_is_read_and_of_no_other_of_its_name(name):
    """Columns of UNION ALL are made by us; a table of the database that is called like the union has other ones."""
    policy = Policy.read(WIDE + MORE)
    plain = parse_question("SELECT SUM(stay) FROM visits", policy).plan.table
    union = parse_question(
        "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION ALL SELECT stay FROM visits) u", policy
    ).plan.table
    assert union.branches
    to = type(dialect_of(name))(
        schema={plain.name: {"stay": "integer"}, union.name: dict.fromkeys(union.columns, "text")}
    )
    assert to.stored_types(plain) == {"stay": "integer"}
    assert to.stored_types(union) == {}
