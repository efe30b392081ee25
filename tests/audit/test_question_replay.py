"""SQL questions, replayed on the corpus: no unit moves the exact tables by more than was charged."""

import numpy as np
import pytest

from sfumato.audit.corpus import neighbours
from sfumato.audit.exhibits import POLICY
from sfumato.audit.question_replay import SqlQuestion


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ward, SUM(stay), AVG(cost) FROM visits GROUP BY ward",
        "SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis",
    ],
)
def test_no_neighbour_of_the_corpus_moves_a_plan_by_more_than_its_price(sql):
    question, moved = SqlQuestion(sql, POLICY), 0
    for pair in neighbours(POLICY)[::6]:
        found = question.replay(pair)
        assert not found.violated, (pair.name, found)
        moved += len(found.steps)
    assert moved > 10


def test_tables_are_read_as_the_curator_reads_them():
    pair = neighbours(POLICY)[0]
    question = SqlQuestion("SELECT ward, COUNT(*) FROM visits GROUP BY ward", POLICY)
    exact = question.measures(question.exact(pair.whole))
    noisy = [row["noisy"] for row in question.many(pair.whole, 300)]
    means = np.mean(noisy, axis=0).ravel()
    assert np.allclose(means, [exact.get((ward,), [0])[0] for ward in ("north", "south", "west")], atol=20)
