"""A5: NaN, infinities, −0.0 and subnormal numbers among private values must not be visible in the answer.

The attack is a coupling: with the same random bits, NaN gives the answer of 0.0, ±∞ that of an end of the range, and
−0.0 and the least positive double give (nearly) that of 0.0. A naive mechanism passes NaN on.
"""

import math

import numpy as np
import pytest

import sfumato as sf
from tests.checks.mechanism_examples import EXAMPLES
from tests.mechanisms.attacks.common import with_the_same_bits
from tests.mechanisms.attacks.naive import NaiveLaplace

TINY, FAR = 5e-324, 1.7976931348623157e308
REAL = [
    example for example in EXAMPLES if example.rows and any(type(value) is float for value in example.inputs.extremes)
]
CHOICES = {
    "Exponential": lambda s: sf.Exponential(1.0, 1, source=s),
    "PermuteAndFlip": lambda s: sf.PermuteAndFlip(1.0, 1, source=s),
    "TopK": lambda s: sf.TopK(2, 1.0, 1, source=s),
    "StableArgmax": lambda s: sf.StableArgmax(1.0, 0.01, 1, source=s),
}


def test_all_that_take_reals_are_here():
    assert {type(example.make(sf.noise.Keystream())).__name__ for example in REAL} == {
        "Gaussian",
        "Laplace",
        "Staircase",
        "Processed",
    }


@pytest.mark.parametrize("example", REAL, ids=str)
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x, 1.5], np.float64], ids=["one", "row", "NumPy"])
def test_what_is_no_number_is_not_seen(example, wrap):
    nan, zero, minus, tiny, inf, far, low, deep = with_the_same_bits(
        example.make, *map(wrap, (math.nan, 0.0, -0.0, TINY, math.inf, FAR, -math.inf, -FAR))
    )
    np.testing.assert_array_equal(nan, zero)
    np.testing.assert_array_equal(minus, zero)
    assert np.all(np.abs(np.asarray(tiny) - np.asarray(zero)) <= float(example.step))
    np.testing.assert_array_equal(inf, far)
    np.testing.assert_array_equal(low, deep)
    assert all(np.all(np.isfinite(x)) for x in (nan, inf, low))


@pytest.mark.parametrize("example", REAL, ids=str)
@pytest.mark.parametrize("value", [0.0, -0.0, -TINY, math.nan])
def test_no_answer_is_a_negative_zero(example, value):
    (found,) = with_the_same_bits(example.make, np.full(2000, value))
    assert not np.any(np.signbit(found[found == 0]))


@pytest.mark.parametrize("name", CHOICES)
def test_scores_that_are_no_numbers_are_the_lowest_or_at_the_ends(name):
    for odd, plain in (
        ([math.nan, 1.0, 0.5], [-FAR, 1.0, 0.5]),
        ([math.inf, 1.0, 0.5], [FAR, 1.0, 0.5]),
        ([-math.inf, 1.0, math.nan], [-FAR, 1.0, -FAR]),
        ([-0.0, 0.0, TINY], [0.0, 0.0, 0.0]),
    ):
        one, two = with_the_same_bits(CHOICES[name], odd, plain)
        if name == "StableArgmax" and TINY in odd:  # whoever leads by nothing at all may be named with chance δ
            continue
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("odd", [math.nan, "no number", None, 1j, [], object()], ids=lambda x: type(x).__name__)
def test_sums_count_what_is_no_number_as_nothing(odd):
    total = sf.BoundedSum(sf.Laplace(1.0), 0, 10)
    one, two = with_the_same_bits(total.with_source, [3, odd, 4], [3, 0, 4])
    assert one == two


def test_a_naive_mechanism_hands_them_on():
    naive = NaiveLaplace()
    assert math.isnan(naive.release(math.nan))
    assert math.isinf(naive.release(math.inf))
