"""Directions of rounding, decided by exact rationals."""

import math
import sys
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato import rounding
from sfumato.sensitivity import Sensitivity

LARGEST = sys.float_info.max
TINY = math.ulp(0.0)
ODD = [
    0.0,
    TINY,
    3 * TINY,
    2.0**-1022,
    2.0**-1022 - TINY,
    1e-300,
    0.1,
    1 / 3,
    1.0,
    math.nextafter(1, 2),
    2.0**53 + 1,
    1e300,
]

doubles = st.one_of(
    st.sampled_from(ODD),
    st.floats(0.0, LARGEST),
    st.integers(-1074, 1023).map(lambda n: math.ldexp(1.0, n)),
    st.floats(0.5, 1.0, exclude_max=True).flatmap(lambda m: st.integers(-1070, 1000).map(lambda n: math.ldexp(m, n))),
)
moderate = st.one_of(doubles.filter(lambda x: x == 0 or 1e-150 < x < 1e150), st.floats(0.0, 1.0))
probabilities = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, TINY, 1e-300, 1e-20, 1e-6, 0.1, 1.0, 1 - 2**-53]))


def is_least_above(found, exact):
    """Is this the least double ≥ the number?"""
    if found == math.inf:
        return exact > LARGEST
    before = math.nextafter(found, -math.inf)
    return Fraction(found) >= exact and (before == -math.inf or Fraction(before) < exact)


def is_greatest_below(found, exact):
    """Is this the greatest double ≤ the number?"""
    return is_least_above(-found, -exact)


@given(doubles, doubles, st.sampled_from([1, -1]))
@example(LARGEST, LARGEST, 1)
@example(TINY, TINY, -1)
def test_a_fraction_rounds_to_the_next_double_on_the_stated_side(a, b, sign):
    exact = sign * (Fraction(a) + Fraction(b) / 3)
    assert is_least_above(rounding.round_up(exact), exact)
    assert is_greatest_below(rounding.round_down(exact), exact)


@given(doubles)
def test_what_is_a_double_stays_as_it_is(x):
    assert rounding.round_up(Fraction(x)) == x == rounding.round_down(Fraction(x))
    assert (
        rounding.round_up(x) == x == rounding.product_up(x, 1) == rounding.sum_up(x, 0.0) == rounding.quotient_up(x, 1)
    )


@pytest.mark.parametrize("whole", [2**53 + 1, 2**1024, 10**400, -(2**53) - 1, -(10**400)])
def test_whole_numbers_beyond_doubles_round_as_fractions_do(whole):
    assert is_least_above(rounding.round_up(whole), whole)
    assert is_greatest_below(rounding.round_down(whole), whole)


@given(doubles, doubles, doubles)
def test_sums_and_products_have_their_direction(a, b, c):
    total, product = Fraction(a) + Fraction(b) - Fraction(c), Fraction(a) * Fraction(b) * Fraction(c)
    assert is_least_above(rounding.sum_up(a, b, -c), total)
    assert is_greatest_below(rounding.sum_down(a, b, -c), total)
    assert is_least_above(rounding.product_up(a, b, c), product)
    assert is_greatest_below(rounding.product_down(a, b, c), product)


@given(doubles, doubles.filter(lambda x: x > 0))
def test_quotients_have_their_direction(a, b):
    exact = Fraction(a) / Fraction(b)
    assert is_least_above(rounding.quotient_up(a, b), exact)
    assert is_greatest_below(rounding.quotient_down(a, b), exact)


@given(st.one_of(doubles, st.tuples(moderate, moderate).map(lambda p: Fraction(p[0]) * Fraction(p[1]))))
def test_roots_have_their_direction(x):
    up, down = rounding.sqrt_up(x), rounding.sqrt_down(x)
    assert Fraction(up) ** 2 >= x >= Fraction(down) ** 2
    assert up == 0 or Fraction(math.nextafter(up, 0.0)) ** 2 < x
    assert Fraction(math.nextafter(down, math.inf)) ** 2 > x


