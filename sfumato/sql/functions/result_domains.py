"""Public domains of results, from the domains of the arguments."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sfumato.sql.domains import TRUTH, Domain, Kind, number, text

LONGEST_WORDS = 64  # characters of a number, a boolean or a date as text, on any engine


def truth_domain(*_: Domain) -> Domain:
    return TRUTH


def same_text(a: Domain, *_: Domain) -> Domain:
    """A text that is no longer than the first one."""
    return text(a.longest)


def joined_text(*parts: Domain) -> Domain:
    return text(sum(part.longest for part in parts))


def first_part(a: Domain, *numbers: Domain) -> Domain:
    """A part of a text; the last number, a constant, is its length at most."""
    return text(min(a.longest, numbers[-1].high))


def value_text(a: Domain) -> Domain:
    """Any value as text."""
    return text(a.longest if a.kind is Kind.TEXT else LONGEST_WORDS)


def sum_domain(a: Domain, b: Domain) -> Domain:
    step = a.step if a.step == b.step else None
    return number(a.low + b.low, a.high + b.high, step)


def difference_domain(a: Domain, b: Domain) -> Domain:
    step = a.step if a.step == b.step else None
    return number(a.low - b.high, a.high - b.low, step)


def product_domain(a: Domain, b: Domain) -> Domain:
    ends = [x * y if x and y else 0.0 for x in (a.low, a.high) for y in (b.low, b.high)]
    return number(min(ends), max(ends), a.step * b.step if a.step and b.step else None)


def quotient_domain(a: Domain, b: Domain) -> Domain:
    if b.low <= 0 <= b.high:
        return number()
    ends = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    return number(min(ends), max(ends))


def covering_domain(*domains: Domain) -> Domain:
    """A domain that holds all of these."""
    known = [d for d in domains if d != Domain(Kind.TRUTH)]
    if not known:
        return Domain(Kind.TRUTH)
    keys = [d.keys for d in known]
    merged = None if None in keys else tuple(dict.fromkeys(k for ks in keys if ks is not None for k in ks))
    if known[0].kind is not Kind.NUMBER:
        longest = max(d.longest for d in known) if known[0].kind is Kind.TEXT else math.inf
        return Domain(known[0].kind, keys=merged, length=longest)
    low, high = min(d.low for d in known), max(d.high for d in known)
    return Domain(Kind.NUMBER, low, high, common_step([d.step for d in known]), merged)


def common_step(steps: Sequence[float | None]) -> float | None:
    """The largest step of which all these are multiples; none if one of them has none. Exact: doubles are fractions."""
    found = Fraction(0)
    for step in steps:
        if step is None or math.isinf(step):
            return None
        one = Fraction(step)
        below = found.denominator * one.denominator
        found = Fraction(math.gcd(found.numerator * one.denominator, one.numerator * found.denominator), below)
    return float(found) or None


def step_of(a: Domain) -> float | None:
    """A step of which all its values are multiples; a constant is a multiple of itself."""
    return a.step if a.low < a.high else abs(a.low)


def least_domain(*domains: Domain) -> Domain:
    """NULL is ignored: the result is at most each argument that is never NULL, and at least the least of all."""
    high = min([max(d.high for d in domains), *(d.high for d in domains if d.sure)])
    return extreme_domain(domains, min(d.low for d in domains), high)


def greatest_domain(*domains: Domain) -> Domain:
    """NULL is ignored: the result is at least each argument that is never NULL, and at most the largest of all."""
    low = max([min(d.low for d in domains), *(d.low for d in domains if d.sure)])
    return extreme_domain(domains, low, max(d.high for d in domains))


def extreme_domain(domains: Sequence[Domain], low: float, high: float) -> Domain:
    """From low to high; in steps, if the constants among them are on the steps of the others."""
    step = common_step([step_of(d) for d in domains]) if any(d.step for d in domains) else None
    return replace(number(low, high, step), sure=any(d.sure for d in domains))


def absolute_domain(a: Domain) -> Domain:
    low = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return number(low, max(abs(a.low), abs(a.high)), a.step)


def rounded_domain(a: Domain) -> Domain:
    return number(math.floor(a.low) if math.isfinite(a.low) else a.low, math.ceil(a.high) if a.bounded else a.high, 1.0)


def clamped_domain(a: Domain, low: Domain, high: Domain) -> Domain:
    """In steps of which the limits are multiples too: CLAMP(x, 0, 2.5) of whole numbers can be 2.5."""
    least, most = min(max(a.low, low.low), high.low), min(max(a.high, low.high), high.high)
    return number(least, most, common_step([a.step, step_of(low), step_of(high)]) if a.step else None)


def root_domain(a: Domain) -> Domain:
    return number(math.sqrt(max(0.0, a.low)), math.sqrt(max(0.0, a.high)))


def logarithm_domain(a: Domain) -> Domain:
    """For base 2 and larger: bounded if the numbers are bounded away from 0. Wider than necessary for larger bases."""
    low = math.log2(a.low) if a.low > 0 else -math.inf
    high = math.log2(a.high) if a.high > 0 else math.inf
    return number(min(low, 0.0), max(high, 0.0))


def exponential_domain(a: Domain) -> Domain:
    return number(math.exp(a.low) if a.low < 700 else math.inf, math.exp(a.high) if a.high < 700 else math.inf)


def power_domain(a: Domain, k: Domain) -> Domain:
    """For a whole exponent from 1 to 10."""
    ends = [math.prod([float(end)] * int(k.high)) for end in (a.low, a.high)]
    least = 0.0 if k.high % 2 == 0 and a.low <= 0 <= a.high else min(ends)
    return number(least, max(ends))


def integer_keys(low: int, high: int) -> Domain:
    """Whole numbers that are public keys."""
    return Domain(Kind.NUMBER, low, high, 1.0, tuple(float(n) for n in range(low, high + 1)))
