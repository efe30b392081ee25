"""Random numbers of runs have the laws that are priced."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaln

from sfumato.noise.run_counts import coin, negative_binomial_runs, poisson_runs
from tests.noise.sources import Recorded

DRAWS = 6000


def far_from(counts: np.ndarray, chances: np.ndarray) -> float:
    """The largest distance of the two distribution functions; above 2.2/√n with probability at most 1.3e-4 (DKW)."""
    most = chances.size
    seen = np.bincount(np.minimum(counts, most - 1), minlength=most) / counts.size
    return float(np.max(np.abs(np.cumsum(seen) - np.cumsum(chances))))


@pytest.mark.parametrize(("stop", "shape"), [(0.1, 0.0), (0.2, 1.0), (0.05, -0.5), (0.9, 0.3)])
def test_the_truncated_negative_binomial_law(stop, shape):
    k = np.arange(1, 2000)
    logs = gammaln(k + shape) - gammaln(k + 1) + k * math.log1p(-stop)
    weights = np.concatenate([[0.0], np.exp(logs - logs.max())])
    source = Recorded(f"runs {stop} {shape}")
    drawn = np.array([negative_binomial_runs(Fraction(stop), Fraction(shape), source) for _ in range(DRAWS)])
    assert far_from(drawn, weights / weights.sum()) < 2.2 / math.sqrt(DRAWS)
    assert drawn.min() >= 1


@pytest.mark.parametrize("rate", [0.3, 1.0, 5.5])
def test_the_poisson_law(rate):
    k = np.arange(0, 100)
    chances = np.exp(k * math.log(rate) - rate - gammaln(k + 1))
    source = Recorded(f"poisson runs {rate}")
    drawn = np.array([poisson_runs(Fraction(rate), source) for _ in range(DRAWS)])
    assert far_from(drawn, chances) < 2.2 / math.sqrt(DRAWS)


def test_coins_that_are_sure():
    source = Recorded("sure")
    assert coin(Fraction(1), source) and not coin(Fraction(0), source)
