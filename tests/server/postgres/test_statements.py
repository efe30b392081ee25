"""Texts of clients: split, sorted, and their parameters filled in as literals."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import QueryRefused
from sfumato.server.postgres import types
from sfumato.server.postgres.statements import Kind, fill, parameter_types, sort, split
from sfumato.sql.parse.text import parse_statement


def test_semicolons_in_quotes_and_comments_do_not_split():
    text = "SELECT ';' ; -- a ; b\nSELECT 1 /* ; */; ;"
    assert [one.strip() for one in split(text)] == ["SELECT ';'", "-- a ; b\nSELECT 1 /* ; */"]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("  ", Kind.EMPTY, ()),
        ("/* hello */ begin", Kind.COMMAND, ("BEGIN", "begin", "")),
        ("START TRANSACTION READ ONLY", Kind.COMMAND, ("BEGIN", "begin", "")),
        ("END", Kind.COMMAND, ("COMMIT", "commit", "")),
        ("ROLLBACK TO SAVEPOINT a", Kind.COMMAND, ("ROLLBACK", "back", "a")),
        ('release savepoint "A b"', Kind.COMMAND, ("RELEASE", "release", "A b")),
        ("ROLLBACK WORK", Kind.COMMAND, ("ROLLBACK", "rollback", "")),
        ("CLOSE ALL", Kind.COMMAND, ("CLOSE", "close", "all")),
        ('declare "SQL_CUR0x7f" cursor with hold for SELECT 1', Kind.DECLARE, ("SQL_CUR0x7f", "hold")),
        ("DECLARE c NO SCROLL CURSOR FOR SELECT COUNT(*) FROM visits", Kind.DECLARE, ("c", "")),
        ('fetch 100 in "SQL_CUR0x7f"', Kind.FETCH, ("SQL_CUR0x7f", "100")),
        ("FETCH FORWARD ALL FROM c", Kind.FETCH, ("c", "ALL")),
        ("FETCH NEXT c", Kind.FETCH, ("c", "NEXT")),
        ("FETCH c", Kind.FETCH, ("c", "1")),
        ("SET sfumato.epsilon = .1", Kind.SET, ("sfumato.epsilon", ".1")),
        ("SET SESSION client_encoding TO 'UTF8'", Kind.SET, ("client_encoding", "UTF8")),
        ("SHOW TIME ZONE", Kind.SHOW, ("timezone",)),
        ("SELECT 1", Kind.CATALOGUE, ()),
        ("SELECT COUNT(*) FROM visits", Kind.QUESTION, ()),
        ("EXPLAIN PRIVACY SELECT COUNT(*) FROM visits", Kind.QUESTION, ()),
        ("COPY (SELECT 1) TO STDOUT WITH CSV", Kind.COPY, ("WITH CSV",)),
    ],
)
def test_statements_are_sorted(text, kind, words):
    found = sort(text)
    assert (found.kind, found.words) == (kind, words)


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30))
def test_a_text_parameter_stays_one_literal(value):
    filled = fill("SELECT COUNT(*) FROM t WHERE a = $1 AND b = '$1' -- $1", [value])
    tree = parse_statement(filled)
    (condition,) = [one for one in tree.find_all(type(tree.args["where"].this.left)) if one.left.name == "a"]
    assert condition.right.is_string and condition.right.this == value


def test_other_parameters():
    day = datetime.date(2024, 2, 29)
    assert fill("$1 $2 $3 $4 $5", [None, True, -2.5, 7, day]) == "NULL TRUE (-2.5) (7) DATE '2024-02-29'"
    with pytest.raises(QueryRefused):
        fill("SELECT $2", [1])
    with pytest.raises(QueryRefused):
        fill("SELECT $100000", [1])


def test_types_of_parameters_follow_from_columns():
    text = "SELECT COUNT(*) FROM v WHERE ward = $1 AND $2 < age AND day BETWEEN $3 AND $4 LIMIT $5"
    columns = {"ward": types.TEXT, "age": types.FLOAT8, "day": types.TIMESTAMP}
    found = parameter_types(text, [], columns)
    assert found == [types.TEXT, types.FLOAT8, types.TIMESTAMP, types.TIMESTAMP, types.INT8]
    assert parameter_types(text, [25, 23], columns)[:2] == [types.TEXT, types.INT4]
