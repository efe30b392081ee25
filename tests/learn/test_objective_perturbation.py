"""Objective perturbation: its bound against densities computed by hand, its minimum, and how well it classifies."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.learn.objective_perturbation import (
    CURVATURE_SHARE,
    ObjectivePerturbation,
    Perturbation,
)
from tests.learn.data import blobs


def density(rows, noise, theta):
    """Of the exact minimum of one coefficient: the density of b where the gradient vanishes, times the curvature."""
    odds = [(row, 1 / (1 + np.exp(row * theta))) for row in rows]
    b = -(noise.ridge * theta - sum(row * one for row, one in odds))
    return norm.pdf(b / noise.sigma) / noise.sigma * (noise.ridge + sum(row**2 * p * (1 - p) for row, p in odds))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("others", [[], [1.0, -0.5, 1.0]])
def test_the_exact_minimum_has_at_most_the_profile_of_the_proof(epsilon, others):
    """Twice that of a Gaussian mechanism, moved by the share of ε that pays for the change of volume."""
    noise = Perturbation.of(epsilon, 1e-2, 1)
    grid = np.linspace(-1, 1, 200_001) * 12 * noise.sigma / noise.ridge
    few, more = density(others, noise, grid), density([*others, 1.0], noise, grid)
    assert np.trapezoid(few, grid) == pytest.approx(1, abs=1e-6)
    for p, q in ((few, more), (more, few)):
        for eps in np.linspace(CURVATURE_SHARE, 0.98, 5) * epsilon:
            profile = np.trapezoid(np.maximum(p - math.exp(eps) * q, 0.0), grid)
            claimed = 2 * sf.loss.GaussianLoss(1 / noise.sigma).delta(eps - CURVATURE_SHARE * epsilon).upper
            assert profile <= claimed + 1e-9
        assert claimed <= 0.9 * 1e-2 < 10 * claimed
    assert np.trapezoid(np.maximum(few - more, 0.0), grid) > 0.01


def test_classes_are_told_apart():
    X, y = blobs(1500, 4, seed=3)
    fitted = ObjectivePerturbation(epsilon=1, delta=1e-6, bounds=(-1, 1), classes=[0, 1]).fit(X, y)
    assert fitted.public_score(X, y) > 0.9
    odds = np.log(fitted.predict_proba(X)[:, 1] / fitted.predict_proba(X)[:, 0])
    assert X @ fitted.coef_[0] + fitted.intercept_[0] == pytest.approx(odds, abs=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"delta": 0.0},
        {"delta": 1e-18},
        {"epsilon": 1e-6},
        {"relation": sf.ReplaceOne},
        {"classes": [0, 1, 2]},
        {"epsilon": None, "budget": sf.loss.GaussianLoss(1)},
        {"rows_per_unit": 2},
    ],
)
def test_what_its_theorem_does_not_cover_is_refused(options):
    X, y = blobs(20)
    easy = {"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1]}
    with pytest.raises(InvalidParameter):
        ObjectivePerturbation(**easy | options).fit(X, y)


def test_much_epsilon_needs_no_small_ridge():
    """A ridge near 0 would make the noise of the output large; beyond ε = 3,000 it could not be computed."""
    assert Perturbation.of(1e5, 1e-9, 4).output < 1e-3
    assert Perturbation.of(20.0, 1e-9, 4).ridge == Perturbation.of(1e5, 1e-9, 4).ridge
