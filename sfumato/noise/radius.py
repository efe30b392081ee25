"""The least radius that contains noise with a given probability, decided by ball arithmetic."""

import math
from fractions import Fraction
from typing import Protocol, SupportsFloat

from sfumato.checks import number, whole
from sfumato.noise.balls import Ball, ball, precision

FIRST, LAST = 128, 1024  # bits of the balls that decide


class Tailed(Protocol):
    """A law on the integers whose tails are known."""

    def beyond(self, m: int, prec: int) -> Ball:
        """An enclosure of P(|K| > m), or one of a number that is nowhere below it, of about `prec` bits."""


def radius(law: Tailed, confidence: SupportsFloat, coordinates: int = 1) -> int:
    """The least m such that `coordinates` independent draws are all within ±m, with this probability or more.

    (1 − P(|K| > m))^d ≥ c is P(|K| > m) ≤ 1 − c^{1/d}. Where balls of 1024 bits do not decide, m is one more.

    >>> from sfumato.noise import DiscreteLaplace
    >>> radius(DiscreteLaplace(3), 0.95)
    9
    """
    c, d = open_probability(confidence), whole("coordinates", coordinates, 1)
    if _enough(law, 0, c, d):
        return 0
    low, high = 0, 1
    while not _enough(law, high, c, d):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _enough(law, middle, c, d) else (middle, high)
    return high


def _enough(law: Tailed, m: int, c: Fraction, d: int) -> bool:
    prec = FIRST
    while prec <= LAST:
        with precision(prec):
            missed, tail = -(ball(c).log() / d).expm1(), law.beyond(m, prec)
            if tail <= missed:
                return True
            if tail > missed:
                return False
        prec *= 2
    return False


def open_probability(confidence: SupportsFloat) -> Fraction:
    """A probability that is neither 0 nor 1."""
    least, most = math.ulp(0.0), math.nextafter(1.0, 0.0)
    return Fraction(
        number("confidence", confidence, least, most, allowed="a probability such as 0.95, not 0 and not 1")
    )
