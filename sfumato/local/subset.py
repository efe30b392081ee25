"""Subset selection: the report is a set of s values, more likely with the sender's value in it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.local.bitsets import Bits, count_bits, pack, read_sets
from sfumato.local.draws import Below, many_below
from sfumato.local.frequency import Counts, FrequencyOracle, not_reports
from sfumato.local.odds import Odds
from sfumato.local.randomizer import Classes, Reports, check_total

MOST_VALUES = 4096


@dataclass(frozen=True)
class SubsetSelection(FrequencyOracle):
    """A set of `size` = s values: each one that holds the sender's with weight `truth`, each other with `lie`.

    With D = sA + (k − s)B:  p = sA/D,  q = (s − p)/(k − 1). The best integer s attains the least total error of all
    ε-LDP randomizers with linear unbiased estimates; s = 1 is randomized response. Estimates add up to 1.

    Theorem: subset selection is ε-LDP and asymptotically optimal for s near k/(e^ε + 1) [Ye & Barg 2018, Thm III.1]
    """

    size: int

    scheme = "subset"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 2, MOST_VALUES))
        object.__setattr__(self, "size", checks.whole("size", self.size, 1, self.k - 1))
        check_total(self.total)

    @staticmethod
    def of(k: int, eps: float) -> "SubsetSelection":
        """Subset selection with the best size."""
        k = checks.whole("k", k, 2, MOST_VALUES)
        odds = Odds.of(eps, k)
        return SubsetSelection(k, odds, best_size(k, odds))

    @property
    def total(self) -> int:
        return self.size * self.odds.truth + (self.k - self.size) * self.odds.lie

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self.size * self.odds.truth, self.total)

    @cached_property
    def q(self) -> Fraction:
        return (self.size - self.p) / (self.k - 1)

    @property
    def classes(self) -> Classes:
        k, s = self.k, self.size
        unit = Fraction(self.odds.lie * k, self.total)  # blanket mass γ, spread evenly over all sets
        pairs = k * (k - 1)
        one, both = Fraction(s * (k - s), pairs), Fraction(s * (s - 1), pairs)
        return Classes(one * unit, both * unit, Fraction((k - s) * (k - s - 1), pairs) * unit)

    @property
    def joint(self) -> tuple[Fraction, Fraction]:
        k, s, p = self.k, self.size, self.p
        third = (s - 1) * (p * (s - 2) + (1 - p) * s) / ((k - 1) * (k - 2)) if k > 2 else Fraction(0)
        return p * (s - 1) / (k - 1), third

    @property
    def bits(self) -> float:
        return float((comb(self.k, self.size) - 1).bit_length())

    @property
    def hit(self) -> int:
        return self.size

    @property
    def report_bound(self) -> int:
        return 1 << self.k

    @property
    def description(self) -> dict[str, object]:
        return {**super().description, "size": self.size}

    def is_report(self, report: object) -> bool:
        return super().is_report(report) and isinstance(report, int) and report.bit_count() == self.size

    def read_reports(self, reports: ArrayLike) -> Reports:
        return self.check_sizes(read_sets(self, reports))

    def answer(self, value: int, below: Below) -> int:
        """Is the value in it? Then the others, in turn after the value: each with probability needed/remaining."""
        inside = below(self.total) < self.size * self.odds.truth
        found, needed = int(inside) << value, self.size - inside
        for i in range(1, self.k):
            taken = below(self.k - i) < needed
            needed -= taken
            found |= int(taken) << (value + i) % self.k
        return found

    def answers(self, values: NDArray[np.int64]) -> Reports:
        rows = max(1, (1 << 22) // self.k)
        parts = [pack(self.sets(values[at : at + rows])) for at in range(0, values.size, rows)]
        return np.concatenate(parts) if parts else np.empty((0, (self.k + 7) // 8), np.uint8)

    def sets(self, values: NDArray[np.int64]) -> Bits:
        """Rows of bits. s draws for each person: of the k − 1 others, numbered after the value, s or s − 1 are chosen.

        Theorem: for j = N − m, …, N − 1 a uniform number t ≤ j, or j itself if t is taken, is a uniform set of m of N
            [Floyd & Bentley 1987]
        """
        rows, others = np.arange(values.size), self.k - 1
        inside = many_below(self.total, values.size, self.source) < self.size * self.odds.truth
        chosen = np.zeros((values.size, others), np.bool_)
        for j in range(others - self.size, others):
            t = many_below(j + 1, values.size, self.source).view(np.int64)
            t = np.where(chosen[rows, t], j, t)
            chosen[rows, t] = ~inside if j == others - self.size else True  # one fewer beside the sender's value
        bits = np.zeros((values.size, self.k), np.bool_)
        bits[rows, values] = inside
        place = values[:, None] + np.arange(1, self.k)
        place -= self.k * (place >= self.k)
        np.put_along_axis(bits, place, chosen, axis=1)
        return bits

    def check_sizes(self, reports: Reports) -> Reports:
        """Refuses packed rows with another number of values."""
        if np.any(np.bitwise_count(reports).sum(axis=1, dtype=np.int64) != self.size):
            raise not_reports(self, f"sets of another size than {self.size}")
        return reports

    def support(self, reports: Reports) -> Counts:
        return count_bits(reports, self.k)


def best_size(k: int, odds: Odds) -> int:
    """The integer s with the least total error: one of the two next to k·B/(A + B), as the error is convex in s.

    n·total = (k−1)²D²/(k·s(k−s)(E−1)²) − (k−1)/k, so D²/(s(k−s)) decides.
    """
    near = k * odds.lie // (odds.truth + odds.lie)

    def error(s: int) -> Fraction:
        return Fraction((s * odds.truth + (k - s) * odds.lie) ** 2, s * (k - s))

    return min((s for s in (near, near + 1) if 1 <= s < k), key=error, default=1)


def least_total_variance(k: int, eps: float) -> float:
    """n times the least total variance of any ε-LDP randomizer with linear unbiased estimates: subset selection's.

    Theorem: symmetric extremal schemes with one support size attain the lower bound [Ye & Barg 2018; Pan 2026]
    """
    odds = Odds.of(eps, max(k, 2))
    s = best_size(k, odds)
    p = Fraction(s * odds.truth, s * odds.truth + (k - s) * odds.lie)
    q = (s - p) / (k - 1)
    return float((p * (1 - p) + (k - 1) * q * (1 - q)) / (p - q) ** 2)
