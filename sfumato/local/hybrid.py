"""The hybrid of Duchi's and the piecewise randomizer: the least worst-case error for one number."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.local.draws import Below, many_below
from sfumato.local.duchi import DuchiMean
from sfumato.local.mean import MeanRandomizer
from sfumato.local.odds import Odds
from sfumato.local.piecewise import PiecewiseMean
from sfumato.local.randomizer import Classes, Reports
from sfumato.loss.numeric import Floats, floats

PARTS = 1 << 20
LEAST_EPS = 0.61  # below it Duchi's randomizer alone is better


@dataclass(frozen=True)
class HybridMean(MeanRandomizer):
    """Piecewise with probability share/2²⁰, else Duchi's; which of them is part of the report.

    With share 1 − e^{−ε/2} the variance is nearly the same at every x. For ε ≤ 0.61 the share is 0.

    Theorem: the hybrid mechanism is ε-LDP and has the least worst-case variance of the three [Wang et al. 2019, Cor. 1]
    """

    duchi: DuchiMean
    piecewise: PiecewiseMean
    share: int

    scheme = "hybrid"

    def __post_init__(self) -> None:
        if self.duchi.odds.ratio != self.piecewise.odds.ratio or not 0 <= self.share <= PARTS:
            raise InvalidParameter(
                "both parts need the same odds, and the share lies in [0, 2²⁰].\n  do:     use HybridMean.of"
            )

    @staticmethod
    def of(eps: float) -> "HybridMean":
        """The hybrid with at most this ε."""
        piecewise = PiecewiseMean.of(eps)
        odds = DuchiMean.of(eps).odds  # the coarser of the two: all weights must fit
        piecewise = PiecewiseMean(odds, piecewise.window, piecewise.cells)
        share = 0 if eps <= LEAST_EPS else round(-math.expm1(-eps / 2) * PARTS)
        return HybridMean(DuchiMean(odds), piecewise, share)

    @property
    def mix(self) -> Fraction:
        return Fraction(self.share, PARTS)

    @property
    def weights(self) -> Odds:
        return self.duchi.odds

    @property
    def classes(self) -> Classes:
        one, other, m = self.piecewise.classes, self.duchi.classes, self.mix
        return Classes(m * one.one + (1 - m) * other.one, Fraction(0), m * one.neither)

    @property
    def bits(self) -> float:
        return float((self.report_bound - 1).bit_length())

    @property
    def report_bound(self) -> int:
        return 2 + self.piecewise.cells

    @property
    def reach(self) -> float:
        return max(self.duchi.reach, self.piecewise.reach)

    @property
    def worst_variance(self) -> float:
        return float(np.max(self.variance(np.linspace(0, 1, 9)))) * (1 + 1e-6)

    def variance(self, x: ArrayLike) -> Floats:
        m = float(self.mix)
        return floats(m * self.piecewise.variance(x) + (1 - m) * self.duchi.variance(x))

    @property
    def description(self) -> dict[str, object]:
        return {**self.piecewise.description, "scheme": self.scheme, "share": self.share}

    def answer(self, value: int, below: Below) -> int:
        """All draws are made, whichever part answers."""
        first = below(PARTS) < self.share
        sign, cell = self.duchi.answer(value, below), self.piecewise.answer(value, below)
        return 2 + cell if first else sign

    def answers(self, numbers: NDArray[np.int64]) -> Reports:
        first = many_below(PARTS, numbers.size, self.source) < self.share
        duchi, piecewise = (part.with_source(self.source) for part in (self.duchi, self.piecewise))
        return np.where(first, 2 + piecewise.answers(numbers), duchi.answers(numbers))

    def decode(self, reports: Reports) -> Floats:
        found = np.asarray(reports)
        return floats(np.where(found < 2, self.duchi.decode(found), self.piecewise.decode(found - 2)))
