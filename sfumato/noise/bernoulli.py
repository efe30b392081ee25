"""Bernoulli draws: coins whose probability is rational or enclosed by balls, such as e^{−x}, each decided exactly."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, Exp, Real, ceiling, enclosure, floor, precision, rational
from sfumato.noise.draw_table import CHUNK, MOST_DRAWS, USUAL, Words
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.exponential_weights import Gaps, above_zero, powers

MORE = 32  # bits of precision beyond those compared
Theta = Callable[[int], Ball]  # precision ↦ an enclosure of θ
PREC = 128
MOST_RATE = Fraction(10**18)
MOST_COIN = 32


def happens(theta: Theta, source: Source, u: int = 0, known: int = 0, step: int = 64) -> bool:
    """True with probability exactly θ, given that `u` holds the first `known` bits of a uniform number.

    With n bits U known, u lies in [U, U+1]/2ⁿ: yes if U + 1 ≤ 2ⁿθ, no if U ≥ 2ⁿθ, else `step` more bits. The bits
    compared before are continued, never drawn again. Stops almost surely, for every θ in [0, 1], also 0, 1, dyadic.
    Theorem: A lazy comparison answers yes with probability θ, and stops [docs/theorems/noise.md, Theorem 2]
    """
    while True:
        prec = known + step + MORE
        with precision(prec):
            scaled = theta(prec) * 2**known
            if u + 1 <= scaled:
                yes, no = True, False
            else:
                yes, no = False, u >= scaled
            if scaled < 0 or scaled > 2**known:
                raise AssertionError("a probability outside [0, 1]: the weights of this table are wrong, do not use it")
        if yes or no:
            return yes
        u, known = u << step | source.bits(step), known + step


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


def exponential_coins(
    x: ArrayLike, rate: Fraction | float = 1, *, words: Words = USUAL, source: Source = SYSTEM
) -> NDArray[np.bool_]:
    """True with probability e^{−rate·xᵢ} exactly, independently for each xᵢ ≥ 0 (finite doubles or integers).

    >>> exponential_coins([0.0, 1e300]).tolist()
    [True, False]
    """
    if not np.size(x):
        return np.empty(0, np.bool_)
    return flip_coins(above_zero("x", x), rate, words, source)


def flip_coins(gaps: Gaps, rate: Fraction | float, words: Words, source: Source) -> NDArray[np.bool_]:
    """`coin` bits U against integers low ≤ 2^coin·e^{−rate·x} ≤ high; in between Theorem 2 goes on with U."""
    bound = powers(rate, min(words.coin, MOST_COIN))
    unit = bound.unit
    heads = np.empty(gaps.size, np.bool_)
    for start in range(0, gaps.size, CHUNK):
        part = heads[start : start + CHUNK]
        u = source.words(part.size, unit)
        y = bound.steps(gaps.near(start, start + part.size))
        sure = np.take(bound.narrow, y.astype(np.int64), mode="clip")  # clip never acts; it is faster than raise
        np.less(u, sure, out=part)
        u -= sure  # wraps below: such numbers are large, or only cost a second comparison
        again = np.flatnonzero(u < bound.width)
        first = u[again] + sure[again]
        least, most = bound.bounds(y[again])
        part[again] = first < least
        for at in np.flatnonzero((first >= least) & (first < most)).tolist():
            theta = partial(bound.exactly, gaps.exactly(start + int(again[at])))
            part[again[at]] = happens(theta, source, int(first[at]), unit, words.step)
    return heads
