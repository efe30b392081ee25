"""The Laplace density's shape on the integers, also known as the two-sided geometric law."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.noise.balls import Ball, ball, precision, ratio, rational
from sfumato.noise.monotone import LEAST, MOST, Floats, TailedLaw


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
