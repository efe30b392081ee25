"""Optimised unary encoding: one bit for each value, all flipped independently."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.local.bitsets import count_bits, pack, read_sets
from sfumato.local.draws import Below
from sfumato.local.frequency import Counts, FrequencyOracle
from sfumato.local.odds import Odds
from sfumato.local.randomizer import Classes, Reports, check_total
from sfumato.noise import Bernoulli

MOST_VALUES = 1 << 20


@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle):
    """The sender's own bit is set with probability p = ½, each other bit with q = B/(A + B), independently.

    Little error and no correlation between values, but k bits, of which a hostile sender may set all.

    Theorem: optimised unary encoding is ε-LDP: two bits differ, odds p(1−q)/((1−p)q) = A/B
        [Wang, Blocki, Li & Jha 2017, Sec. 4.3]
    """

    scheme = "unary"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 2, MOST_VALUES))
        check_total(self.odds.truth + self.odds.lie)

    @staticmethod
    def of(k: int, eps: float) -> "UnaryEncoding":
        """Unary encoding of k values with at most this ε."""
        return UnaryEncoding(checks.whole("k", k, 2, MOST_VALUES), Odds.of(eps))

    @property
    def p(self) -> Fraction:
        return Fraction(1, 2)

    @cached_property
    def q(self) -> Fraction:
        return Fraction(self.odds.lie, self.odds.truth + self.odds.lie)

    @property
    def classes(self) -> Classes:
        """Reports with at least one bit unset; the one with all bits set is left out of the blanket."""
        q = self.q
        return Classes(q / 2, q * q / (2 * (1 - q)), (1 - q) / 2)

    @property
    def joint(self) -> tuple[Fraction, Fraction]:
        return self.p * self.q, self.q**2

    @property
    def bits(self) -> float:
        return float(self.k)

    @property
    def hit(self) -> int:
        return self.k

    @property
    def report_bound(self) -> int:
        return 1 << self.k

    def read_reports(self, reports: ArrayLike) -> Reports:
        return read_sets(self, reports)

    def answer(self, value: int, below: Below) -> int:
        found = 0
        for v in range(self.k):
            bit = below(2) < 1 if v == value else below(self.odds.truth + self.odds.lie) < self.odds.lie
            found |= int(bit) << v
        return found

    def answers(self, values: NDArray[np.int64]) -> Reports:
        own = Bernoulli(self.p, source=self.source).draw(values.size)
        rows = max(1, (1 << 22) // self.k)
        coin = Bernoulli(self.q, source=self.source)
        packed = np.empty((values.size, (self.k + 7) // 8), np.uint8)
        for at in range(0, values.size, rows):
            part = values[at : at + rows]
            bits = coin.draw(part.size * self.k).reshape(part.size, self.k)
            bits[np.arange(part.size), part] = own[at : at + rows]
            packed[at : at + rows] = pack(bits)
        return packed

    def support(self, reports: Reports) -> Counts:
        return count_bits(reports, self.k)
