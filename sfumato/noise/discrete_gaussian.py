"""The discrete Gaussian law on the integers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from flint import arb

from sfumato.noise.balls import Ball, ball, ceiling, precision, ratio, rational
from sfumato.noise.monotone import LEAST, MOST, Floats, TailedLaw

SUMMED = 64  # up to this σ tails are sums; beyond, integrals that are never below them


@dataclass(frozen=True)
class DiscreteGaussian(TailedLaw):
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

    def beyond(self, m: int, prec: int) -> Ball:
        """P(|K| > m) for σ ≤ 64, and a number slightly above it for larger σ.

        Proof. f(x) = e^{−x²/2σ²} is convex for |x| ≥ σ and concave for |x| ≤ σ, so f(k) is at most (least)
        its mean over [k − ½, k + ½] there (Hermite–Hadamard), and by Poisson summation Z = Σf(k) = σ√(2π)(1 + h),
        0 < h = 2Σe^{−2π²σ²j²} < 3e^{−2π²σ²}. With y = (m + ½)/σ√2, for m + ½ ≥ σ: Σ_{|k|>m} f/Z ≤ erfc(y). Otherwise
        Σ_{|k|≤m} f/Z ≥ erf(y)/(1 + h), and P(|K| > m) ≤ erfc(y) + h.
        Theorem: beyond σ the tails of the discrete Gaussian are below those of the rounded one [the proof above]
        """
        if self.spread <= SUMMED:
            sums = _tails(self, prec + 16)
            return sums[min(m, len(sums) - 1)]
        with precision(prec + 16):
            gone = (ball((m + Fraction(1, 2)) / self.spread) / arb(2).sqrt()).erfc()
            inside = 2 * m + 1 < 2 * self.spread
            return gone + 3 * (-2 * (arb.pi() * ball(self.spread)) ** 2).exp() if inside else gone

    def bend(self, edge: Floats, width: int) -> Floats:
        sigma = float(self.sigma)
        z = (edge + width) / sigma
        bound: Floats = np.maximum(1.0, z * z - 1) * (width / sigma) ** 2
        return bound


@lru_cache(maxsize=16)
def _tails(law: DiscreteGaussian, prec: int) -> list[Ball]:
    """P(|K| > m) for m = 0, 1, …; the last one starts at 0 and is for all that follow, too.

    Beyond M the weights fall at least by the factor w(M + 1)/w(M) each time: the rest is a geometric series at most.
    """
    with precision(prec):
        last = ceiling((ball(2 * law.spread**2) * arb(2).log() * prec).sqrt()) + 1
        weights = [law.weight(m, prec) for m in range(last + 2)]
        rest = weights[-1] / (1 - weights[-1] / weights[-2])
        tail = rest * arb(0.5, 0.5)  # somewhere between nothing and the bound
        sums = [tail]
        for weight in reversed(weights[1:-1]):
            tail = tail + weight
            sums.append(tail)
        total = 2 * tail + weights[0]
        return [2 * x / total for x in reversed(sums)]
