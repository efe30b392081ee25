"""One posterior sample: its bound against densities computed by hand, its law, and what it needs."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.learn import PosteriorSample
from sfumato.learn.posterior_sample import PRECISION, Posterior, Prices
from sfumato.noise.balls import precision
from tests.learn.data import line


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("part", [0.01, 0.3, 1.0])
def test_the_sample_has_at_most_the_profile_of_the_proof(epsilon, part):
    """A row with a part of the leverage and the residual that the price allows, in both directions."""
    prices = Prices(epsilon, 1e-2)
    eigenvalue, most = prices.least_ridge(0.0) * 2, 5.0
    gamma = prices.root_sharpness(eigenvalue, most) ** 2
    q, r = part / eigenvalue, 1 + math.sqrt(most / eigenvalue)
    grid = np.linspace(-60, 60, 400_001) * math.sqrt(q / gamma)
    p = norm.pdf(grid, r, math.sqrt(q / gamma))
    with_row = norm.pdf(grid, r / (1 + q), math.sqrt(q / gamma / (1 + q)))
    claimed = 2 * norm.sf(prices.both_tails)
    for one, other in ((p, with_row), (with_row, p)):
        assert np.trapezoid(one, grid) == pytest.approx(1, abs=1e-5)
        found = np.trapezoid(np.maximum(one - math.exp(prices.sample_epsilon) * other, 0), grid)
        assert found <= claimed
    assert claimed <= 0.5 * 1e-2 < 1.01 * claimed
    if part == 1:
        half = np.trapezoid(np.maximum(p - math.exp(prices.sample_epsilon / 4) * with_row, 0), grid)
        assert half > 1e-3


def test_draws_have_the_mean_and_the_covariance_of_the_posterior():
    rows = np.random.default_rng(1).integers(-1000, 1000, (50, 3))
    gram = rows.T @ rows * 2**10
    scaled = gram / 2**32
    with precision(PRECISION):
        draws = np.array([Posterior.of(gram, 0.25).draw(2.0) for _ in range(2000)])
    inverse = np.linalg.inv(scaled[:2, :2] + 0.25 * np.eye(2))
    assert draws.mean(axis=0) == pytest.approx(inverse @ scaled[:2, 2], abs=0.2)
    assert np.cov(draws.T) == pytest.approx(inverse / 4, rel=0.15, abs=0.05)


def test_bounds_of_eigenvalue_and_length_hold_and_many_rows_are_fitted():
    X, y = line(200_000)
    fitted = PosteriorSample(epsilon=3, delta=1e-6, bounds=(-1, 1), y_bounds=(-1, 1)).fit(X, y)
    assert fitted.public_score(X, y) > 0.5
    assert fitted.coef_[0] > 0.2


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"relation": sf.ReplaceOne}, {"unit": "who"}, {"rows_per_unit": 2}])
def test_what_it_cannot_promise_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        _ = PosteriorSample(**{"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1), "y_bounds": (-1, 1)} | wrong).loss
