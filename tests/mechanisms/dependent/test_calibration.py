"""Calibration of noise: targets are met closely, with less variance than by published formulas."""

import math

import numpy as np
import pytest

from sfumato import dependent as dep
from sfumato.errors import OutOfReach
from sfumato.teach.classical import smooth_noise_prices as published


def best_published(formula, variance, t, sigmas):
    """Least variance against a Gaussian at ρ = ½: the shift that the formula allows, by bisection."""
    best = math.inf
    for sigma in sigmas:
        low, high = 0.0, 10.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if formula(sigma, middle, t).upper <= 0.5 else (low, middle)
        best = min(best, variance(sigma) / low**2 if low > 1e-6 else math.inf)
    return best


@pytest.mark.parametrize(("t", "published_ratio", "ours"), [(0.1, 7.05, 1.01), (0.2, 17.6, None), (0.5, 284, None)])
def test_the_published_calibration_needs_seven_to_two_hundred_times_the_variance(t, published_ratio, ours):
    sigmas = np.linspace(max(0.1, 1.01 * t), 1.5, 200)
    known = best_published(published.laplace_log_normal, lambda s: dep.LaplaceLogNormalNoise(s).variance, t, sigmas)
    assert known == pytest.approx(published_ratio, rel=6e-3)
    if ours:
        found = dep.for_zcdp(0.5, t, 1)
        assert found.loss.zcdp().upper <= 0.5 and found.variance <= ours


@pytest.mark.parametrize(("t", "bar"), [(0.2, 1.51)])
def test_the_least_noise_on_the_ledger_meets_its_target_closely(t, bar):
    found = dep.for_ledger(0.5, t)
    assert 0.5 * (1 - 1e-3) <= found.loss.gdp(1e-9).upper ** 2 <= 0.5
    assert found.variance * 0.5 <= bar and found.loss.steps == 4


def test_pure_and_approximate_targets():
    pure = dep.for_epsilon(1.0, 0.0, 0.1)
    assert max(pure.loss.supremum()) <= 1 and isinstance(pure.loss.noise, dep.StudentNoise | dep.CauchyNoise)
    some = dep.for_epsilon(1.0, 1e-6, 0.1)
    assert some.loss.epsilon(1e-6).upper <= 1 and some.variance < pure.variance


def test_targets_out_of_reach_say_what_to_do():
    with pytest.raises(OutOfReach, match="smaller dilation"):
        dep.for_ledger(0.01, 0.5)
