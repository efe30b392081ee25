"""A quantile by the exponential mechanism on a lattice: more accurate for quantiles than noise at any scale."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.bounded_range import BoundedRangeLoss, range_of
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import below_one
from sfumato.mechanisms.dependent.order_statistics import Quantile
from sfumato.mechanisms.dependent.ordered_values import Ordered
from sfumato.mechanisms.dependent.statistic import Exact
from sfumato.mechanisms.examples import ROWS_OF_NUMBERS, Example, Inputs, Neighbours
from sfumato.noise import select_run
from sfumato.noise.draw_table import Integers

UNLIKELY = 1e-6  # probability of a choice among capped scores, if the true quantile has the score 0
MOST_SCORE = 1 << 52


@dataclass(frozen=True)
class ChosenQuantile(Mechanism[ArrayLike | Ordered, Exact]):
    """A lattice point v with P(v) ∝ e^{−rate·score(v)}: the exponential mechanism with a score that handles ties.

    With p = a/b, T = a·n, L = #{x ≤ v}, L⁻ = #{x < v}: score(v) = max(0, T − b·L, b·L⁻ − T), capped. It is 0 at the
    true quantile and has sensitivity max(a, b − a). With rate = η/2max(a, b − a) the mechanism has bounded range η.
    Smooth sensitivity has 3 to 8 times the error on quantiles (docs/dependent.md).

    Theorem: a score of sensitivity Δ, capped or not, gives bounded range η at the rate η/2Δ
        [Durfee & Rogers 2019; Asi & Duchi 2020 on the inverse sensitivity mechanism]

    >>> ChosenQuantile(Quantile(0, 100), eta=2.0).release([40, 50, 60] * 1000)
    50
    """

    statistic: Quantile
    eta: float
    use = "for a quantile: a value chosen by its rank, without a search for an interval"

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Quantile):
            raise InvalidParameter(
                f"statistic must be a Quantile.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give Quantile(low, high, p=0.9)"
            )
        allowed = "a number from 1e-6 to 1000"
        object.__setattr__(self, "eta", checks.number("eta", self.eta, 1e-6, 1000.0, allowed=allowed))

    @staticmethod
    def on_ledger(statistic: Quantile, mu: float) -> "ChosenQuantile":
        """The largest η that costs at most μ on a Gaussian ledger, without slack."""
        return ChosenQuantile(statistic, range_of(mu))

    @staticmethod
    def at(statistic: Quantile, epsilon: float, delta: float = 0.0) -> "ChosenQuantile":
        """The largest η that is (ε, δ)-DP, up to a relative 1e-12."""
        eps, goal = checks.positive("epsilon", epsilon), checks.probability("delta", delta)
        low, high = eps, 2 * eps + 100.0
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            fits = BoundedRangeLoss(middle).delta(eps).upper <= goal
            low, high = (middle, high) if fits else (low, middle)
        return ChosenQuantile(statistic, low)

    @property
    def points(self) -> int:
        return self.statistic.ends[1] - self.statistic.ends[0] + 1

    @property
    def fraction(self) -> tuple[int, int]:
        return self.statistic.p.numerator, self.statistic.p.denominator

    @cached_property
    def rate(self) -> Fraction:
        a, b = self.fraction
        return Fraction(self.eta) / (2 * max(a, b - a))

    @cached_property
    def cap(self) -> int:
        """The largest score; larger ones count as this, so that only values of nearby ranks are read."""
        return min(MOST_SCORE, math.ceil(math.log(self.points / UNLIKELY) / float(self.rate)))

    def ranks(self, size: int) -> tuple[int, int]:
        """First and last of the ranks that are read out of `size`: all whose score is not capped."""
        middle, reach = self.statistic.rank(size), self.cap // self.fraction[1] + 2
        return middle - reach, middle + reach

    def runs(self, x: Ordered) -> tuple[Integers, Integers, Integers]:
        """(first, length, score) of runs of lattice points of one score; gaps (possibly empty) and values alternate."""
        a, b = self.fraction
        values, counts = np.unique(x.values - x.low, return_counts=True)
        before = x.firsts[0] - 1
        up_to = b * np.concatenate([[before], before + np.cumsum(counts)]).astype(np.int64)
        first, score = (np.empty(2 * values.size + 1, np.int64) for _ in range(2))
        first[0], first[1::2], first[2::2] = 0, values, values + 1
        target = a * x.size
        score[::2] = np.abs(target - up_to)
        score[1::2] = np.maximum(np.maximum(target - up_to[1:], up_to[:-1] - target), 0)
        return first, np.diff(first, append=self.points), np.minimum(score, self.cap)

    def release(self, value: ArrayLike | Ordered) -> Exact:
        x = self.statistic.order_values(value)
        first, counts, score = self.runs(x)
        i, k = select_run(score - score[counts > 0].min(), counts, self.rate, source=self.source)
        return self.statistic.exact(int(first[i]) + k + x.low)

    def loss(self) -> BoundedRangeLoss:
        """The loss of bounded range η: pure ε = η, at about a quarter of the μ² of a general η-DP mechanism."""
        return BoundedRangeLoss(self.eta)

    def ranks_off(self, confidence: float = 0.95) -> float:
        """The error in ranks that is not exceeded with this probability, whatever the data.

        The error in value depends on the density of the data there, which is private, so there is no `error`.
        """
        c = below_one("confidence", confidence)
        odds = max(1.0, (self.points - 1) * c / (1 - c))
        return math.log(odds) / float(self.rate) / self.fraction[1] * (1 + 1e-12)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        pairs = (Neighbours([2], [2, 6]), Neighbours([], [7]), Neighbours([0, 0, 8], [0, 0, 8, 8]))
        inputs = Inputs("numbers, one per person", ROWS_OF_NUMBERS)
        return (Example(cls(Quantile(0, 8), 1.0), pairs, inputs, step=Fraction(1)),)
