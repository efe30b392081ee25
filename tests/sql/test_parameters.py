"""Parameters are values: whatever they hold, the question is that with literals, and nothing else."""

import datetime

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import QueryRefused
from sfumato.sql.parameters import with_parameters

VALUES = (
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), max_size=30) | st.dates()
    | st.sampled_from(["' OR 1 = 1 --", "''; DROP TABLE t", "\\'", "?", "$1", "/* */"])
)  # fmt: skip


@given(one=VALUES, other=VALUES)
def test_values_stay_values(one, other):
    bound = with_parameters("SELECT COUNT(*) FROM t WHERE a = ? AND b - $2 < 'it''s ?' -- $1", [one, other])
    select = sqlglot.parse_one(bound, read="duckdb")
    both = select.args["where"].this
    assert len(list(select.find_all(sqlglot.exp.Table))) == 1
    assert both.left.left.name == "a"
    assert isinstance(both, sqlglot.exp.And)
    if isinstance(one, str):
        assert both.left.right.this == one


def test_names_and_numbers():
    today = datetime.datetime(2024, 2, 29, 10)
    found = with_parameters("SELECT $day, $x, $x", {"day": today, "x": -2})
    assert found == "SELECT TIMESTAMP '2024-02-29 10:00:00', (-2), (-2)"
    assert with_parameters("SELECT '?'", None) == "SELECT '?'"


@pytest.mark.parametrize(
    ("sql", "values", "words"),
    [
        ("SELECT ?", [], "no parameter 1"),
        ("SELECT ?", [1, 2], "more parameters"),
        ("SELECT $x", {"y": 1}, "no parameter 'x'"),
        ("SELECT 1 FROM ?", ["t"], "stand for values"),
        ("SELECT ?", [float("nan")], "is a float"),
        ("SELECT ?", [object()], "is a object"),
        ("SELECT ?", "a", "a list"),
        ("SELECT ?", [datetime.datetime.now(datetime.UTC)], "without time zone"),
    ],
)
def test_what_is_no_value_is_refused(sql, values, words):
    with pytest.raises(QueryRefused, match=words):
        with_parameters(sql, values)
