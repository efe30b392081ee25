"""Neighbours, fuzzed: given the same noisy answers, one unit moves every sum of a fit within its stated sensitivity.

A fit is a sequence of noisy answers, each computed from rows and from earlier answers. It is run twice: the second time
about a neighbour, with the answers of the first. Every exact sum may then move by what its noise was bought for, and as
many answers must be asked for, of the same shapes. This finds any dependence on data, of whatever kind.
"""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.learn.spending import GaussianSpending, PureSpending
from tests.learn.catalogue import APPROXIMATE, ESTIMATORS, ROWS_ONLY

FAST = {"rounds": 2, "n_trees": 2, "depth": 2}
ODD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 1.0, -1.0, 0.0, 5e-324, 0.999999999]
KINDS = [kind for kind in ESTIMATORS if kind not in APPROXIMATE]


class Answers:
    """The noisy answers of a fit: drawn anew, or those of another fit, with its exact sums beside ours."""

    def __init__(self, monkeypatch, rng):
        self.rng, self.told, self.place, self.choices_moved = rng, [], None, 0
        for cls in (GaussianSpending, PureSpending):
            monkeypatch.setattr(cls, "add_noise", lambda own, sums, s: self.answer("sum", own, sums, s))
            monkeypatch.setattr(cls, "add_noise_by_block", lambda own, sums, s: self.answer("blocks", own, sums, s))
            monkeypatch.setattr(cls, "choose", lambda own, sums, rows=1: self.answer("choice", own, sums, rows))

    def answer(self, what, own, exact, size):
        exact = np.array(exact, np.int64)
        if self.place is None:
            scale = own.fold * (size if what == "choice" else size.linf) / min(own.amount, 5.0)
            noisy = exact + np.rint(self.rng.laplace(0, scale, exact.shape)).astype(np.int64)
            said = int(np.argmax(noisy)) if what == "choice" else noisy
            self.told.append((what, exact, size, said))
            return said
        before = self.told[self.place]
        self.place += 1
        assert (before[0], before[1].shape, before[2]) == (what, exact.shape, size)
        move = (exact - before[1]).astype(object)
        check_move(what, move, size, own.fold)
        self.choices_moved += what == "choice" and bool(move.any())
        return before[3]


def check_move(what, move, size, fold):
    if what == "choice":
        assert max(map(abs, move)) <= size
        assert fold == 2 or not (min(move) < 0 < max(move))
        return
    blocks = move if what == "blocks" else move.reshape(1, -1)
    fold = fold if what == "blocks" else 1  # blocks state what adding a unit moves, sums what the relation does
    assert sum(math.isqrt(int((one * one).sum())) for one in blocks) <= fold * size.l2
    assert sum(int(abs(one).sum()) for one in blocks) <= fold * size.l1
    assert sum(int(abs(one).max()) for one in blocks) <= fold * size.linf


def table_of(kind, rng):
    """A dozen rows, some of them odd, and targets."""
    X = rng.uniform(-1.2, 1.2, (12, 3)) if kind is not learn.MultinomialNB else rng.poisson(1, (12, 3)) * 1.0
    places = rng.random(X.shape) < 0.1
    X[places] = rng.choice(ODD, places.sum())
    y = rng.integers(0, 3, 12) if issubclass(kind, learn.Classifier) else rng.choice([*ODD, 0.3, -0.7], 12)
    return X, y


def replaced(values, others, place):
    found = values.copy()
    found[place] = others[place]
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_unit_moves_every_sum_of_a_fit_within_its_sensitivity(kind, monkeypatch):
    rng = np.random.default_rng(3)
    for turn in range(16):
        relation = sf.ReplaceOne if turn % 2 else sf.AddRemove
        X, y = table_of(kind, rng)
        units = rng.integers(0, 6, 12) if turn % 4 > 1 and kind not in ROWS_ONLY else None
        options = {"epsilon": float(rng.choice([0.5, 50.0])), "delta": (0.0, 1e-6)[turn // 4 % 2], "relation": relation}
        options |= {"rows_per_unit": int(rng.integers(1, 4))} if units is not None else {}
        estimator = kind(**ESTIMATORS[kind] | options)
        estimator.set_params(**{name: value for name, value in FAST.items() if name in estimator.get_params()})
        if hasattr(estimator, "solver"):
            estimator.solver = str(rng.choice(["statistics", "boosted", "descent", "auto"]))
        leaving = 4 if units is None else units == units[4]
        answers = Answers(monkeypatch, rng)
        estimator.fit(X, y, units=units)
        answers.place = 0
        if relation is sf.AddRemove:
            stay = np.delete(np.arange(12), leaving) if units is None else np.flatnonzero(~leaving)
            neighbour = X[stay], y[stay], None if units is None else units[stay]
        else:
            others, labels = table_of(kind, rng)
            neighbour = replaced(X, others, leaving), replaced(y, labels, leaving), units
            if units is not None:  # by one with all rows of another table, so of another number
                stay = ~leaving
                owner = np.append(units[stay], np.full(12, units[4]))
                neighbour = np.vstack([X[stay], others]), np.append(y[stay], labels), owner
        estimator.fit(*neighbour[:2], units=neighbour[2])
        assert answers.place == len(answers.told) > 0
        assert answers.choices_moved <= 2 * (1 + (relation is sf.ReplaceOne))  # one node of each of two levels
