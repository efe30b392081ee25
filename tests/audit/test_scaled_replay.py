"""Questions about scaled contributions, and bounds that are found, replayed: every release is within its price."""

import json
from dataclasses import replace

import pytest

from sfumato.audit.corpus import neighbours
from sfumato.audit.exhibits import SCALED_POLICY, SCALED_QUESTIONS, WORST
from sfumato.audit.question_replay import SqlQuestion
from sfumato.audit.scaled_replay import FoundBounds
from sfumato.curator.value_votes import ValueVotes
from sfumato.sql.emit.norm import WHOLE

PURE = replace(SCALED_POLICY, pure=True)
QUESTIONS = [
    *((sql, SCALED_POLICY) for sql in SCALED_QUESTIONS),
    ("SELECT ward, SUM(stay), COUNT(*) FROM visits GROUP BY ward", PURE),
    ("SELECT STDDEV(stay), COUNT(DISTINCT patient_id) FROM visits WHERE urgent", PURE),
    ("SELECT ward, MEDIAN(stay), COUNT(*) FROM visits GROUP BY ward", SCALED_POLICY),
]


@pytest.mark.parametrize("sql, policy", QUESTIONS)
def test_no_neighbour_of_the_corpus_moves_a_step_by_more_than_its_price(sql, policy):
    question, moved = SqlQuestion(sql, policy), 0
    for pair in [WORST, *neighbours(SCALED_POLICY)[::34]]:
        found = question.replay(pair)
        assert not found.violated, (pair.name, found)
        moved += len(found.steps)
    assert moved >= 5


def test_a_question_is_released_as_the_curator_releases_it():
    (found,) = SqlQuestion(SCALED_QUESTIONS[1], SCALED_POLICY).many(WORST.whole, 1)
    assert {"keys", "noisy", "choices", "paid", "people"} <= found.keys()
    assert found["keys"] == [["north"], ["south"], ["west"]]
    assert json.dumps(found["choices"])


def test_private_keys_of_one_unit_alone_are_not_shown():
    question = SqlQuestion(SCALED_QUESTIONS[2], SCALED_POLICY)
    assert all(one["keys"] == [] for one in question.many(WORST.whole, 5))


# ---- bounds that are found -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy, others", [(SCALED_POLICY, 1), (PURE, 0)])
def test_no_neighbour_of_the_corpus_moves_votes_by_more_than_their_price(policy, others):
    """`sfumato audit` replays more of them."""
    question, moved = FoundBounds("visits.stay", policy), 0
    for pair in [WORST, *neighbours(SCALED_POLICY)[:others]]:
        found = question.replay(pair)
        assert not found.violated, (pair.name, found)
        moved += len(found.steps)
    assert moved >= 3


def test_a_unit_with_two_votes_is_found(monkeypatch):
    """The histogram of another kind: every row votes, so that a unit with many rows has many votes."""
    honest = ValueVotes.requests

    def every_row(step, salt, dialect):
        (one,) = honest(step, salt, dialect)
        return [replace(one, direct=one.direct.replace(str(WHOLE), str(2 * WHOLE)))]

    monkeypatch.setattr(ValueVotes, "requests", every_row)
    assert FoundBounds("visits.stay", SCALED_POLICY).replay(WORST).violated


def test_a_second_histogram_that_is_not_charged_is_found(monkeypatch):
    monkeypatch.setattr(FoundBounds, "votes", lambda self, question: ValueVotes(question.plan, self.price))
    assert FoundBounds("visits.stay", SCALED_POLICY).replay(WORST).violated
