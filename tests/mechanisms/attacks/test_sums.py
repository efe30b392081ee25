"""A2, sums in floats, and A3, sums in 64 bits: one row can change them by more than the sensitivity.

Float sums depend on the order of rows, and 64-bit sums overflow (Casacuberta et al. 2022). Ours are sums of integers
that saturate. The attack is a coupling: with the same random bits, two answers differ by as much as the exact sums.
"""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from tests.mechanisms.attacks.common import with_the_same_bits
from tests.mechanisms.attacks.naive import NaiveCounter, NaiveSum
from tests.noise.sources import Recorded

BIG = 2.0**53
REORDERED = [BIG] + [1.0] * 1024
SUMS = {
    "whole": lambda source: sf.BoundedSum(sf.Laplace(1.0, source=source), -(2**53), 2**53),
    "real": lambda source: sf.BoundedSum(sf.Gaussian(1.0, 2**-20, source=source), -100, 100),
    "coarse": lambda source: sf.BoundedSum(sf.DiscreteLaplace(100.0, 8, source=source), 0, 64),
    "mean": lambda source: sf.BoundedMean(sf.Laplace(1.0, source=source), sf.Laplace(1.0, source=source), 0, 2**20),
}
values = st.lists(st.one_of(st.floats(), st.integers(), st.floats(-100, 100)), max_size=30)


def same_bits(make, *data):
    return [make(Recorded("the same bits")).release(list(rows)) for rows in data]


# ---- A2 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUMS)
@given(rows=values, seed=st.integers(0, 100))
def test_the_order_of_rows_does_not_matter(name, rows, seed):
    other = rows.copy()
    random.Random(seed).shuffle(other)
    assert len(set(same_bits(SUMS[name], rows, other, sorted(rows, key=repr)))) == 1


@pytest.mark.parametrize("name", ["whole", "real", "coarse"])
@given(rows=values, row=st.one_of(st.floats(), st.integers(), st.floats(-100, 100)), at=st.integers(0, 30))
def test_one_row_more_moves_a_sum_by_what_it_says(name, rows, row, at):
    mechanism = SUMS[name](Recorded("a"))
    low, high = mechanism.low, mechanism.high
    before, after = same_bits(SUMS[name], rows, [*rows[:at], row, *rows[at:]])
    step = float(mechanism.noise.lattice.step)
    bounded = max(low, min(high, 0 if row != row else row))
    assert abs((after - before) - bounded) <= step / 2 * (1 + 1e-9) + 1e-9
    assert abs(after - before) <= max(abs(low), abs(high))


def test_reordering_and_one_row_more_break_a_naive_sum():
    turned = [NaiveSum().release(data) for data in (REORDERED, REORDERED[::-1])]
    assert abs(turned[1] - turned[0]) > 1000  # the same rows
    assert len(set(same_bits(SUMS["whole"], REORDERED, REORDERED[::-1]))) == 1
    rows = [BIG] + [1.0] * 9
    less, more = (NaiveSum().release(data) for data in (rows, [2.0, *rows]))
    assert more - less > 2  # by one row that is 2
    ours = same_bits(SUMS["whole"], rows, [2.0, *rows])
    assert ours[1] - ours[0] == 2


# ---- A3 --------------------------------------------------------------------------------------------------------------

ENDS = [2**63 - 3, 2**63 - 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64, 10**400]
ENDS = [*(-v for v in reversed(ENDS)), -1, 0, 1, *ENDS]
WHOLE = {
    "Gaussian": lambda s: sf.Gaussian(10.0, source=s),
    "wide Gaussian": lambda s: sf.Gaussian(1e18, source=s),
    "fine Gaussian": lambda s: sf.Gaussian(10.0, 2**-30, source=s),
    "Laplace": lambda s: sf.Laplace(10.0, source=s),
    "wide Laplace": lambda s: sf.Laplace(1e18, source=s),
    "DiscreteGaussian": lambda s: sf.DiscreteGaussian(10.0, source=s),
    "DiscreteLaplace": lambda s: sf.DiscreteLaplace(10.0, source=s),
    "wide DiscreteLaplace": lambda s: sf.DiscreteLaplace(1e18, source=s),
    "Staircase": lambda s: sf.Staircase(1.0, 10.0, source=s),
    "TruncatedLaplace": lambda s: sf.TruncatedLaplace(10.0, 100, source=s),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("shape", ["one", "row"])
def test_no_sum_wraps(name, shape):
    """With the same bits a larger value never gives a smaller answer, nor one further away than the value is."""
    for bits in range(3):
        make = WHOLE[name]
        found = [make(Recorded(f"wrap {bits}")).release(v if shape == "one" else [v, v]) for v in ENDS]
        firsts = [x if shape == "one" else x[0].item() for x in found]
        for (v, x), (w, y) in pairwise(zip(ENDS, firsts, strict=True)):
            assert 0 <= y - x <= w - v


@pytest.mark.parametrize("v", [2**53, 2**60 + 128, -(2**60) - 129, 2**63 + 2**11, 10**300])
@pytest.mark.parametrize("name", ["Gaussian", "wide Gaussian", "Laplace", "Staircase"])
def test_integers_among_floats_move_no_further_than_they_say(name, v):
    """As the nearest doubles, 2⁶⁰ + 128 and 2⁶⁰ + 129 are 256 apart."""
    x, y = with_the_same_bits(WHOLE[name], [v, 0.5], [v + 1, 0.5])
    assert 0 <= y[0] - x[0] <= 1


def test_integers_among_floats_keep_their_scores():
    chosen = [
        [sf.PermuteAndFlip(2.0, 1, source=Recorded(f"s {i}")).release([v, 2.0**60, -1.5]) for i in range(50)]
        for v in (2**60 + 128, 2**60 + 129)
    ]
    assert chosen[0] == chosen[1]  # 256 apart, the second would win each time


def test_streams_and_groups_do_not_wrap():
    counter = sf.TreeCounter(3, sf.DiscreteLaplace(1.0, source=Recorded("tree")))
    found = counter.release([2**63 - 1, 2**63 - 1, 2**63 - 1])
    assert found.tolist()[1:] == [2**63 - 1] * 2 and found[0] > 2**62
    groups = sf.StabilityHistogram(1.0, 1e-3, source=Recorded("groups")).release({"a": 10**30, "b": -(10**30)})
    assert list(groups) == ["a"] and groups["a"] > 2**62
    watch = sf.AboveThreshold(1.0, 0, source=Recorded("watch"))
    assert watch.release([-(10**400), 10**400]) == [False, True]


@pytest.mark.parametrize(
    "make", [lambda s: sf.ReportNoisyMax(1.0, 1, source=s), lambda s: sf.Exponential(1.0, 1, source=s)]
)
def test_choices_do_not_wrap(make):
    for bits in range(20):
        assert make(Recorded(f"choice {bits}")).release([0, 2**63 - 1, -(2**63)]) == 1


def test_64_bits_break_a_naive_counter():
    rows = np.array([2**62, 2**62 - 1])
    less, more = (NaiveCounter().release(data) for data in (rows, np.append(rows, 2**62)))
    assert less > 0 > more
    sums = [sf.BoundedSum(sf.Laplace(1.0, source=Recorded("wrap")), 0, 2**61) for _ in range(2)]
    ours = [mechanism.release(list(data)) for mechanism, data in zip(sums, (rows, [*rows, 2**62]), strict=True)]
    assert ours[1] - ours[0] == 2**61
    assert math.isfinite(ours[1])
