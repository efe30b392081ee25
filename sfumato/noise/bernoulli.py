"""Coins whose probability is rational or known by balls, such as e^{−x}."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, Exp, Real, ceiling, enclosure, floor, precision, rational
from sfumato.noise.coin import happens
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.sampler import CHUNK, MOST_DRAWS
from sfumato.noise.table import USUAL, Words

PREC = 128
MOST_RATE = Fraction(10**18)


@dataclass(frozen=True)
class Bernoulli:
    """True with probability p exactly.

    The first `guide` bits U decide unless ⌊2ⁿp⌋ ≤ U < ⌈2ⁿp⌉, when the comparison goes on (Theorem 2).
    """

    p: Fraction | float | Real
    words: Words = USUAL
    source: Source = SYSTEM

    def __post_init__(self) -> None:
        if not isinstance(self.p, Real):
            object.__setattr__(self, "p", rational("p", self.p, 0, 1))
            return
        with precision(PREC):
            found = self.p.ball(PREC)
            if found < 0 or found > 1 or not found.is_finite():
                raise InvalidParameter(
                    "p is not a probability.\n  found:  a ball outside [0, 1]\n  do:     give a number between 0 and 1"
                )

    def one(self) -> bool:
        """One coin."""
        return happens(self._theta, self.source, step=self.words.step)

    def draw(self, count: int) -> NDArray[np.bool_]:
        """`count` independent coins."""
        coins = np.empty(whole("count", count, 0, MOST_DRAWS), np.bool_)
        guide, step = self.words.guide, self.words.step
        with precision(PREC):
            scaled = self._theta(PREC) * 2**guide
            low, high = max(0, floor(scaled)), min(1 << guide, ceiling(scaled))
            least, most = floor(scaled * 2**step), ceiling(scaled * 2**step)
        for start in range(0, coins.size, CHUNK):
            part = coins[start : start + CHUNK]
            u = self.source.words(part.size, guide)
            if low == 1 << guide:  # p = 1: one more than a word holds
                part[:] = True
                continue
            np.less(u, low, out=part)
            if low < high:
                between = u == low if high - low == 1 else (u - u.dtype.type(low)) < high - low  # == is quicker
                for at in np.flatnonzero(between).tolist():
                    longer = int(u[at]) << step | self.source.bits(step)  # once as integers, then as balls
                    part[at] = longer < least or (
                        longer < most and happens(self._theta, self.source, longer, guide + step, step)
                    )
        return coins

    def _theta(self, prec: int) -> Ball:
        return enclosure(self.p if isinstance(self.p, Real) else Fraction(self.p), prec)


def exponential_coin(x: Fraction | float, words: Words = USUAL, source: Source = SYSTEM) -> Bernoulli:
    """Bernoulli(e^{−x}) for rational x ≥ 0."""
    return Bernoulli(Exp(-rational("x", x, 0, MOST_RATE)), words, source)
