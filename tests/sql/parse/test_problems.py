"""A refusal says where in the text it applies, and all problems are told at once."""

import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY

RULES = Policy.read(POLICY.replace("cost = {low = -100, high = 1000}", 'cost = {type = "number"}'))


def refused(sql):
    with pytest.raises(QueryRefused) as problem:
        parse_question(sql, RULES)
    return problem.value


@pytest.mark.parametrize(
    ("sql", "marked"),
    [
        ("SELECT COUNT(*) FROM visits WHERE wrd = 'x'", "wrd"),
        ("SELECT ward,\n  MEDIANN(stay)\nFROM visits GROUP BY ward", "MEDIANN"),
        ("SELECT COUNT(*) FROM vists", "vists"),
        ("SELECT COUNT(*) FROM visits WHERE stay > 2 AND day > now()", "now"),
        ("SELECT SUM(n) FROM (SELECT nn AS n FROM visits)", "nn"),
        ("SELECT COUNT(*) FRM visits", "visits"),
        ("SELECT diagnosis, COUNT(*) FROM visits", "diagnosis"),
    ],
)
def test_a_caret_stands_below_the_word(sql, marked):
    problem = refused(sql)
    assert sql[problem.place :].startswith(marked)
    _, place, text, caret, *_ = str(problem).split("\n")
    assert text[caret.index("^") :].startswith(marked)
    line = sql[: problem.place].count("\n") + 1
    assert f"line {line}, column" in place


def test_all_problems_are_told():
    problem = refused("SELECT MEDIANN(stay), SUM(stayy) FROM visits WHERE wrd = 'x' AND day > now()")
    assert len(problem.parts) == 4
    assert all(f"did you mean {name}?" in str(problem) for name in ("MEDIAN", "stay", "ward"))


def test_bounds_are_looked_for_only_without_other_problems():
    assert isinstance(refused("SELECT SUM(cost) FROM visits"), UnboundedColumn)
    assert not isinstance(refused("SELECT SUM(cost), SUM(stayy) FROM visits"), UnboundedColumn)
