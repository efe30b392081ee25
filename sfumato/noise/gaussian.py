"""Gaussian noise rounded to the integers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from flint import arb

from sfumato.noise.balls import Ball, ball, precision, ratio, rational
from sfumato.noise.density import Density, Rounded
from sfumato.noise.monotone import LEAST, MOST, Floats

ENOUGH = 128  # cells per σ from which on Lemma 3 is used


@dataclass(frozen=True)
class GaussianDensity(Density):
    """exp(−x²/2σ²).

    Theorem: A cell's mass is e^{−y²/2σ²}(1 + (y²/σ² − 1)/24σ² ± 2/σ⁴) for y ≤ 7σ, σ ≥ 128
      [docs/theorems/noise.md, Lemma 3]
    """

    sigma: Fraction | float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", rational("sigma", self.sigma, LEAST, 4 * MOST))

    def times(self, factor: int) -> "GaussianDensity":
        return GaussianDensity(self.spread * factor)

    @property
    def spread(self) -> Fraction:
        return Fraction(self.sigma)

    @property
    def reach(self) -> float:
        return 5

    @cached_property
    def ratio(self) -> tuple[int, int]:
        return self.spread.as_integer_ratio()

    def mass(self, a: Fraction, b: Fraction, prec: int) -> Ball:
        lost = int(self.spread / (b - a)).bit_length() if a < b else 0  # to cancellation in the difference
        with precision(prec + lost + 16):
            unit = 1 / (ball(self.spread) * arb(2).sqrt())
            left, right = (ball(a) * unit).erfc(), (ball(b) * unit).erfc()
            return (left - right) * ball(self.spread) * (arb.pi() / 2).sqrt()

    def beyond(self, x: Fraction, prec: int) -> Ball:
        """erfc(x/σ√2)."""
        with precision(prec + 16):
            return (ball(x / self.spread) / arb(2).sqrt()).erfc()

    def cell(self, twice: int, prec: int) -> Ball:
        above, below = self.ratio
        if prec <= 128 and above >= ENOUGH * below and twice * below <= 14 * above:
            q = ratio(below * below, 8 * above * above)
            x = q * (twice * twice)  # y²/2σ²
            return (-x).exp() * (1 + (2 * x - 1) * q / 3 + arb(0, 1) * 128 * q * q)
        work = prec + int(self.spread).bit_length() + 16
        with precision(work):
            return (_erfc(self, twice - 1, work) - _erfc(self, twice + 1, work)) * _unit(self, work)

    def bend(self, edge: Floats, width: int) -> Floats:
        """φ″ = (z² − 1)φ/σ², read where it is largest within half a cell (or one) of the bin; Lemma 4."""
        sigma = float(self.sigma)
        z = (edge + width + 1) / sigma
        bound: Floats = np.maximum(1.0, z * z - 1) * (width / sigma) ** 2 * (1 + 1 / sigma**2)
        return bound


@lru_cache(maxsize=8)  # neighbouring cells share an edge
def _erfc(density: GaussianDensity, twice: int, prec: int) -> Ball:
    """erfc(y/σ√2), y = twice/2."""
    return (ratio(twice * density.ratio[1], density.ratio[0]) / arb(8).sqrt()).erfc()


@lru_cache(maxsize=64)
def _unit(density: GaussianDensity, prec: int) -> Ball:
    """σ√(π/2): with it, erfc differences and Lemma 3 speak of the same weights."""
    return ball(density.spread) * (arb.pi() / 2).sqrt()


def rounded_gaussian(sigma: Fraction | float) -> Rounded:
    """P(k) = Φ((k + ½)/σ) − Φ((k − ½)/σ): noise that is exactly (Δ/σ)-Gaussian-DP on integers."""
    return Rounded(GaussianDensity(rational("sigma", sigma, LEAST, MOST)))
