"""The geometric law: the number of successes before the first failure."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, Exp, Real, below, enclosure, precision, rational
from sfumato.noise.monotone import LEAST, MOST, ONE_SIDE, Floats, MonotoneLaw


@dataclass(frozen=True)
class Geometric(MonotoneLaw):
    """P(k) = (1 − q)q^k, k ≥ 0, for a ratio q that is rational or known by balls.

    log P is linear: |P″| = (ln q)²P on bins.
    """

    q: Fraction | float | Real
    sides = ONE_SIDE

    def __post_init__(self) -> None:
        if not isinstance(self.q, Real):
            object.__setattr__(self, "q", rational("q", self.q, 0, 1))
        if self.q == 0:
            return
        if not LEAST <= self.spread <= MOST:
            raise InvalidParameter(
                "q is out of range.\n  found:  a ratio that falls by e over fewer than 1/1000 or more than 1e18 steps\n"
                "  do:     give 0, or a number from exp(-1000) to exp(-1e-18)"
            )

    @cached_property
    def spread(self) -> Fraction:
        """−1/ln q, roughly."""
        if self.q == 0:
            return LEAST
        with precision(256):
            slope = -self.ratio(256).log()
            return below(1 / slope) if slope > 0 else Fraction(0)

    def ratio(self, prec: int) -> Ball:
        return enclosure(self.q if isinstance(self.q, Real) else Fraction(self.q), prec)

    @property
    def reach(self) -> float:
        return 12

    def weight(self, m: int, prec: int) -> Ball:
        work = prec + m.bit_length() + 16  # a power multiplies the relative error by m
        with precision(work):
            return self.ratio(work) ** m

    def bend(self, edge: Floats, width: int) -> Floats:
        return np.full(edge.shape, (width / float(self.spread)) ** 2)


def geometric(scale: Fraction | float) -> Geometric:
    """P(k) ∝ e^{−k/scale}, k ≥ 0: one side of the discrete Laplace law."""
    return Geometric(Exp(-1 / rational("scale", scale, LEAST, MOST)))
