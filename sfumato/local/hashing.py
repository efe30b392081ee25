"""Optimal local hashing: each person hashes their value with a fresh hash and randomises the result."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.local.draws import Below, many_below
from sfumato.local.frequency import Counts, FrequencyOracle, not_reports
from sfumato.local.odds import Odds
from sfumato.local.randomizer import Classes, Reports, check_total

MOST_VALUES = 1 << 16
HALF = 16  # bits of a value, and of a hash
CHUNK = 1 << 14


@dataclass(frozen=True)
class LocalHashing(FrequencyOracle):
    """A hash to `buckets` = g numbers, h(v) = ⌊((av + b mod 2³²) ≫ 16)·g/2¹⁶⌋, and randomized response of h(v).

    a and b are fresh 32-bit words of each person and part of the report: y + g·(a + 2³²b). The hash is public, so any
    hash is as private as another; two different values have independent uniform 16-bit hashes, so with m_c the share
    of hashes in bucket c the chances p = A/D, D = A + (g−1)B, and q = Σ m_c(m_c·A + (1−m_c)·B)/D are exact.

    Theorem: local hashing is ε-LDP, and optimal for g near e^ε + 1 [Wang, Blocki, Li & Jha 2017, Sec. 4.4]
    Theorem: multiply-add-shift is pairwise independent for 16-bit keys and hashes in 32-bit words
        [Dietzfelbinger 1996, Thm 3]
    """

    buckets: int

    scheme = "hashing"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 2, MOST_VALUES))
        object.__setattr__(self, "buckets", checks.whole("buckets", self.buckets, 2, 1 << 12))
        check_total(self.total)

    @staticmethod
    def of(k: int, eps: float) -> "LocalHashing":
        """Local hashing with the best number of buckets: one of the two next to e^ε + 1."""
        k = checks.whole("k", k, 2, MOST_VALUES)
        odds = Odds.of(eps, 1 << 12)
        near = min(odds.truth // odds.lie + 1, (1 << 12) - 1)
        found = (LocalHashing(k, odds, g) for g in (max(2, near), near + 1))
        return min(found, key=lambda one: one.total_variance if odds.truth > odds.lie else one.buckets)

    @property
    def total(self) -> int:
        return self.odds.truth + (self.buckets - 1) * self.odds.lie

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first 16-bit hash of each bucket, and 2¹⁶."""
        return -(-np.arange(self.buckets + 1, dtype=np.int64) * (1 << HALF) // self.buckets)

    @cached_property
    def collision(self) -> Fraction:
        """P[two values fall into one bucket]: Σ m_c²."""
        sizes = np.diff(self.starts)
        return Fraction(int(sizes @ sizes), 1 << 2 * HALF)

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self.odds.truth, self.total)

    @cached_property
    def q(self) -> Fraction:
        A, B = self.odds.truth, self.odds.lie
        return (self.collision * A + (1 - self.collision) * B) / self.total

    @property
    def classes(self) -> Classes:
        unit, c = Fraction(self.odds.lie, self.total), self.collision
        return Classes((1 - c) * unit, c * unit, (self.buckets - 2 + c) * unit)

    @property
    def joint(self) -> tuple[Fraction, Fraction]:
        """As if the hashes of three values were independent; pairs are exactly."""
        return self.p * self.q, self.q**2

    @property
    def bits(self) -> float:
        return float(4 * HALF + (self.buckets - 1).bit_length())

    @property
    def hit(self) -> int:
        """A sender may search for a seed whose hash puts many values into one bucket."""
        return self.k

    @property
    def report_bound(self) -> int:
        return self.buckets << 4 * HALF

    @property
    def description(self) -> dict[str, object]:
        return {**super().description, "buckets": self.buckets}

    def answer(self, value: int, below: Below) -> int:
        a, b, u = below(1 << 32), below(1 << 32), below(self.total)
        own = (((a * value + b) & 0xFFFFFFFF) >> HALF) * self.buckets >> HALF
        steps = 0 if u < self.odds.truth else 1 + (u - self.odds.truth) // self.odds.lie
        return (own + steps) % self.buckets + self.buckets * (a + (b << 32))

    def answers(self, values: NDArray[np.int64]) -> Reports:
        """Rows (a, b, bucket) of 32-bit words."""
        rows = np.empty((values.size, 3), np.uint32)
        rows[:, :2] = self.source.words(2 * values.size, 32).reshape(-1, 2)
        a, b = rows[:, 0], rows[:, 1]
        hashed = (a * values.astype(np.uint32) + b) >> np.uint32(HALF)
        own = (hashed * np.uint32(self.buckets)) >> np.uint32(HALF)  # below 2²⁸: buckets are at most 2¹²
        u = many_below(self.total, values.size, self.source).view(np.int64)
        steps = np.maximum((u - self.odds.truth + self.odds.lie) // self.odds.lie, 0)
        rows[:, 2] = (own + steps) % self.buckets
        return rows

    def read_reports(self, reports: ArrayLike) -> Reports:
        found = np.asarray(reports)
        if found.dtype == np.uint32 and found.ndim == 2 and found.shape[1] == 3:
            if found.size and found[:, 2].max() >= self.buckets:
                raise not_reports(self, "a bucket outside")
            return found
        numbers = list(reports) if isinstance(reports, list | tuple) else found.tolist()
        if not isinstance(numbers, list) or not all(self.is_report(x) for x in numbers):
            raise not_reports(self, "something else")
        seeds = [(x // self.buckets, x % self.buckets) for x in numbers]
        rows = [(s & 0xFFFFFFFF, s >> 32, y) for s, y in seeds]
        return np.array(rows, np.uint32).reshape(-1, 3)

    def support(self, reports: Reports) -> Counts:
        """av + b lies in the reported bucket: one addition and one comparison for each value and report.

        Shifted by the bucket's start, the low 16 bits never decide, as starts are multiples of 2¹⁶.
        """
        starts = (self.starts << HALF).astype(np.uint64)
        width = np.diff(starts).astype(np.uint32)
        total = np.zeros(self.k, np.int64)
        for at in range(0, len(reports), CHUNK):
            a, b, y = (np.ascontiguousarray(column) for column in reports[at : at + CHUNK].T)
            here = b - starts[y].astype(np.uint32)
            reach, inside = width[y], np.empty(a.size, np.bool_)
            for v in range(self.k):
                np.less(here, reach, out=inside)
                total[v] += np.count_nonzero(inside)
                np.add(here, a, out=here)
        return total
