"""The discrete Laplace law, also called two-sided geometric: on all integers, or truncated to an interval."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from sfumato.checks import whole
from sfumato.noise.balls import Ball, ball, precision, ratio, rational
from sfumato.noise.monotone import LEAST, MOST, Floats, TailedLaw

ANYTHING = 1e30  # no bound on how a curve bends: such bins ask balls


@dataclass(frozen=True)
class DiscreteLaplace(TailedLaw):
    """P(k) ∝ exp(−|k|/s).  Ghosh, Roughgarden & Sundararajan 2009."""

    scale: Fraction | float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", rational("scale", self.scale, LEAST, MOST))

    @property
    def spread(self) -> Fraction:
        return Fraction(self.scale)

    @property
    def reach(self) -> float:
        return 12

    @cached_property
    def size(self) -> tuple[int, int]:
        return self.spread.as_integer_ratio()

    def weight(self, m: int, prec: int) -> Ball:
        above, below = self.size
        return ratio(-m * below, above).exp()

    def beyond(self, m: int, prec: int) -> Ball:
        """P(|K| > m) = 2r^{m+1}/(1 + r), r = e^{−1/s}."""
        with precision(prec + 16):
            return 2 * ball(-(m + 1) / self.spread).exp() / (1 + ball(-1 / self.spread).exp())

    def bend(self, edge: Floats, width: int) -> Floats:
        return np.full(edge.shape, (width / float(self.scale)) ** 2)


@dataclass(frozen=True)
class TruncatedLaplace(TailedLaw):
    """P(k) ∝ exp(−|k|/s) for |k| ≤ bound, and nothing else: the discrete Laplace law, given that it stays inside.

    The weights are those of the whole law, then 0: still falling, and still log-concave.
    """

    scale: Fraction | float
    bound: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", self.base.scale)
        object.__setattr__(self, "bound", whole("bound", self.bound, 1, 4 * 10**18))

    @property
    def base(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale)

    @property
    def spread(self) -> Fraction:
        return min(Fraction(self.scale), Fraction(self.bound))

    @property
    def reach(self) -> float:
        return min(12.0, float(self.bound / self.spread) + 1)

    def weight(self, m: int, prec: int) -> Ball:
        return self.base.weight(m, prec) if m <= self.bound else arb(0)

    def beyond(self, m: int, prec: int) -> Ball:
        with precision(prec + 16):
            return 2 * self.mass(m + 1, self.bound, prec) / (1 + 2 * self.mass(1, self.bound, prec))

    def mass(self, first: int, last: int, prec: int) -> Ball:
        """Σ e^{−k/s} over first ≤ k ≤ last, first ≥ 0."""
        if first > last:
            return arb(0)
        with precision(prec + 16):
            above, below = self.base.size
            fall = ratio(-(last - first + 1) * below, above).expm1() / ratio(-below, above).expm1()
            return self.base.weight(first, prec) * fall

    def bend(self, edge: Floats, width: int) -> Floats:
        """As the whole law bends, except where it is cut."""
        cut = (edge <= self.bound) & (self.bound < edge + 2 * width)  # twice: the bound may be rounded up here
        return np.where(cut, ANYTHING, self.base.bend(edge, width))
