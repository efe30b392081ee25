"""Directed rounding: the one place where an exact number becomes a double, rounded up or down as stated.

Costs, leaks, sensitivities and scales of noise round up; limits and remaining budgets round down. An exact result that
is a double is returned unchanged. Doubles are rational numbers, so every function compares integers (numerators and
denominators); tests compare each with exact rationals.
"""

import math
import sys
from collections.abc import Iterable
from fractions import Fraction

Exact = Fraction | int | float
Ratio = tuple[int, int]  # numerator and denominator; not reduced, which would take most of the time
LARGEST = sys.float_info.max
BITS = 128  # precision of a power, beyond its leading zeros


def round_up(x: Exact) -> float:
    """The least double ≥ x; infinity above the largest double."""
    return x if isinstance(x, float) else _least_above(*x.as_integer_ratio())


def round_down(x: Exact) -> float:
    """The greatest double ≤ x."""
    return -round_up(-x)


def sum_up(*terms: Exact) -> float:
    """The least double ≥ the sum."""
    return math.inf if math.inf in terms else _least_above(*_sum(terms))


def sum_down(*terms: Exact) -> float:
    """The greatest double ≤ the sum."""
    return -sum_up(*(-term for term in terms))


def product_up(*factors: Exact) -> float:
    """The least double ≥ the product of numbers ≥ 0. Infinity if a factor is, even beside 0: then no bound is known."""
    return math.inf if math.inf in factors else _least_above(*_product(factors))


def product_down(*factors: Exact) -> float:
    """The greatest double ≤ the product of numbers ≥ 0; 0 if a factor is 0, even beside infinity."""
    if math.inf in factors:
        return 0.0 if 0 in factors else math.inf
    above, below = _product(factors)
    return -_least_above(-above, below)


def quotient_up(above: Exact, below: Exact) -> float:
    """The least double ≥ above/below, for below > 0."""
    (a, b), (c, d) = above.as_integer_ratio(), below.as_integer_ratio()
    return _least_above(a * d, b * c)


def quotient_down(above: Exact, below: Exact) -> float:
    """The greatest double ≤ above/below, for below > 0."""
    return -quotient_up(-above, below)


def sqrt_up(*factors: Exact) -> float:
    """The least double ≥ the square root of the product of numbers ≥ 0; infinity if a factor is infinite."""
    if math.inf in factors:
        return math.inf
    above, below = _product(factors)
    found = _near_root(above, below)
    while _compare_square(found, above, below) < 0:
        found = math.nextafter(found, math.inf)
    while found > 0 and _compare_square(before := math.nextafter(found, 0.0), above, below) >= 0:
        found = before
    return found


def sqrt_down(*factors: Exact) -> float:
    """The greatest double ≤ the square root of the product of finite numbers ≥ 0."""
    found, (above, below) = sqrt_up(*factors), _product(factors)
    return found if _compare_square(found, above, below) <= 0 else math.nextafter(found, 0.0)


def mixture_up(weight: Exact, inside: Exact) -> float:
    """The least double ≥ weight + (1 − weight)·inside: a mixture of 1, with this weight, and `inside`."""
    (a, b), (c, d) = weight.as_integer_ratio(), inside.as_integer_ratio()
    return _least_above(a * d + (b - a) * c, b * d)


def rest_down(whole: Exact, part: Exact) -> float:
    """The greatest double x with part + (1 − part)·x ≤ whole, for part ≤ whole ≤ 1 and part < 1."""
    (a, b), (c, d) = whole.as_integer_ratio(), part.as_integer_ratio()
    return -_least_above(-(a * d - b * c), b * (d - c))


def leak_up(leaks: Iterable[tuple[int, float]]) -> float:
    """A double ≥ 1 − Π(1 − leak)^count: the least one, unless the exact value is within 2⁻¹²⁸ (relative) of a double.

    (1 − leak)^count is computed by repeated squaring in fixed point, with every product rounded down. One squaring
    loses less than a unit of the last bit and doubles the error so far, so the error stays below 4·count units.
    """
    steps = [(count, leak.as_integer_ratio()) for count, leak in leaks if count and leak > 0]
    if any(above >= below for _, (above, below) in steps):
        return 1.0
    if len(steps) < 2 and all(count == 1 for count, _ in steps):
        return steps[0][1][0] / steps[0][1][1] if steps else 0.0
    zeros = max(below.bit_length() - above.bit_length() for _, (above, below) in steps)
    bits = BITS + zeros + sum(count.bit_length() + 2 for count, _ in steps)
    kept = 1 << bits
    for count, (above, below) in steps:
        kept = kept * _power(((below - above) << bits) // below, count, bits) >> bits
    return min(1.0, _least_above((1 << bits) - kept, 1 << bits))


def _power(base: int, count: int, bits: int) -> int:
    """A lower bound on (base/2^bits)^count·2^bits."""
    found = 1 << bits
    while count:
        found = found * base >> bits if count & 1 else found
        base, count = base * base >> bits, count >> 1
    return found


def _least_above(above: int, below: int) -> float:
    """The least double ≥ above/below: the quotient of two integers is the nearest double, so it is that or the next."""
    try:
        found = above / below
    except OverflowError:
        return math.inf if above > 0 else -LARGEST
    a, b = found.as_integer_ratio()
    return found if a * below >= above * b else math.nextafter(found, math.inf)


def _sum(terms: Iterable[Exact]) -> Ratio:
    above, below = 0, 1
    for term in terms:
        a, b = term.as_integer_ratio()
        above, below = above * b + a * below, below * b
    return above, below


def _product(factors: Iterable[Exact]) -> Ratio:
    above, below = 1, 1
    for factor in factors:
        a, b = factor.as_integer_ratio()
        above, below = above * a, below * b
    return above, below


def _near_root(above: int, below: int) -> float:
    """√(above/below), with an error of about one unit in the last place."""
    shift = max(0, 130 - above.bit_length() + below.bit_length()) // 2
    return math.isqrt((above << 2 * shift) // below) / (1 << shift)


def _compare_square(x: float, above: int, below: int) -> int:
    """A number with the sign of x² − above/below, for x ≥ 0."""
    a, b = x.as_integer_ratio()
    return a * a * below - above * b * b
