"""The piecewise randomizer for one number, on a lattice: likely cells near the number, unlikely ones elsewhere."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.local.draws import Below, many_below
from sfumato.local.frequency import require_information
from sfumato.local.mean import STEPS, MeanRandomizer
from sfumato.local.odds import Odds
from sfumato.local.randomizer import Classes, Reports, check_total
from sfumato.loss.numeric import Floats, floats

CELLS = 1 << 16


@dataclass(frozen=True)
class PiecewiseMean(MeanRandomizer):
    """One of `cells` cells: each of the `window` cells around x with weight `truth`, the others with `lie`.

    x is first rounded, at random and without bias, to one of R + 1 = cells − window + 1 places; the window of place i
    begins at cell i. With D = A·w + B(T − w), E[cell | i] = [B·T(T−1)/2 + (A−B)(w·i + w(w−1)/2)]/D is affine in i, so
    a linear map of the cell is unbiased. Floats would leak through their gaps; cells are whole numbers.

    Theorem: the piecewise mechanism is ε-LDP; its best window is 1/(e^{ε/2} + 1) of all [Wang et al. 2019, Sec. III.B]
    """

    odds: Odds
    window: int
    cells: int = CELLS

    scheme = "piecewise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", checks.whole("cells", self.cells, 4, CELLS))
        object.__setattr__(self, "window", checks.whole("window", self.window, 1, self.cells // 2))
        require_information(self.odds)
        check_total(self.total)

    @staticmethod
    def of(eps: float) -> "PiecewiseMean":
        """The piecewise randomizer with at most this ε."""
        odds = Odds.of(eps, CELLS)
        root = math.sqrt(odds.truth / odds.lie)
        return PiecewiseMean(odds, max(1, round(CELLS / (root + 1))))

    @property
    def total(self) -> int:
        return self.odds.truth * self.window + self.odds.lie * (self.cells - self.window)

    @property
    def places(self) -> int:
        """R: the last place."""
        return self.cells - self.window

    @property
    def classes(self) -> Classes:
        """Windows at the two ends do not meet."""
        unit = Fraction(self.odds.lie, self.total)
        return Classes(self.window * unit, Fraction(0), (self.cells - 2 * self.window) * unit)

    @property
    def bits(self) -> float:
        return float((self.cells - 1).bit_length())

    @property
    def report_bound(self) -> int:
        return self.cells

    @property
    def description(self) -> dict[str, object]:
        odds = {"truth": self.odds.truth, "lie": self.odds.lie}
        return {"scheme": self.scheme, **odds, "window": self.window, "cells": self.cells}

    def place(self, number: int, u: int) -> int:
        """x = a/STEPS lies at (a + STEPS)·R/(2·STEPS) places: the fraction decides, against a uniform u < 2·STEPS."""
        whole, part = divmod((number + STEPS) * self.places, 2 * STEPS)
        return whole + (u < part)

    def answer(self, value: int, below: Below) -> int:
        start = self.place(value, below(2 * STEPS))
        u, inside = below(self.total), self.odds.truth * self.window
        if u < inside:
            return start + u // self.odds.truth
        other = (u - inside) // self.odds.lie
        return other + self.window * (other >= start)

    def answers(self, numbers: NDArray[np.int64]) -> Reports:
        whole, part = np.divmod((numbers + STEPS) * self.places, 2 * STEPS)
        start = whole + (many_below(2 * STEPS, numbers.size, self.source).view(np.int64) < part)
        u = many_below(self.total, numbers.size, self.source).view(np.int64)
        inside = self.odds.truth * self.window
        other = (u - inside) // self.odds.lie
        return np.where(u < inside, start + u // self.odds.truth, other + self.window * (other >= start))

    @cached_property
    def line(self) -> tuple[float, float]:
        """decode(cell) = slope·cell + offset."""
        A, B, w, T = self.odds.truth, self.odds.lie, self.window, self.cells
        slope = Fraction(2 * self.total, self.places * (A - B) * w)
        mean = Fraction(B * T * (T - 1) + (A - B) * w * (w - 1), 2 * self.total)  # E[cell | place 0]
        return float(slope), float(-slope * mean - 1)

    def decode(self, reports: Reports) -> Floats:
        slope, offset = self.line
        return floats(slope * np.asarray(reports) + offset)

    @property
    def reach(self) -> float:
        slope, offset = self.line
        return slope * (self.cells - 1) + offset

    def variance(self, x: ArrayLike) -> Floats:
        """Second moment of a decoded cell about the centre, which decodes to 0, less x²."""
        place = (np.asarray(x, np.float64) + 1) / 2 * self.places
        T, w, (A, B) = self.cells, self.window, (self.odds.truth, self.odds.lie)
        middle = place + (w - 1) / 2 - (T - 1) / 2  # of the window
        part = place - np.floor(place)
        spread = w * (w * w - 1) / 12 + w * (middle**2 + part * (1 - part))
        second = (B * T * (T * T - 1) / 12 + (A - B) * spread) / self.total
        return floats(self.line[0] ** 2 * second - np.square(np.asarray(x, np.float64)))

    @property
    def worst_variance(self) -> float:
        return float(max(self.variance(1.0), self.variance(0.0))) * (1 + 1e-6)
