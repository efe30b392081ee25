"""The integer table: its proved properties are checked count by count."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import groups
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.groups.integer_table import MOST, IntegerTable, knots, segment_index, table_of

TRANSFORMS = [
    (groups.Asinh(10.0), 0.0627),
    (groups.Asinh(0.01), 0.5),
    (groups.Asinh(1e6), 0.02),
    (groups.Log(1.0), 0.1),
    (groups.SquareRoot(), 0.5),
    (groups.Identity(), 3.0),
    (groups.Given(lambda x: x / 500 if x < 500 else 1 + math.log(x / 500)), 0.05),
]
every = pytest.mark.parametrize(("transform", "sigma"), TRANSFORMS, ids=lambda x: str(x))
FAR = [10**3, 12345, 2**20 - 1, 2**20, 10**9 + 7, 2**40, 10**15 - 1, 10**15]


@every
def test_no_one_moves_a_group_by_more_steps_than_the_policy_says(transform, sigma):
    """Every pair of counts up to 300, around the first wide segment, and some far out, for 1, 2 and 7 rows."""
    table = table_of(transform, sigma)
    near = np.concatenate([np.arange(300), np.arange(1000, 1060)])
    far = np.unique(np.concatenate([np.arange(n - 20, n + 21) for n in FAR]))
    for counts in (near, far):
        steps = table.steps(counts).tolist()
        for rows in (1, 2, 7):
            allowed = [table.rise(int(x), rows) for x in counts]
            for i, x in enumerate(counts.tolist()):
                for j in range(i + 1, len(counts)):
                    if counts[j] - x > rows:
                        break
                    moved = steps[j] - steps[i]
                    assert 0 <= moved <= min(allowed[i], allowed[j])


@every
def test_the_guarantee_never_gets_worse_as_a_group_grows(transform, sigma):
    table = table_of(transform, sigma)
    counts = [*range(1500), *(int(10 ** (k / 7)) for k in range(23, 106)), 10**15, 10**18, 10**29]
    for rows in (1, 3):
        rises = [table.rise(x, rows) for x in counts]
        assert all(a >= b for a, b in pairwise(rises))
        assert rises[0] == table.rise(0, rows) == max(rises)


@given(st.integers(0, MOST), st.sampled_from(TRANSFORMS[:5]))
def test_arrays_and_fractions_give_the_same_steps(count, which):
    table = table_of(*which)
    assert table.steps(np.array([count]))[0] == math.floor(table.height(count))


@every
def test_a_table_is_as_near_its_transform_as_it_says(transform, sigma):
    table = table_of(transform, sigma)
    counts = np.array([0, 1, 2, 5, 17, 255, 256, 300, 5001, *FAR])
    wanted = [(transform.evaluate(float(x)) - transform.evaluate(0.0)) / sigma for x in counts.tolist()]
    found = table.steps(counts) / float(table.spread)
    assert np.all(np.abs(found - wanted) <= table.off + 1e-9 * np.abs(wanted))


def test_a_table_is_concave_and_rises_segment_by_segment():
    table = table_of(groups.Asinh(10.0), 0.0627)
    ends = knots(table.bits)
    slopes = [Fraction(int(table.gain[segment_index(u, table.bits)]), v - u) for u, v in pairwise(ends)]
    assert all(a >= b >= 0 for a, b in pairwise(slopes))
    for u, v in list(pairwise(ends))[:-1]:
        assert (
            table.base[segment_index(v, table.bits)]
            == table.base[segment_index(u, table.bits)] + table.gain[segment_index(u, table.bits)]
        )


def test_products_of_a_segment_fit_into_64_bits():
    for which in TRANSFORMS:
        table = table_of(*which)
        if isinstance(table, IntegerTable):
            wide = [int(table.gain[segment_index(u, table.bits)]) for u in knots(table.bits)[:-1] if u >> table.bits]
            assert max(wide) < 2**40 and int(table.base.max()) + max(wide) < 2**61


def test_counts_outside_are_put_at_the_ends():
    table = table_of(groups.Asinh(10.0), 0.0627)
    low, least, high, most = table.steps(np.array([-(2**63) + 1, 0, 2**63 - 1, 10**15]))
    assert low == least == 0 and high == most


@pytest.mark.parametrize("function", [lambda x: x * x, lambda x: -x, lambda x: math.sin(x), lambda x: x**1.001])
def test_a_function_that_is_not_concave_or_falls_is_refused(function):
    with pytest.raises(InvalidParameter, match=r"increasing and concave|too small"):
        table_of(groups.Given(function), 1.0)


@pytest.mark.parametrize("wrong", [lambda x: math.nan, lambda x: math.inf, lambda x: 1j])
def test_a_function_that_gives_no_number_is_refused(wrong):
    with pytest.raises(InvalidParameter, match="must return a finite number"):
        table_of(groups.Given(wrong), 1.0)
