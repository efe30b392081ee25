"""A conversation until the budget is used up, replayed on a neighbour: within the budget, unless something is wrong."""

from dataclasses import dataclass, replace

import pytest

from sfumato.audit import conversation, replay
from sfumato.audit.audit_all import CONVERSATIONS
from sfumato.audit.conversation import Conversation, InMemory
from sfumato.audit.exhibits import POLICY, WORST
from sfumato.ledger import Budget, PureBudget

FEW = ("SELECT COUNT(*) AS n FROM visits", "select count(*) from visits", "SELECT * FROM visits")
GAUSSIAN = Conversation(Budget(1.0, 1e-6), POLICY, FEW, epsilon=0.5)
PURE = Conversation(PureBudget(2.0, 1e-6), POLICY, FEW, epsilon=0.5)


def replayed(talk, claim=None):
    return replay(talk, WORST.whole, WORST.without, loss=(claim or talk).loss())


@pytest.mark.parametrize("talk", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_what_an_analyst_sees_until_the_end_is_within_the_budget(talk):
    seen = talk.release(WORST.whole)
    kinds = [told[0] for told in seen[:-1] if isinstance(told[0], str)]
    assert kinds == ["QueryRefused", "BudgetExceeded"]  # rows, and the end
    assert seen[1][2] is False  # the second is the first in other words, and free
    found = replayed(talk)
    assert not found.violated and len(found.steps) == len(seen) - 4


def test_a_ledger_that_lets_too_much_through_is_refuted():
    found = replayed(replace(GAUSSIAN, budget=Budget(2.0, 1e-6)), claim=GAUSSIAN)
    assert found.violated and "exceeds the claim" in found.verdict


@dataclass(frozen=True)
class Talkative(InMemory):
    """An engine that fails where it finds many rows: what comes of that depends on the data."""

    def run(self, sql):
        if super().run("SELECT COUNT(*) > 30 FROM visits")[0][0]:
            raise RuntimeError
        return super().run(sql)


def test_an_error_that_depends_on_data_is_refuted(monkeypatch):
    monkeypatch.setattr(conversation, "InMemory", Talkative)
    found = replay(GAUSSIAN, WORST.without, WORST.whole, loss=GAUSSIAN.loss())
    assert found.violated


def test_the_report_has_conversations_of_each_kind():
    assert {type(one.mechanism.budget) for one in CONVERSATIONS} == {Budget, PureBudget}
    assert all(one.theorems for one in CONVERSATIONS)