def test_infinity_bounds_what_nobody_knows():
    assert (
        rounding.product_up(0.0, math.inf) == rounding.sum_up(1.0, math.inf) == rounding.sqrt_up(math.inf) == math.inf
    )
    assert rounding.product_down(0.0, math.inf) == 0.0
    assert rounding.product_down(2.0, math.inf) == math.inf


@given(probabilities, probabilities)
def test_mixtures_and_their_rests_have_their_direction(part, inside):
    exact = Fraction(part) + (1 - Fraction(part)) * Fraction(inside)
    assert is_least_above(rounding.mixture_up(part, inside), exact)
    whole = rounding.mixture_up(part, inside)
    if part < 1:
        rest = rounding.rest_down(whole, part)
        assert Fraction(part) + (1 - Fraction(part)) * Fraction(rest) <= Fraction(whole)
        assert rest >= inside


@given(st.lists(st.tuples(st.integers(0, 12), probabilities), max_size=4))
@example([(1, 1e-6), (1, 1e-6)])
@example([(2, TINY), (1, 0.3)])
def test_a_compound_leak_is_the_next_double_above_the_exact_one(leaks):
    kept = math.prod(((1 - Fraction(leak)) ** count for count, leak in leaks), start=Fraction(1))
    assert is_least_above(rounding.leak_up(leaks), 1 - kept)


@given(st.integers(1, 10**15), st.floats(1e-300, 1e-3))
def test_a_leak_repeated_often_is_sharp_and_never_below(count, leak):
    """Between the first two partial sums of the binomial series where these are sharp, and in any case below 1."""
    found, most = rounding.leak_up([(count, leak)]), count * Fraction(leak)
    assert found <= 1
    if most < 1:
        assert rounding.round_down(most - most * most / 2) <= found <= rounding.round_up(most)
    assert found >= -math.expm1(count * math.log1p(-leak)) * (1 - 1e-15)


def test_one_leak_alone_is_itself():
    assert rounding.leak_up([(1, 1e-6), (0, 0.5), (0, 1.0), (7, 0.0)]) == 1e-6
    assert rounding.leak_up([]) == 0.0
    assert rounding.leak_up([(3, 1.0), (1, 0.5)]) == 1.0


# ---- sensitivities --------------------------------------------------------------------------------------------------

norms = st.one_of(st.floats(1e-3, 1e6), st.sampled_from([1.0, 0.1, 1 / 3, 2.0**53]))


@given(size=norms, exponent=st.integers(-60, 10), coordinates=st.integers(1, 1000))
def test_rounding_to_a_lattice_moves_each_norm_by_that_of_a_step_and_no_less(size, exponent, coordinates):
    """‖x + g·1‖ ≤ ‖x‖ + g‖1‖: g, d·g, √d·g; to the next double, so that it is never below and never a step above."""
    g, before = Fraction(2) ** exponent, Sensitivity(linf=size, l1=size, l2=size)
    after = before.rounded(float(g), coordinates)
    for found, exact in ((after.linf, Fraction(size) + g), (after.l1, Fraction(size) + coordinates * g)):
        assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 2**50))
    moved = Fraction(after.l2) - Fraction(size)
    assert moved**2 >= coordinates * g**2
    assert after.l2 <= (size + math.sqrt(coordinates) * float(g)) * (1 + 1e-12)


@given(l0=st.integers(1, 1000), linf=norms)
def test_norms_that_follow_from_others_are_never_below_what_vectors_have(l0, linf):
    """The vector with l0 coordinates of linf attains all of them."""
    found = Sensitivity(l0=l0, linf=linf)
    assert Fraction(found.l1) >= l0 * Fraction(linf)
    assert Fraction(found.l2) ** 2 >= l0 * Fraction(linf) ** 2
    whole = Sensitivity(l0=l0, l2=found.l2)
    assert Fraction(whole.l1) ** 2 >= l0 * Fraction(found.l2) ** 2
