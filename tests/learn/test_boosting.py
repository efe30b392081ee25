"""Boosting: as many and as large trees as noise allows, and early stopping at no further price."""

import numpy as np
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.errors import InvalidParameter
from sfumato.learn import boosting, early_stopping
from sfumato.learn.early_stopping import choose_rounds, hold_back, take
from sfumato.learn.spending import PureSpending
from tests.learn.catalogue import CLASSES, REGRESSION
from tests.learn.data import blobs, line

PURE = {"epsilon": 0.5}


def test_trees_are_fewer_and_smaller_where_there_is_more_noise():
    model = learn.GradientBoostingRegressor(epsilon=1, delta=1e-6, **REGRESSION)
    shapes = [model.shape(n, 1, model.spending(), link=False) for n in (100, 1000, 10_000, 1_000_000)]
    assert [one.rounds for one in shapes] == [1, 15, 60, 60]
    assert model.preview(1000, 3).error > model.preview(10_000_000, 3).error
    own = learn.GradientBoostingRegressor(epsilon=1, rounds=7, depth=5, learning_rate=0.5, **REGRESSION)
    assert own.shape(100, 1, own.spending(), link=False) == boosting.Shape(7, 5, 0.5)
    with pytest.raises(InvalidParameter):
        learn.GradientBoostingRegressor(epsilon=1, learning_rate=2, **REGRESSION).fit(*line(20))


def test_it_is_not_worse_than_the_mean_where_noise_hides_everything():
    """Mean of five fits to 300 rows of noise, pure ε = ½: −0.01, of deviation 0.02. 30 rounds have −0.5."""
    rng = np.random.default_rng(5)
    X, y = rng.uniform(-1, 1, (300, 3)), rng.uniform(-1, 1, 300)
    fits = [learn.GradientBoostingRegressor(seed=seed, **PURE, **REGRESSION).fit(X, y) for seed in range(5)]
    assert np.mean([fit.public_score(X, y) for fit in fits]) > -0.12


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_early_stopping_keeps_good_rounds_and_costs_nothing_more(delta, relation, monkeypatch):
    """A right choice is nearly certain: the probabilities of labels rise with each round."""
    X, y = blobs(3000)
    common = {"epsilon": 3.0, "delta": delta, "relation": relation} | CLASSES
    model = learn.GradientBoostingClassifier(early_stopping=True, **common)
    assert model.loss == learn.GradientBoostingClassifier(**common).loss
    assert model.fit(X, y).public_score(X, y) > 0.9
    monkeypatch.setattr(boosting, "choose_rounds", lambda *args: 3)
    assert len(model.fit(X, y).model_.trees) == 3


def test_rows_that_choose_are_no_rows_that_are_fitted(monkeypatch):
    """All rows of a unit are on one side, and all noise is paid for once on either side."""
    X, y = line(90)
    owner = np.arange(90) // 3
    sides, chosen = [], []
    monkeypatch.setattr(boosting, "take", lambda table, rows: sides.append(rows) or take(table, rows))
    monkeypatch.setattr(boosting, "choose_rounds", lambda *args: chosen.append(args[-1].amount) or choose_rounds(*args))
    sums = []
    own = learn.Estimator.noisy_sum_by_class
    monkeypatch.setattr(
        learn.Estimator, "noisy_sum_by_class", lambda self, *args: sums.append(args[-1].amount) or own(self, *args)
    )
    model = learn.GradientBoostingRegressor(epsilon=99, rounds=5, early_stopping=True, rows_per_unit=2, **REGRESSION)
    model.fit(X, y, units=owner)
    assert (sides[0] == ~sides[1]).all()
    assert all(len(set(side)) == 1 for side in sides[1].reshape(-1, 3))
    assert sum(sums) == pytest.approx(chosen[0], rel=1e-9) and chosen[0] < 99


def test_a_unit_tilts_the_choice_by_what_it_is_priced_for(monkeypatch):
    X, y = line(30)
    seen = []
    monkeypatch.setattr(PureSpending, "choose", lambda self, found, rows: seen.append((found, rows)) or 0)
    model = learn.GradientBoostingRegressor(epsilon=2, rows_per_unit=2, **REGRESSION)
    quality = np.random.default_rng(1).random((30, 4))
    for keep in (30, 26):
        units = np.repeat([0, 1, 2, 3, 4, 5, 6], [4, 4, 4, 4, 4, 6, 4])
        table = model.read_table(X[:keep], y[:keep], units[:keep])
        early_stopping.choose_rounds(model, quality[:keep], table, model.spending())
    move = np.subtract(seen[0][0], seen[1][0])
    assert (move >= 0).all() and (move <= seen[0][1]).all() and seen[0][1] == 2 << 20
    assert hold_back(model.read_table(X[:0], y[:0], None)).shape == (0,)
