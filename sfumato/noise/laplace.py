"""Laplace noise rounded to the integers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.noise.balls import Ball, ball, precision, ratio, rational
from sfumato.noise.density import Density, Rounded
from sfumato.noise.monotone import LEAST, MOST, Floats


@dataclass(frozen=True)
class LaplaceDensity(Density):
    """exp(−|x|/s), divided by 2s·sinh(1/2s): a cell that 0 is not inside has mass e^{−y/s}, y its centre."""

    scale: Fraction | float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", rational("scale", self.scale, LEAST, 4 * MOST))

    def times(self, factor: int) -> "LaplaceDensity":
        return LaplaceDensity(self.spread * factor)

    @property
    def spread(self) -> Fraction:
        return Fraction(self.scale)

    @property
    def reach(self) -> float:
        return 12

    @cached_property
    def ratio(self) -> tuple[int, int]:
        return self.spread.as_integer_ratio()

    def mass(self, a: Fraction, b: Fraction, prec: int) -> Ball:
        s = self.spread
        return (-ball(a / s)).exp() * -ball((a - b) / s).expm1() / (2 * ball(1 / (2 * s)).sinh())

    def beyond(self, x: Fraction, prec: int) -> Ball:
        """e^{−x/s}."""
        with precision(prec + 16):
            return (-ball(x / self.spread)).exp()

    def cell(self, twice: int, prec: int) -> Ball:
        """At 0: 1, which is more than the mass (1 − e^{−h})/sinh(h) of [−½, ½], h = 1/2s."""
        above, below = self.ratio
        return ratio(-twice * below, 2 * above).exp()

    def bend(self, edge: Floats, width: int) -> Floats:
        return np.full(edge.shape, (width / float(self.scale)) ** 2)


def rounded_laplace(scale: Fraction | float) -> Rounded:
    """P(k) = sinh(1/2s)·e^{−|k|/s} for k ≠ 0, P(0) = 1 − e^{−1/2s}: a Laplace draw, rounded."""
    return Rounded(LaplaceDensity(rational("scale", scale, LEAST, MOST)))
