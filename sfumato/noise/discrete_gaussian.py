"""The Gaussian's shape on the integers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.noise.balls import Ball, ratio, rational
from sfumato.noise.monotone import LEAST, MOST, Floats, MonotoneLaw


@dataclass(frozen=True)
class DiscreteGaussian(MonotoneLaw):
    """P(k) ∝ exp(−k²/2σ²).  Canonne, Kamath & Steinke 2020.

    log P is concave, and |(log P)″| = 1/σ², so P″ = (z² − 1)P/σ² at z = k/σ.
    """

    sigma: Fraction | float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", rational("sigma", self.sigma, LEAST, MOST))

    @property
    def spread(self) -> Fraction:
        return Fraction(self.sigma)

    @property
    def reach(self) -> float:
        return 5

    @cached_property
    def rate(self) -> tuple[int, int]:
        """1/2σ² as a fraction."""
        above, below = self.spread.as_integer_ratio()
        return below * below, 2 * above * above

    def weight(self, m: int, prec: int) -> Ball:
        above, below = self.rate
        return ratio(-m * m * above, below).exp()

    def bend(self, edge: Floats, width: int) -> Floats:
        sigma = float(self.sigma)
        z = (edge + width) / sigma
        bound: Floats = np.maximum(1.0, z * z - 1) * (width / sigma) ** 2
        return bound
