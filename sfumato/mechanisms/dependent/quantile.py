"""Quantiles of people whose number is private: local sensitivity from a window of ranks."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.mechanisms.choice.quantile import MOST_PARTS
from sfumato.mechanisms.dependent.ordered import Ordered
from sfumato.mechanisms.dependent.statistic import OneOfThem
from sfumato.noise.table import Integers


@dataclass(frozen=True)
class Quantile(OneOfThem):
    """x_r with r = ⌈pn⌉, the least value v with #{x ≤ v} ≥ pn; `low` where there is nobody. Add/remove.

    For 0 ≤ i < l ≤ n + 1 let cost(i, l) = max(l − 1 − c, l − 2 + c − 2i) with c = ⌈(n+1−l)·p/(1−p)⌉ if p ≤ ½, and
    max(2l − n − 2 − i + c, n − 1 − i − c) with c = ⌊i·(1−p)/p⌋ if p > ½: so many people must come or go until one more
    takes the quantile from x_i to x_l. Costs fall with i and rise with l.

    Theorem: LS_k = max{x_l − x_i : cost(i, l) ≤ k}; for the median x_⌊(n+2+k)/2⌋ − x_⌈(n−1−k)/2⌉
        [docs/theorems/sensitivity.md, Theorem 1]

    >>> Quantile(0, 20, p=Fraction(1, 2)).curve([2, 4, 5, 6, 9, 14, 18], 3)
    (1, 4, 5, 10)
    """

    p: Fraction = Fraction(1, 2)

    def check(self) -> None:
        super().check()
        try:
            p = Fraction(self.p) if isinstance(self.p, int | Fraction) else Fraction(str(self.p))
        except (ValueError, TypeError) as problem:
            raise InvalidParameter(
                f"p must be a fraction.\n  found:  a {type(self.p).__name__}\n  do:     give such as 0.25"
            ) from problem
        if not 0 < p < 1 or p.denominator > MOST_PARTS:
            raise InvalidParameter(
                f"p lies between 0 and 1, with six digits.\n  found:  p = {float(p):g}\n"
                "  do:     give such as 0.25; for the ends use Minimum and Maximum"
            )
        object.__setattr__(self, "p", p)

    def rank(self, size: int) -> int:
        return -(-self.p.numerator * size // self.p.denominator)

    def middle(self, x: Ordered) -> int:
        return int(x.at([self.rank(x.size)])[0])

    def steps(self, x: Ordered, most: int) -> list[int]:
        if self.p == Fraction(1, 2):
            k = np.arange(most + 1)
            apart = x.at((x.size + 2 + k) // 2) - x.at(-((k + 1 - x.size) // 2))
            return [int(size) for size in apart]
        costs = Low(self.p, x.size) if self.p < Fraction(1, 2) else High(self.p, x.size)
        i = np.arange(*costs.reach(most), dtype=np.int64)
        left, found = x.at(i), []
        for cost in range(most + 1):
            last = np.maximum(costs.farthest(i, cost), i)  # i itself where no l is near enough
            found.append(int(np.max(x.at(last) - left)))
        return found

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        if self.p == Fraction(1, 2):
            return ((-((most + 1 - size) // 2), (size + 2 + most) // 2),)
        costs = Low(self.p, size) if self.p < Fraction(1, 2) else High(self.p, size)
        first, last = costs.reach(most)
        middle = self.rank(size)
        return ((min(first, middle), max(last, middle)),)


@dataclass(frozen=True)
class Low:
    """Costs for p ≤ ½: l − 1 − c(l) and l + c(l) − 2 − 2i, c(l) = ⌈θ(n + 1 − l)⌉, θ = p/(1 − p) ≤ 1."""

    p: Fraction
    size: int

    def c(self, j: int) -> int:
        return -(-self.p.numerator * (self.size + 1 - j) // (self.p.denominator - self.p.numerator))

    def reach(self, most: int) -> tuple[int, int]:
        """The least i and the largest l that a cost of `most` allows."""
        n = self.size
        last = bisect_right(range(n + 2), most, lo=1, key=lambda j: j - 1 - self.c(j)) - 1
        first = bisect_left(range(n + 1), -most, key=lambda i: i + 1 - self.c(i + 1))
        return first, last

    def farthest(self, i: Integers, k: int) -> Integers:
        """The largest l with cost(i, l) ≤ k, or at most i if there is none."""
        last = bisect_right(range(self.size + 2), k, lo=1, key=lambda j: j - 1 - self.c(j)) - 1
        j = np.arange(int(i[0]), last + 1)
        grows = j + -(-self.p.numerator * (self.size + 1 - j) // (self.p.denominator - self.p.numerator))
        found: Integers = int(i[0]) + np.searchsorted(grows, k + 2 + 2 * i, "right") - 1
        return found


@dataclass(frozen=True)
class High:
    """Costs for p > ½: 2l − n − 2 − i + c(i) and n − 1 − i − c(i), c(i) = ⌊i(1−p)/p⌋."""

    p: Fraction
    size: int

    def c(self, i: int) -> int:
        return (self.p.denominator - self.p.numerator) * i // self.p.numerator

    def reach(self, most: int) -> tuple[int, int]:
        n = self.size
        first = bisect_left(range(n + 1), n - 1 - most, key=lambda i: i + self.c(i))
        last = bisect_right(range(n + 1), most + n, key=lambda i: i + self.c(i)) - 1  # the last i with l = i + 1
        return first, min(n + 1, (most + n + 2 + last - self.c(last)) // 2)

    def farthest(self, i: Integers, k: int) -> Integers:
        c = (self.p.denominator - self.p.numerator) * i // self.p.numerator
        found: Integers = np.minimum((k + self.size + 2 + i - c) // 2, self.size + 1)
        return np.where(self.size - 1 - i - c <= k, found, 0)
