"""Found bounds, replayed on the corpus: both histograms are within what they are charged."""

from dataclasses import replace

import pytest

from sfumato.audit.corpus import neighbours
from sfumato.audit.exhibits import SCALED_POLICY, WORST
from sfumato.audit.scaled_replay import FoundBounds
from sfumato.curator.value_votes import ValueVotes
from sfumato.sql.emit.norm import WHOLE


@pytest.mark.parametrize("policy, others", [(SCALED_POLICY, 1), (replace(SCALED_POLICY, pure=True), 0)])
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
