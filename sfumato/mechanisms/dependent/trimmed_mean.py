"""The trimmed mean of people whose number is private."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.mechanisms.dependent.ordered import Ordered
from sfumato.mechanisms.dependent.statistic import Exact, OfValues
from sfumato.sensitivity import AddRemove, Relation

NEAR = 1e-12  # candidates this close in doubles are compared as fractions


@dataclass(frozen=True)
class TrimmedMean(OfValues):
    """The mean of x_{m+1}, …, x_{n−m}: without the m least and m largest values; `centre` if n ≤ 2m. Add/remove.

    m = `trim` is public, such as a twentieth of a noisy count that was paid for. trim = 0 is the mean. The default
    centre is the middle of the range, rounded down to a step.

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
    def home(self) -> Fraction:
        """The centre in steps."""
        return Fraction(self.centre or 0.0) / self.lattice.step

    @property
    def everywhere(self) -> Exact:
        """One person more than 2m takes the centre to any value; with more people, at most half the range."""
        return self.exact(max(self.ends[1] - self.home, self.home - self.ends[0]))

    def middle(self, x: Ordered) -> Fraction:
        n, m = x.size, self.trim
        return Fraction(int(x.up_to(n - m)) - int(x.up_to(m)), n - 2 * m) if n > 2 * m else self.home

    def steps(self, x: Ordered, most: int) -> list[Fraction]:
        found = [Fraction(0)] * (most + 1)
        for side in (x, x.mirrored):
            for k, size in enumerate(_jumps(side, self.trim, most)):
                found[k] = max(found[k], size)
        for k, size in _alone(x, self.trim, self.home, most):
            found[k] = max(found[k], size)
        return found

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        left = (self.trim - most - 2, self.trim + most + 3)
        return (left, (size + 1 - left[1], size + 1 - left[0]))


def _jumps(x: Ordered, m: int, most: int) -> list[Fraction]:
    """The largest jump upwards at each cost: chosen among doubles, compared as fractions where these are near."""
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
            many: NDArray[Any] = kept.astype(total.dtype)  # products may be beyond 64 bits
            above = (many * int(x.at([x.size - m + 1 + e - r])[0]) - total)[good]
            count, cost = kept[good], (a + b + e - r)[good]
            size = (above / (count * (count + 1.0))).astype(np.float64)
            best = np.zeros(most + 1)
            np.maximum.at(best, cost, size)
            near = (size >= best[cost] * (1 - NEAR)) & (size > 0)
            for k, s, over, n in zip(*(row[near].tolist() for row in (cost, size, above, count)), strict=True):
                top[k].append((s, over, n))
    return [_largest(row) for row in top]


def _largest(candidates: list[tuple[float, int, int]]) -> Fraction:
    """The largest over/(n(n + 1)), of those that doubles leave in question."""
    best = max((size for size, _, _ in candidates), default=0.0)
    near = {(over, n) for size, over, n in candidates if size >= best * (1 - NEAR)}
    return max((Fraction(over, n * (n + 1)) for over, n in near), default=Fraction(0))


def _alone(x: Ordered, m: int, home: Fraction, most: int) -> list[tuple[int, Fraction]]:
    """(cost, |x_l − centre|): so many people until x_l is the one value that is kept, or the next one that is."""
    found: list[tuple[int, Fraction]] = []
    n = x.size
    if abs(n - 1 - 2 * m) > most + 1:
        return found
    for place in range(max(0, m - most - 1), min(n + 1, m + most + 3) + 1):
        outside = place in (0, n + 1)
        below, above = (min(place, n), n - min(place, n)) if outside else (place - 1, n - place)
        cost = abs(below - m) + abs(above - m) + outside - (outside or below < m or above < m)
        if cost <= most:
            found.append((cost, abs(int(x.at([place])[0]) - home)))
    return found
