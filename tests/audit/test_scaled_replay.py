"""Questions about scaled contributions, replayed on the corpus: every release is within what it is charged."""

import json
from dataclasses import replace

import pytest

from sfumato.audit.corpus import neighbours
from sfumato.audit.exhibits import SCALED_POLICY, SCALED_QUESTIONS, WORST
from sfumato.audit.question_replay import SqlQuestion

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
