"""Duchi's randomizer for one number: a sign, more often that of the number."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.local.draws import Below, many_below
from sfumato.local.frequency import require_information
from sfumato.local.mean import STEPS, MeanRandomizer
from sfumato.local.odds import Odds
from sfumato.local.randomizer import Classes, Reports, check_total
from sfumato.loss.numeric import Floats, floats


@dataclass(frozen=True)
class DuchiMean(MeanRandomizer):
    """+c or −c with P[+c] = ½ + x/(2c), c = (A + B)/(A − B): one bit, variance c² − x².

    In whole numbers, x = a/STEPS: + with weight STEPS(A + B) + a(A − B) of 2·STEPS(A + B). At x = ±1 it is randomized
    response with odds A : B, and between them a mixture of the two.

    Theorem: Duchi's randomizer is ε-LDP, and optimal for one number and small ε
        [Duchi, Jordan & Wainwright 2018, Sec. 4]
    """

    odds: Odds

    scheme = "duchi"

    def __post_init__(self) -> None:
        check_total(self.total)
        self.reach  # noqa: B018  # refuses odds that tell nothing

    @staticmethod
    def of(eps: float) -> "DuchiMean":
        """Duchi's randomizer with at most this ε."""
        return DuchiMean(Odds.of(eps, 4 * STEPS))

    @property
    def total(self) -> int:
        return 2 * STEPS * (self.odds.truth + self.odds.lie)

    @property
    def classes(self) -> Classes:
        return Classes(Fraction(self.odds.lie, self.odds.truth + self.odds.lie), Fraction(0), Fraction(0))

    @property
    def bits(self) -> float:
        return 1.0

    @property
    def report_bound(self) -> int:
        return 2

    @property
    def reach(self) -> float:
        require_information(self.odds)
        return (self.odds.truth + self.odds.lie) / (self.odds.truth - self.odds.lie)

    @property
    def worst_variance(self) -> float:
        return self.reach**2

    def variance(self, x: ArrayLike) -> Floats:
        return floats(self.reach**2 - np.square(np.asarray(x, np.float64)))

    @property
    def description(self) -> dict[str, object]:
        return {"scheme": self.scheme, "truth": self.odds.truth, "lie": self.odds.lie}

    def plus(self, number: NDArray[np.int64] | int) -> NDArray[np.int64] | int:
        """The weight of +."""
        return STEPS * (self.odds.truth + self.odds.lie) + number * (self.odds.truth - self.odds.lie)

    def answer(self, value: int, below: Below) -> int:
        return int(below(self.total) < self.plus(value))

    def answers(self, numbers: NDArray[np.int64]) -> Reports:
        return np.asarray(
            many_below(self.total, numbers.size, self.source).view(np.int64) < self.plus(numbers), np.int64
        )

    def decode(self, reports: Reports) -> Floats:
        return floats(np.where(np.asarray(reports) > 0, self.reach, -self.reach))
