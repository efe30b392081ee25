"""Questions about scaled contributions from the grammar, and that the checks can fail."""

import random

import pytest

from sfumato.sql.emit.norm import Scaling
from sfumato.sql.plan import Plan
from tests.fuzz.checks import Failure, Home
from tests.fuzz.scaled import ScaledChecker, fuzz, scaled_world


@pytest.mark.slow
def test_questions_about_scaled_contributions_keep_the_promise():
    """Two worlds; `make fuzz OPTIONS="--family scaled"` asks many more."""
    count = fuzz(21, 100)
    assert count["scaled"] > 40 and count["moved"] > 20 and count["voted"] > 5


def test_a_weight_above_the_bound_is_seen(monkeypatch):
    honest = Scaling.weight
    monkeypatch.setattr(Scaling, "weight", lambda self, place, bound: honest(self, place, bound + bound // 50 + 1))
    with pytest.raises(AssertionError, match="a unit moves more than is claimed"):
        fuzz(20, 300)


def test_a_key_that_forgets_the_condition_is_seen(monkeypatch):
    world = next(one for number in range(20) if scaled_tables(one := scaled_world(20, number)))
    name, column = scaled_tables(world)[0]
    checker = ScaledChecker(world, Home(world))
    texts = [f'SELECT COUNT(*) FROM "{name}" WHERE "{column}" IS {word} NULL' for word in ("", "NOT")]
    try:
        for text in texts:
            assert checker.check(text, random.Random(1)) is not None
        honest = Plan.canonical.func
        monkeypatch.setattr(Plan, "canonical", property(lambda self: honest(self).replace(repr(self.where), "…")))
        with pytest.raises(Failure, match="two questions have one key"):
            for text in texts:
                checker.check(text, random.Random(1))
    finally:
        checker.engine.close()


def scaled_tables(world):
    """(table, column) of tables whose contributions are scaled."""
    tables = [table for table in world.policy.tables.values() if table.scaled and not table.owner]
    return [(table.name, name) for table in tables for name in table.columns if name != table.unit_column]
