"""Trimmed means with a private number of people: a public number of values, or a public share of them, is cut off."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.choice.quantile import MOST_PARTS
from sfumato.mechanisms.dependent.ordered_values import OfValues, Ordered
from sfumato.mechanisms.dependent.statistic import Exact
from sfumato.noise.draw_table import Integers
from sfumato.sensitivity import AddRemove, Relation

NEAR = 1e-12  # candidates this close in doubles are compared as fractions


@dataclass(frozen=True)
class TrimmedMean(OfValues):
    """The mean of x_{m+1}, …, x_{n−m}: without the m least and m largest values; `centre` if n ≤ 2m. Add/remove.

    m = `trim` is public, for example a twentieth of a noisy count that was released before. trim = 0 gives the mean.
    The default centre is the middle of the range, rounded down to a step.

    Theorem: LS_k is the largest of Σ_{q=i}^{j}(w − x_q)/(N(N+1)) over a, e, b ≥ 0 and r ≤ min(b, 1) with
        a + e + b − r ≤ k, where i = m+1−a, j = n−m+e−b, N = j−i+1 ≥ 1, w = x_{n−m+1+e−r}; of the same for −x; and of
        |x_l − centre| where x_l can be the only value kept [docs/theorems/sensitivity.md, Theorem 2]

    >>> TrimmedMean(0, 20, trim=1).value([2, 4, 5, 6, 9, 14, 18])
    Fraction(38, 5)
    """

    trim: int = 1
    centre: float | None = None

    def check(self) -> None:
        super().check()
        object.__setattr__(self, "trim", checks.whole("trim", self.trim, 0, 10**12))
        low, high = self.ends
        if self.centre is None:
            object.__setattr__(self, "centre", float((low + high) // 2 * self.lattice.step))
        allowed = "a number from low to high"
        checks.number("centre", self.centre or 0.0, float(self.low), float(self.high), allowed=allowed)

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def centre_in_steps(self) -> Fraction:
        """The centre in steps."""
        return Fraction(self.centre or 0.0) / self.lattice.step

    @property
    def everywhere(self) -> Exact:
        """From n = 2m to 2m + 1 the answer moves from the centre to any value; beyond, by at most half the range."""
        return self.exact(max(self.ends[1] - self.centre_in_steps, self.centre_in_steps - self.ends[0]))

    def value_in_steps(self, x: Ordered) -> Fraction:
        n, m = x.size, self.trim
        return Fraction(int(x.up_to(n - m)) - int(x.up_to(m)), n - 2 * m) if n > 2 * m else self.centre_in_steps

    def curve_in_steps(self, x: Ordered, most: int) -> list[Fraction]:
        found = [Fraction(0)] * (most + 1)
        for side in (x, x.mirror):
            for k, size in enumerate(_largest_jumps(side, self.trim, most)):
                found[k] = max(found[k], size)
        for k, size in _single_value_jumps(x, self.trim, self.centre_in_steps, most):
            found[k] = max(found[k], size)
        return found

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        left = (self.trim - most - 2, self.trim + most + 3)
        return (left, (size + 1 - left[1], size + 1 - left[0]))


def _largest_jumps(x: Ordered, m: int, most: int) -> list[Fraction]:
    """The largest upward change at each cost; candidates are selected in doubles, and compared exactly if close."""
    top: list[list[tuple[float, int, int]]] = [[] for _ in range(most + 1)]
    for e in range(min(m, most + 1) + 1):
        for r in (0, 1):
            rest = most + r - e  # for a + b
            if rest < r:
                continue
            a, b = np.arange(rest - r + 1)[:, None], np.arange(r, rest + 1)[None, :]
            kept = x.size - 2 * m + a + e - b
            good = (a + b <= rest) & (kept >= 1)
            if not good.any():
                continue
            right, left = np.where(good, x.size - m + e - b, x.size - m), np.where(good, m - a, m)
            total: NDArray[Any] = x.up_to(right) - x.up_to(left)
            many: NDArray[Any] = kept.astype(total.dtype)  # products may exceed 64 bits
            above = (many * int(x.at([x.size - m + 1 + e - r])[0]) - total)[good]
            count, cost = kept[good], (a + b + e - r)[good]
            size = (above / (count * (count + 1.0))).astype(np.float64)
            best = np.zeros(most + 1)
            np.maximum.at(best, cost, size)
            near = (size >= best[cost] * (1 - NEAR)) & (size > 0)
            for k, s, over, n in zip(*(row[near].tolist() for row in (cost, size, above, count)), strict=True):
                top[k].append((s, over, n))
    return [_largest_exactly(row) for row in top]


def _largest_exactly(candidates: list[tuple[float, int, int]]) -> Fraction:
    """The largest over/(n(n + 1)), compared exactly among the candidates that doubles cannot separate."""
    best = max((size for size, _, _ in candidates), default=0.0)
    near = {(over, n) for size, over, n in candidates if size >= best * (1 - NEAR)}
    return max((Fraction(over, n * (n + 1)) for over, n in near), default=Fraction(0))


def _single_value_jumps(x: Ordered, m: int, centre_in_steps: Fraction, most: int) -> list[tuple[int, Fraction]]:
    """(cost, |x_l − centre|): the distance to data where x_l is the only value kept, or becomes it with one change."""
    found: list[tuple[int, Fraction]] = []
    n = x.size
    if abs(n - 1 - 2 * m) > most + 1:
        return found
    for place in range(max(0, m - most - 1), min(n + 1, m + most + 3) + 1):
        outside = place in (0, n + 1)
        below, above = (min(place, n), n - min(place, n)) if outside else (place - 1, n - place)
        cost = abs(below - m) + abs(above - m) + outside - (outside or below < m or above < m)
        if cost <= most:
            found.append((cost, abs(int(x.at([place])[0]) - centre_in_steps)))
    return found


FINE = 32  # bits below a step to which sensitivities are rounded up
MOST_VALUES = 10**6


@dataclass(frozen=True)
class TrimmedShare(OfValues):
    """The mean of x_{m+1}, …, x_{n−m} with m = ⌊share·n⌋; the middle of the range for empty data. Add/remove.

    A person has at most `values` values. `TrimmedMean` cuts off a public number of values and has an exact LS_k; here m
    depends on n, which is private, and A_k is an upper bound computed from 2K values around both cuts.

    Theorem: with N = n − 2m ≥ 2 one value moves the mean T by at most max(x_{n−m+1} − T, T − x_m)/(N − 1), and within j
        steps of x that is at most (W − L)/(M − 1): W = x at n+j−⌊share(n+j)⌋+1, L the mean of x from ⌊share(n+j)⌋−j+1
        to n−j−⌊share(n−j)⌋, M the least N; and the same for −x [docs/theorems/sensitivity.md, Theorem 5]

    >>> TrimmedShare(0, 20, share=Fraction(1, 4)).value([2, 4, 5, 6, 9, 14, 18])
    Fraction(38, 5)
    """

    share: Fraction = Fraction(1, 10)
    values: int = 1

    def check(self) -> None:
        super().check()
        found = Fraction(self.share) if isinstance(self.share, int | Fraction) else Fraction(str(self.share))
        if not 0 <= found < Fraction(1, 2) or found.denominator > MOST_PARTS:
            raise InvalidParameter(
                f"share must be below one half and have at most six digits.\n  found:  share = {float(found):g}\n"
                "  do:     give such as 0.1"
            )
        object.__setattr__(self, "share", found)
        checks.whole("values", self.values, 1, MOST_VALUES)

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def everywhere(self) -> Exact:
        return self.exact(self.ends[1] - self.ends[0])

    def cut(self, size: int) -> int:
        """m = ⌊share·size⌋."""
        return self.share.numerator * size // self.share.denominator

    def value_in_steps(self, x: Ordered) -> Fraction:
        n, m = x.size, self.cut(x.size)
        if not n:
            return Fraction((self.ends[0] + self.ends[1]) // 2)
        return Fraction(int(x.up_to(n - m)) - int(x.up_to(m)), n - 2 * m)

    def work(self, most: int) -> int:
        return (most + 1) * self.values

    def curve_in_steps(self, x: Ordered, most: int) -> list[Fraction]:
        """A_k = the sum of the changes by `values` values, one after the other, from distance k·values on."""
        reach, span = (most + 1) * self.values, (self.ends[1] - self.ends[0]) << FINE
        sides = [self._moves(side, reach) for side in (x, x.mirror)]
        each = [min(max(pair), span) for pair in zip(*sides, strict=True)]
        sums = (sum(each[k * self.values : (k + 1) * self.values]) for k in range(most + 1))
        return [Fraction(min(size, span), 1 << FINE) for size in sums]

    def _moves(self, x: Ordered, reach: int) -> list[int]:
        """(W − L)/(M − 1) for j = 0 … reach − 1, in units of 2^−FINE steps, rounded up; the range where M < 2."""
        n, j = x.size, np.arange(reach)
        more, less = self._cuts(n + j), self._cuts(np.maximum(n - j, 0))
        first, last = more - j + 1, np.maximum(n - j, 0) - less
        kept = last - first + 1
        top, total = x.at(n + j - more + 1), x.up_to(last) - x.up_to(first - 1)
        least = np.minimum.accumulate(np.minimum(last - less, n + j - 2 * more))
        whole = (x.high - x.low) << FINE
        rows = zip(top.tolist(), total.tolist(), kept.tolist(), least.tolist(), strict=True)
        return [-((s - w * c << FINE) // (c * (m - 1))) if m > 1 else whole for w, s, c, m in rows]

    def _cuts(self, sizes: Integers) -> Integers:
        found: Integers = self.share.numerator * sizes // self.share.denominator
        return found

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        reach = (most + 1) * self.values + 1
        left = (self.cut(size) - reach, self.cut(size) + reach + 1)
        return (left, (size + 1 - left[1], size + 1 - left[0]))
