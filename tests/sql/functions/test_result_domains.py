"""What is known of values: a domain that covers others holds all that they hold."""

from fractions import Fraction
from inspect import signature
from itertools import permutations
from math import ceil, copysign, floor, inf, isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.sql.domains import LONGEST_TEXT, Domain, Kind, number
from sfumato.sql.functions.result_domains import (
    absolute_domain,
    clamped_domain,
    covering_domain,
    difference_domain,
    greatest_domain,
    least_domain,
    product_domain,
    rounded_domain,
    sum_domain,
)

NUMBERS = [Domain(Kind.NUMBER, -3.0, 5.0), Domain(Kind.NUMBER, 2.0, 9.0), Domain(Kind.NUMBER, -7.0, -6.0)]
TEXTS = [Domain(Kind.TEXT, length=3), Domain(Kind.TEXT, length=11), Domain(Kind.TEXT, length=7)]


def test_a_domain_that_covers_others_has_their_outermost_bounds_and_their_longest_text():
    for some in permutations(NUMBERS):
        assert (covering_domain(*some).low, covering_domain(*some).high) == (-7.0, 9.0)
    for some in permutations(TEXTS):
        assert covering_domain(*some).longest == 11


def test_a_text_is_as_long_as_it_is_said_to_be_and_never_longer_than_the_cut():
    assert [one.longest for one in TEXTS] == [3, 11, 7]
    assert Domain(Kind.TEXT).longest == Domain(Kind.TEXT, length=10 * LONGEST_TEXT).longest == LONGEST_TEXT


@pytest.mark.parametrize(("low", "high"), [(-3.0, -0.5), (0.0, 2.5), (0.0, 5.0), (-0.25, 7.0)])
def test_what_is_clamped_lies_on_its_steps_at_both_ends(low, high):
    """A sum of whole numbers that were clamped to −0.5 was 0: the limit was no multiple of the step."""
    found = clamped_domain(number(step=1.0), number(low, low), number(high, high))
    assert (found.low, found.high) == (low, high)
    assert found.step and all((end / found.step).is_integer() for end in (low, high, 1.0))


# ---- a law for every function of numbers: its values lie in its domain, on its steps --------------------------------

FUNCTIONS = {
    sum_domain: lambda a, b: a + b,
    difference_domain: lambda a, b: a - b,
    product_domain: lambda a, b: a * b,
    least_domain: lambda a, b: min(a, b),
    greatest_domain: lambda a, b: max(a, b),
    clamped_domain: lambda a, low, high: min(max(a, low), high),
    absolute_domain: lambda a: abs(a),
    rounded_domain: lambda a: round(a),
}
ENDS = st.sampled_from([-inf, -(2.0**40), -7.0, -1.5, -1.0, 0.0, 0.25, 1.0, 3.0, 150.0, 2.0**40, inf])
STEPS = st.sampled_from([None, 0.25, 0.5, 1.0, 3.0])


@st.composite
def arguments(draw):
    """A domain, and a value that is in it and on its steps; None where it has none that is finite."""
    low, high = sorted((draw(ENDS), draw(ENDS)))
    domain = number(low, high, draw(STEPS) if low < high else None)
    step = Fraction(domain.step or 0.125)
    least, most = (Fraction(end if isfinite(end) else copysign(1000, end)) for end in (low, high))
    if low == high:
        return domain, Fraction(low) if isfinite(low) else None
    first, last = ceil(least / step), floor(most / step)
    return domain, step * draw(st.integers(first, last)) if first <= last else None


@pytest.mark.parametrize("domain_of", FUNCTIONS, ids=lambda function: function.__name__)
@settings(max_examples=100)
@given(data=st.data())
def test_values_lie_in_the_domain_that_is_stated_and_on_its_steps(domain_of, data):
    """CLAMP took the least value of a limit that is a column for its step, and raised where that is infinite."""
    value_of = FUNCTIONS[domain_of]
    given = [data.draw(arguments()) for _ in signature(value_of).parameters]
    found = domain_of(*(domain for domain, _ in given))
    values = [value for _, value in given]
    if None in values:
        return
    value = Fraction(value_of(*values))
    assert found.low <= value <= found.high
    assert found.step is None or (value / Fraction(found.step)).denominator == 1
