"""Hadamard response: a column of the Hadamard matrix, in which the value's row is more likely +1. For ε ≤ 1."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.draws import Below, many_below
from sfumato.local.frequency import MOST_COUNTED, Counts, FrequencyOracle, count_integers
from sfumato.local.odds import Odds
from sfumato.local.randomizer import Classes, Reports, check_total
from sfumato.loss.numeric import Floats

MOST_EPS = 1.0


@dataclass(frozen=True)
class HadamardResponse(FrequencyOracle):
    """One of K columns: each in which row v + 1 has +1 with weight `truth`, the others, half of all, with `lie`.

    K is the power of two above k; row 0, all ones, is not used. S(y) = {v : entry (v + 1, y) is +1}, so p = A/(A + B)
    and q = ½ whatever ε: the error grows over the optimum beyond ε = 1 (1.3, 2.4 and 14 times at 1, 2, 4), so larger
    ones are refused. It is the bit of one-bit protocols: whether a column that anybody chose fits the value.

    Theorem: Hadamard response is ε-LDP [Acharya, Sun & Zhang 2019; Bassily et al. 2017]
    """

    scheme = "hadamard"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 2, MOST_COUNTED))
        check_total(self.total)
        if self.odds.epsilon > MOST_EPS + 1e-9:
            raise InvalidParameter(
                "Hadamard response with one bit wastes ε beyond 1: q stays at ½.\n"
                f"  found:  ε = {self.odds.epsilon:g}\n  do:     use sf.local.ProjectiveResponse, or ε ≤ 1"
            )

    @staticmethod
    def of(k: int, eps: float) -> "HadamardResponse":
        """Hadamard response over k values with at most this ε ≤ 1."""
        k = checks.whole("k", k, 2, MOST_COUNTED)
        return HadamardResponse(k, Odds.of(eps, 4 << k.bit_length()))

    @property
    def rows(self) -> int:
        """K: the least power of two above k."""
        return 1 << self.k.bit_length()

    @property
    def total(self) -> int:
        return self.rows // 2 * (self.odds.truth + self.odds.lie)

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self.odds.truth, self.odds.truth + self.odds.lie)

    @property
    def q(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def classes(self) -> Classes:
        """Two rows differ in half of the columns. Column 0 counts as if some value were against it."""
        each = (1 - self.p) / 2
        return Classes(each, each, each)

    @property
    def bits(self) -> float:
        return float(self.rows.bit_length() - 1)

    @property
    def hit(self) -> int:
        """Column 0 supports all values."""
        return self.k

    @property
    def report_bound(self) -> int:
        return self.rows

    def off_diagonal(self, f: Floats) -> Floats:
        """Rows multiply, H_u∘H_v = H_{u⊕v}: n·Cov(f̂_u, f̂_v) = f_{u⊕v}/(2p − 1), by row numbers; 0 if none has that row.

        Theorem: the covariance of Hadamard response is not diagonal [docs/theorems/local.md, Theorem 3]
        """
        row = np.arange(1, self.k + 1)
        share = np.zeros(self.rows)
        share[1 : self.k + 1] = f
        return np.asarray(share[row[:, None] ^ row[None, :]] / float(2 * self.p - 1))

    def answer(self, value: int, below: Below) -> int:
        """The weights of the K/2 columns of either sign; the lowest bit of the row is the one that sets the sign."""
        index, u = divmod(below(self.total), self.odds.truth + self.odds.lie)
        row, minus = value + 1, int(u >= self.odds.truth)
        low = row & -row
        column = index & (low - 1) | (index & -low) << 1
        return column | low * (((row & column).bit_count() & 1) ^ minus)

    def answers(self, values: NDArray[np.int64]) -> Reports:
        both = self.odds.truth + self.odds.lie
        u = many_below(self.total, values.size, self.source).view(np.int64)
        index = u // both
        u -= index * both
        row = values + 1
        low = row & -row
        column = index & (low - 1) | (index & -low) << 1
        return np.asarray(column | low * ((np.bitwise_count(row & column) & 1) ^ (u >= self.odds.truth)))

    def support(self, reports: Reports) -> Counts:
        """C_v = (n + Σ_y N_y H_{v+1,y})/2: a fast transform of integers."""
        signed = transform(count_integers(reports, self.rows))
        return (len(reports) + signed[1 : self.k + 1]) // 2


def transform(values: Counts) -> Counts:
    """The Walsh–Hadamard transform of integers, of a length that is a power of two."""
    found, half = values.copy(), 1
    while half < found.size:
        blocks = found.reshape(-1, 2, half)
        found = np.stack([blocks[:, 0] + blocks[:, 1], blocks[:, 0] - blocks[:, 1]], axis=1).reshape(-1)
        half *= 2
    return found
