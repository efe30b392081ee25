"""MODE: which values its statement reads, and by how many people one leads."""

import pytest

from sfumato.aggregates.mode import ModeChoice, StableMode, vote_statement
from sfumato.aggregates.registry import parse_question
from sfumato.sql.dialects import DIALECTS
from sfumato.sql.dialects.base import raw
from sfumato.sql.emit.values import X
from tests.aggregates.friends import RULES, way_of


def test_a_mode_reads_two_values_of_many_and_all_of_few(friends):
    engine = friends.engine
    few, text = way_of("SELECT ward, MODE(stay > 5) FROM visits GROUP BY ward")
    assert isinstance(few, ModeChoice) and len(engine.run(text)) <= 6
    many, text = way_of("SELECT MODE(day) FROM visits")
    assert isinstance(many, StableMode) and len(engine.run(text)) == 2
    number, _ = way_of("SELECT MODE(stay) FROM visits")
    assert isinstance(number, ModeChoice) and len(number.choices) == 481  # 0 … 60 in eighths


@pytest.mark.parametrize("name", ["duckdb", "postgres", "spark"])
def test_a_mode_of_days_is_read_as_texts_and_one_of_texts_as_it_is(name):
    """The answer holds the value itself, and a moment of an engine's own has no place in it."""
    found = {}
    for column in ("day", "diagnosis"):
        plan = parse_question(f"SELECT MODE({column}) FROM visits", RULES).plan
        to = DIALECTS[name].about(plan)
        written = to.date_text(raw(X)).sql(name)
        found[column] = written in vote_statement(plan, plan.standalone[0], 7, to)
    assert found == {"day": True, "diagnosis": False}


def test_a_lead_counts_in_people():
    way, _ = way_of("SELECT MODE(day) FROM visits")
    assert way.plan.rows == 3
    for lead, people in [(0, 0), (1, 0), (3, 0), (4, 1), (6, 1), (7, 2)]:
        found = way.lead([("a", 10 + lead), ("b", 10)])
        assert found.distance == people and (found.value == "a" or not lead)
    assert way.lead([]).distance == 0 and way.lead([("a", 4)]).distance == 1
