"""Quantile, minimum and maximum with a private number of people: local sensitivities from a window of ranks."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.mechanisms.choice.quantile import MOST_PARTS
from sfumato.mechanisms.dependent.ordered_values import OfValues, Ordered
from sfumato.mechanisms.dependent.statistic import Exact
from sfumato.noise.draw_table import Integers
from sfumato.sensitivity import AddRemove, Relation


@dataclass(frozen=True)
class OrderStatistic(OfValues):
    """The value of one rank; the number of people is private. Add/remove."""

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def everywhere(self) -> Exact:
        return self.exact(self.ends[1] - self.ends[0])

    @property
    def grain(self) -> Fraction:
        return self.lattice.step


@dataclass(frozen=True)
class Quantile(OrderStatistic):
    """x_r with r = ⌈pn⌉, the least value v with #{x ≤ v} ≥ pn; `low` for empty data. Add/remove.

    For 0 ≤ i < l ≤ n + 1 let cost(i, l) = max(l − 1 − c, l − 2 + c − 2i) with c = ⌈(n+1−l)·p/(1−p)⌉ if p ≤ ½, and
    max(2l − n − 2 − i + c, n − 1 − i − c) with c = ⌊i·(1−p)/p⌋ if p > ½. This is the number of additions and removals
    after which one more moves the quantile from x_i to x_l. Costs decrease with i and increase with l.

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
                f"p must lie between 0 and 1 and have at most six digits.\n  found:  p = {float(p):g}\n"
                "  do:     give such as 0.25; for the ends use Minimum and Maximum"
            )
        object.__setattr__(self, "p", p)

    def rank(self, size: int) -> int:
        return -(-self.p.numerator * size // self.p.denominator)

    def value_in_steps(self, x: Ordered) -> int:
        return int(x.at([self.rank(x.size)])[0])

    def curve_in_steps(self, x: Ordered, most: int) -> list[int]:
        if self.p == Fraction(1, 2):
            k = np.arange(most + 1)
            apart = x.at((x.size + 2 + k) // 2) - x.at(-((k + 1 - x.size) // 2))
            return [int(size) for size in apart]
        costs = LowCosts(self.p, x.size) if self.p < Fraction(1, 2) else HighCosts(self.p, x.size)
        i = np.arange(*costs.reach(most), dtype=np.int64)
        left, found = x.at(i), []
        for cost in range(most + 1):
            last = np.maximum(costs.farthest(i, cost), i)  # i itself where no l has a cost this low
            found.append(int(np.max(x.at(last) - left)))
        return found

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        if self.p == Fraction(1, 2):
            return ((-((most + 1 - size) // 2), (size + 2 + most) // 2),)
        costs = LowCosts(self.p, size) if self.p < Fraction(1, 2) else HighCosts(self.p, size)
        first, last = costs.reach(most)
        middle = self.rank(size)
        return ((min(first, middle), max(last, middle)),)


@dataclass(frozen=True)
class LowCosts:
    """Costs for p ≤ ½: l − 1 − c(l) and l + c(l) − 2 − 2i, c(l) = ⌈θ(n + 1 − l)⌉, θ = p/(1 − p) ≤ 1."""

    p: Fraction
    size: int

    def c(self, j: int) -> int:
        return -(-self.p.numerator * (self.size + 1 - j) // (self.p.denominator - self.p.numerator))

    def reach(self, most: int) -> tuple[int, int]:
        """The least i and the largest l with a cost of at most `most`."""
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
class HighCosts:
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


@dataclass(frozen=True)
class Minimum(OrderStatistic):
    """x_1; `high` for empty data. Add/remove.

    LS_k = max(x_{k+1} − low, x_{k+2} − x_1). Proof. Let y′ = y + {z} with z < min y = v, so that the change is v − z
    (v = high if y is empty). If y is within distance k of x, v ≤ x_{k+1}. If only y′ is, z is a value of x that y
    lacks, so z ≥ x_1 and v ≤ x_{k+2}. Both are attained: add `low` to x without its k least values, or remove x_1 from
    x without x_2, …, x_{k+1}. As LS_0 ≥ x_1 − low, an extreme quantile is usually the better question.

    Theorem: LS_k = max(x_{k+1} − low, x_{k+2} − x_1) [the proof above; cf. Nissim, Raskhodnikova & Smith 2007]
    """

    def value_in_steps(self, x: Ordered) -> int:
        return int(x.at([1])[0])

    def curve_in_steps(self, x: Ordered, most: int) -> list[int]:
        k = np.arange(most + 1)
        return [int(size) for size in np.maximum(x.at(k + 1) - x.low, x.at(k + 2) - x.at([1]))]

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        return ((1, most + 2),)


@dataclass(frozen=True)
class Maximum(OrderStatistic):
    """x_n; `low` for empty data. Add/remove: `Minimum` of −x.

    Theorem: LS_k = max(high − x_{n−k}, x_n − x_{n−k−1}) [the proof of `Minimum`, mirrored; Nissim et al. 2007]
    """

    def value_in_steps(self, x: Ordered) -> int:
        return int(x.at([x.size])[0])

    def curve_in_steps(self, x: Ordered, most: int) -> list[int]:
        k = np.arange(most + 1)
        top = x.at([x.size])
        return [int(size) for size in np.maximum(x.high - x.at(x.size - k), top - x.at(x.size - k - 1))]

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        return ((size - most - 1, size),)
