"""The pure price of tilted minima against densities computed by hand; what units may do; how well they classify."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.learn.logistic_regression import is_clear
from sfumato.learn.tilted_minimum import CURVATURE_SHARE, OUTPUT_SHARE, SOLVED, PureTilt, minimum, objective
from tests.learn.data import blobs


def log_density(rows, weights, tilt, theta):
    """Of the exact minimum of one coefficient: that of b where the gradient vanishes, times the curvature."""
    odds = [(w, row, 1 / (1 + np.exp(row * theta))) for w, row in zip(weights, rows, strict=True)]
    b = -(tilt.ridge * theta - sum(w * row * one for w, row, one in odds))
    curvature = tilt.ridge + sum(w * row**2 * p * (1 - p) for w, row, p in odds)
    return np.log(curvature) - tilt.tilt_eps / tilt.rows * np.abs(b)


@pytest.mark.parametrize("eps", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("others", [[], [1.0, -0.5, 1.0]])
@pytest.mark.parametrize("unit", [[1.0], [1.0, 1.0, -1.0], [0.3, 0.9]])
def test_the_exact_minimum_moves_by_no_more_than_its_share(eps, others, unit):
    rows = min(2, len(unit))
    tilt = PureTilt(eps, 1, rows)
    grid = np.linspace(-40, 40, 100_001) * rows / tilt.ridge / eps
    ones, weights = [1.0] * len(others), [rows / len(unit)] * len(unit)
    few = log_density(others, ones, tilt, grid)
    more = log_density([*others, *unit], [*ones, *weights], tilt, grid)
    worst = np.abs(few - more).max()
    assert worst <= (1 - OUTPUT_SHARE) * eps
    if unit == [1.0] and not others:
        assert worst > 0.8 * eps


def test_all_shares_together_are_the_price():
    tilt = PureTilt(1.0, 5)
    volume = math.log1p(tilt.coordinates / (4 * tilt.ridge))
    assert tilt.tilt_eps + volume + OUTPUT_SHARE <= 1.0
    assert volume <= CURVATURE_SHARE


def test_weighted_minima_are_found_from_anywhere():
    rng = np.random.default_rng(3)
    for size, far in ((0, 1.0), (1, 50.0), (500, 1e4)):
        rows, weights = rng.uniform(-1, 1, (size, 4)), rng.uniform(0, 1, size)
        linear = far * rng.standard_normal(4)
        theta = minimum(rows, 0.2, linear, weights)
        assert np.linalg.norm(objective(theta, rows, 0.2, linear, weights)[1]) < SOLVED / 4


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_many_rows_are_classified_well_under_pure_epsilon(relation):
    X, y = blobs(6000, 4, seed=3, spread=0.5)
    fitted = learn.LogisticRegression(epsilon=1, relation=relation, bounds=(-1, 1), classes=[0, 1])
    assert is_clear(PureTilt(1 / fitted.spending().fold, 5), 6000)
    fitted.fit(X, y, units=np.arange(6000) // 2)
    assert fitted.public_score(X, y) > 0.85
