"""Formulas of several means, such as correlations and skewness: their values, and intervals by interval arithmetic."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from sfumato.aggregates.intervals import clip
from sfumato.aggregates.linear import NumberEstimate, Reader
from sfumato.aggregates.mean import MeanReader
from sfumato.aggregates.noisy_sums import NoisySums, Number


class Interval(NamedTuple):
    """All numbers from low to high; operations give intervals that hold every result."""

    low: float
    high: float

    def minus(self, other: "Interval") -> "Interval":
        return Interval(self.low - other.high, self.high - other.low)

    def times(self, other: "Interval") -> "Interval":
        ends = [a * b for a in self for b in other]
        return Interval(min(ends), max(ends))

    def over(self, other: "Interval") -> "Interval":
        """Division by an interval of positive numbers; if that may contain 0, the result is all numbers."""
        if other.low <= 0:
            return Interval(-math.inf, math.inf)
        return self.times(Interval(1 / other.high, 1 / other.low))

    @property
    def square(self) -> "Interval":
        ends = sorted((self.low**2, self.high**2))
        return Interval(0.0 if self.low <= 0 <= self.high else ends[0], ends[1])


@dataclass(frozen=True)
class FormulaReader(Reader):
    """Reads a formula of the means of several sums over one count (n, x, y, …).

    Theorem: the interval holds the truth with 95 % at least, whatever the data [union bound; Fieller 1954]
    Proof. Each mean of a sum over n is in its Fieller interval with probability 1 − 0.05/k, so all k are with 95 %.
    Where they are, interval arithmetic holds every value of the formula, and the truth is one of them; clipping to what
    the ranges allow keeps it. ∎
    """

    sums: NoisySums
    formula: Callable[[list[Interval]], Interval]
    limits: tuple[float, float]

    @property
    def coverage(self) -> float:
        return self.sums.confidence

    @cached_property
    def means(self) -> list[MeanReader]:
        """Of each sum over the count, at its share of the confidence."""
        count, *others = self.sums.indexes
        share = 1 - (1 - self.sums.confidence) / len(others)
        return [MeanReader(replace(self.sums, indexes=(j, count), confidence=share)) for j in others]

    def read(self, row: Sequence[Number]) -> NumberEstimate:
        values, boxes = [], []
        for mean in self.means:
            sums, step = mean.sums.values(row), 2.0**mean.measure.exponent
            value = mean.steps(sums) * step
            low, high = (end * step for end in mean.widened_ends(sums, mean.reach))
            values.append(Interval(value, value))
            boxes.append(Interval(min(low, value), max(high, value)))
        found = self.formula(values)
        value = clip(found.low, *self.limits) if math.isfinite(found.low) else 0.0
        box = self.formula(boxes)
        low = -math.inf if math.isnan(box.low) else box.low
        high = math.inf if math.isnan(box.high) else box.high
        return value, min(clip(low, *self.limits), value), max(clip(high, *self.limits), value)
