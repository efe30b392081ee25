"""The radius that holds noise with a given probability is the least one, at every scale."""

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    TruncatedLaplace,
    radius,
    rounded_gaussian,
    rounded_laplace,
    rounded_staircase,
)

confidences = st.one_of(
    st.floats(0.001, 0.999),
    st.floats(1, 15).map(lambda x: 1 - 10**-x),
    st.sampled_from([1e-300, 1 - 2.0**-53, math.ulp(0.0)]),
)
scales = st.floats(-3, 18).map(lambda x: min(1e18, max(1e-3, 10.0**x)))


def gaussian_tail(sigma, m):
    return mp.erfc((mp.mpf(m) + mp.mpf(0.5)) / (mp.mpf(sigma) * mp.sqrt(2)))


def laplace_tail(scale, m):
    return mp.exp(-(mp.mpf(m) + mp.mpf(0.5)) / mp.mpf(scale))


def discrete_laplace_tail(scale, m):
    r = mp.exp(-1 / mp.mpf(scale))
    return 2 * r ** (m + 1) / (1 + r)


def staircase_tail(scale, m, eps=1):
    """By stairs from the right: all that lies beyond x in each."""
    b, period, x = mp.exp(-eps), mp.mpf(scale), mp.mpf(m) + mp.mpf(0.5)
    gamma = mp.mpf(float(1 / (1 + mp.exp(mp.mpf(eps) / 2))))
    whole = gamma * period + b * period / (1 - b)  # the first stair and all others
    if x < gamma * period:
        return 1 - x / whole
    j = mp.floor(x / period - gamma) + 1
    return b**j * ((j + gamma) * period - x + b * period / (1 - b)) / whole


TAILS = {
    "Gaussian": (rounded_gaussian, gaussian_tail),
    "Laplace": (rounded_laplace, laplace_tail),
    "discrete Laplace": (DiscreteLaplace, discrete_laplace_tail),
    "staircase": (lambda scale: rounded_staircase(1, scale), staircase_tail),
}


def least(tail, confidence, coordinates, found):
    """Is `found` the least m with P(|K| > m) ≤ 1 − c^(1/d)?"""
    with mp.workdps(60):
        missed = -mp.expm1(mp.log(mp.mpf(confidence)) / coordinates)
        return tail(found) <= missed * (1 + mp.mpf(10) ** -40) and (found == 0 or tail(found - 1) > missed)


@pytest.mark.parametrize("name", TAILS)
@settings(max_examples=20)
@given(scale=scales, confidence=confidences, coordinates=st.sampled_from([1, 2, 1000, 10**12]))
def test_the_radius_is_the_least(name, scale, confidence, coordinates):
    law, tail = TAILS[name]
    found = radius(law(scale), confidence, coordinates)
    assert least(lambda m: tail(scale, m), confidence, coordinates, found)


def listed(weights):
    """P(|K| > m) from the weights of 0, 1, 2, …"""
    total = weights[0] + 2 * mp.fsum(weights[1:])
    return lambda m: 2 * mp.fsum(weights[m + 1 :]) / total


@pytest.mark.parametrize("sigma", [1e-3, 0.2, 1, 7.3, 63.9, 64])
@pytest.mark.parametrize("confidence", [1e-6, 0.3, 0.5, 0.95, 1 - 1e-9, 1 - 1e-15])
def test_the_radius_of_a_discrete_gaussian_is_the_least_where_it_is_summed(sigma, confidence):
    with mp.workdps(60):
        reach = int(20 * sigma) + 3
        tail = listed([mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(reach)])
        assert least(tail, confidence, 1, radius(DiscreteGaussian(sigma), confidence))


@pytest.mark.parametrize("sigma", [64.5, 300])
def test_the_radius_of_a_wide_discrete_gaussian_is_never_too_small(sigma):
    with mp.workdps(40):
        tail = listed([mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(int(14 * sigma))])
        for confidence in (0.001, 0.2, 0.5, 0.68, 0.69, 0.95, 1 - 1e-6, 1 - 1e-15):
            found = radius(DiscreteGaussian(sigma), confidence)
            assert tail(found) <= 1 - mp.mpf(confidence)
            assert found == 0 or tail(max(found - 2, 0)) > 1 - mp.mpf(confidence)


@pytest.mark.parametrize("sigma", [65, 100.25, 2000, 1e6])
def test_the_bound_of_a_wide_discrete_gaussian_is_above_its_tail(sigma):
    """Sums by Euler and Maclaurin, to the third derivative: the next term is below 1e-9 of the tail's end."""
    with mp.workdps(50):
        s = mp.mpf(sigma)
        total = s * mp.sqrt(2 * mp.pi)  # to 1e-30000: Poisson summation

        def tail(m):
            x = mp.mpf(m) + mp.mpf(0.5)
            f = mp.exp(-(x**2) / (2 * s**2))
            slope = -x / s**2 * f
            third = (3 * x / s**4 - x**3 / s**6) * f
            return 2 * (s * mp.sqrt(mp.pi / 2) * mp.erfc(x / (s * mp.sqrt(2))) + slope / 24 - 7 * third / 5760) / total

        for z in (0.0, 0.3, 0.99, 1.01, 2, 4, 8):
            m = int(z * sigma)
            bound = mp.mpf(DiscreteGaussian(sigma).beyond(m, 128).str(40, radius=False))
            assert tail(m) < bound < tail(m) * (1 + 10 * (1 + z**4) / s**2)


@given(scale=st.floats(0.1, 50), bound=st.integers(1, 60), confidence=confidences)
def test_truncated_noise_stays_inside_and_its_radius_is_the_least(scale, bound, confidence):
    found = radius(TruncatedLaplace(scale, bound), confidence)
    assert found <= bound
    with mp.workdps(60):
        tail = listed([mp.exp(-k / mp.mpf(scale)) for k in range(bound + 1)])
        assert least(tail, confidence, 1, found)


@pytest.mark.parametrize("confidence", [0, 1, -0.0, 1.5, -1, math.nan, math.inf, "0.9", None, True, [0.9]])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(InvalidParameter, match="confidence"):
        radius(DiscreteLaplace(1), confidence)


@pytest.mark.parametrize("coordinates", [0, -1, 1.5, math.nan, "1", None])
def test_a_number_of_coordinates_that_is_none_is_refused(coordinates):
    with pytest.raises(InvalidParameter, match="coordinates"):
        radius(DiscreteLaplace(1), 0.95, coordinates)


def test_more_confidence_and_more_coordinates_mean_more_room():
    law = rounded_gaussian(Fraction(1000))
    found = [radius(law, c, d) for c in (0.5, 0.9, 0.99, 1 - 1e-12) for d in (1, 10, 1000)]
    assert found[:3] == sorted(found[:3]) and found[::3] == sorted(found[::3])
    assert found[0] < found[-1]
