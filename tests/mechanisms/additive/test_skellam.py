"""Skellam noise against its definition: sums over two Poisson numbers, and mpmath's Bessel functions."""

import math
from collections import Counter
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms.additive.skellam import LEAK, SkellamLaw, tail, weights
from sfumato.noise.balls import above, below, precision
from tests.noise.sources import Recorded

Skellam = sf.mechanisms.Skellam
DIGITS = 60


@cache
def chance(v, k):
    """P(K = k), by mpmath."""
    with mp.workdps(DIGITS):
        return mp.exp(-mp.mpf(v)) * mp.besseli(abs(k), mp.mpf(v))


def true_delta(v, d, eps):
    """Σ (p − e^ε·q)₊ over all outcomes that matter, p the law moved by d: no threshold is assumed."""
    with mp.workdps(DIGITS):
        reach = int(30 * math.sqrt(v)) + 40 + d
        return mp.fsum(max(0, chance(v, k - d) - mp.exp(mp.mpf(eps)) * chance(v, k)) for k in range(-reach, reach + 1))


def inside(found, truth):
    return mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)


# ---- the law ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("v", [0.01, 0.5, 3.0, 40.0])
def test_the_law_is_that_of_a_difference_of_two_poisson_numbers(v):
    law = SkellamLaw(Fraction(v))
    with mp.workdps(DIGITS):
        poisson = [mp.exp(-mp.mpf(v) / 2) * (mp.mpf(v) / 2) ** j / mp.factorial(j) for j in range(200)]
        for k in (0, 1, 2, 7, 30):
            truth = mp.fsum(poisson[j] * poisson[j + k] for j in range(200 - k))
            with precision(256):
                ball = law.weight(k, 192)
                low, high = below(ball), above(ball)
            assert mp.mpf(low.numerator) / low.denominator <= truth * (1 + mp.mpf(10) ** -50)
            assert mp.mpf(high.numerator) / high.denominator >= truth * (1 - mp.mpf(10) ** -50)
            assert high - low <= Fraction(1, 10**30) * high


@pytest.mark.parametrize("v", [Fraction(1, 100), Fraction(7, 3), Fraction(5000)])
def test_the_weights_add_up_to_one_and_are_log_concave(v):
    listed = weights(v, 192)
    with precision(256):
        total = listed[0] + 2 * sum(listed[1:])
        assert abs(total - 1) <= 2.0**-150
        assert not any(b * b < a * c for a, b, c in zip(listed, listed[1:], listed[2:], strict=False))
        for m in (-3, 0, 1, 4):
            both = tail(v, m, 192) + tail(v, 1 - m, 192)
            assert abs(both - 1) <= 2.0**-150


@pytest.mark.parametrize("v", [0.3, 4.0, 2500.0])
def test_draws_have_the_law(v):
    n = 200_000
    draws = Skellam(v, source=Recorded(f"skellam {v}")).release(np.zeros(n, np.int64))
    reach = int(3 * math.sqrt(v)) + 1
    counts = Counter(np.clip(draws, -reach, reach).tolist())
    expected = {k: n * float(chance(v, k)) for k in range(1 - reach, reach)}
    expected[reach] = expected[-reach] = (n - sum(expected.values())) / 2
    square = sum((counts[k] - mean) ** 2 / mean for k, mean in expected.items())
    assert chdtrc(len(expected) - 1, square) > 1e-6


def test_variances_add_up():
    """Two parts of the noise, convolved, are the noise of the sum of their variances."""
    first, second, both = (weights(Fraction(v), 128) for v in (2, 3, 5))
    for k in (0, 1, 5):
        total = sum(first[abs(j)] * second[abs(k - j)] for j in range(-25, 26) if abs(k - j) < len(second))
        assert abs(float(total) - float(both[k])) < 1e-14


# ---- the price -------------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    v=st.floats(0.01, 60).map(lambda x: round(x, 3)).filter(lambda x: x >= 0.01),
    d=st.integers(1, 5),
    eps=st.floats(0, 12),
)
def test_the_profile_holds_the_truth(v, d, eps):
    assert inside(Skellam(v).loss(d).delta(eps), true_delta(v, d, eps))


@pytest.mark.parametrize(("v", "d"), [(2.0, 1), (2.0, 3), (30.0, 2)])
def test_the_profile_is_sharp_where_it_matters(v, d):
    loss = Skellam(v).loss(d)
    for eps in np.linspace(0, 4, 41):
        found = loss.delta(float(eps))
        assert found.upper - found.lower <= 1e-9 * found.upper + LEAK
        assert inside(found, true_delta(v, d, float(eps)))


def test_both_directions_are_the_same_and_little_leaks():
    loss = Skellam(3.0).loss(2)
    assert loss.ahead_upper == loss.back_upper and loss.ahead_lower == loss.back_lower
    assert max(loss.leak()) <= LEAK


def test_a_large_variance_is_priced_nearly_as_gaussian_noise():
    for v in (1e4, 1e6):
        found = Skellam(v).loss(1).epsilon(1e-6)
        assert found.upper == pytest.approx(float(sf.Gaussian(math.sqrt(v)).loss(1).epsilon(1e-6)), rel=1e-3)
        assert found.upper - found.lower <= 1e-3 * found.upper


def test_vectors_cost_no_more_than_one_number_moved_by_the_sum():
    noise = Skellam(20.0)
    several, one = noise.loss(sf.Sensitivity(l0=3, linf=1)), noise.loss(3)
    assert noise.loss(sf.Sensitivity(l1=3, l2=3)) == one
    for eps in (0.1, 0.5, 1.0):
        assert several.delta(eps).lower <= one.delta(eps).upper


def test_a_step_changes_nothing_but_the_unit():
    assert Skellam(8.0, 2).loss(4) == Skellam(2.0).loss(2)
    assert Skellam(2.0).loss(0).epsilon(0).upper == 0


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_error_is_the_least(confidence):
    m = int(Skellam(5.0).error(confidence))
    misses = [1 - mp.fsum(chance(5, k) for k in range(-r, r + 1)) for r in (m - 1, m)]
    assert misses[1] <= 1 - confidence < misses[0]


@pytest.mark.parametrize("variance", [0, -1, 1e-3, 1e9, math.nan, "2"])
def test_what_cannot_be_drawn_is_refused(variance):
    with pytest.raises(SfumatoError, match="do:"):
        Skellam(variance)


def test_moves_that_are_too_far_are_refused():
    with pytest.raises(SfumatoError, match="do:"):
        Skellam(2.0).loss(10**7)
