"""Some hundred questions about scaled contributions from the grammar, and that the checks can fail."""

import pytest

from sfumato.sql.emit.norm import Scaling
from sfumato.sql.plan import Plan
from tests.fuzz.scaled import fuzz


def test_questions_about_scaled_contributions_keep_the_promise():
    count = fuzz(20, 60)
    assert count["scaled"] > 25 and count["moved"] > 12


@pytest.mark.slow
def test_more_questions_about_scaled_contributions_keep_the_promise():
    count = fuzz(21, 600)
    assert count["scaled"] > 250 and count["moved"] > 120 and count["voted"] > 40


def test_a_weight_above_the_bound_is_seen(monkeypatch):
    honest = Scaling.weight
    monkeypatch.setattr(Scaling, "weight", lambda self, place, bound: honest(self, place, bound + bound // 50 + 1))
    with pytest.raises(AssertionError, match="a unit moves more than is claimed"):
        fuzz(20, 300)


@pytest.mark.slow
def test_a_key_that_forgets_the_condition_is_seen(monkeypatch):
    honest = Plan.canonical.fget
    monkeypatch.setattr(Plan, "canonical", property(lambda self: honest(self).replace(repr(self.where), "…")))
    with pytest.raises(AssertionError, match="two questions have one key"):
        fuzz(20, 300)
