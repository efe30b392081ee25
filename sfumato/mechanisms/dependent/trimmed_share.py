"""The mean of what is left when a public share of the values is cut off at either end; their number is private."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.choice.quantile import MOST_PARTS
from sfumato.mechanisms.dependent.ordered import Ordered
from sfumato.mechanisms.dependent.statistic import Exact, OfValues
from sfumato.noise.table import Integers
from sfumato.sensitivity import AddRemove, Relation

FINE = 32  # bits below a step to which sensitivities are rounded up
MOST_VALUES = 10**6


@dataclass(frozen=True)
class TrimmedShare(OfValues):
    """The mean of x_{m+1}, …, x_{n−m} with m = ⌊share·n⌋; the middle of the range where there is nobody. Add/remove.

    One person has at most `values` values. `TrimmedMean` cuts off a public number of them, and knows LS_k exactly;
    here m moves with n, which is private, and A_k is an upper bound from 2K numbers around the ends of what is kept.

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
                f"less than half is cut off at either end, in parts of a million.\n  found:  share = {float(found):g}\n"
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
        """m."""
        return self.share.numerator * size // self.share.denominator

    def middle(self, x: Ordered) -> Fraction:
        n, m = x.size, self.cut(x.size)
        if not n:
            return Fraction((self.ends[0] + self.ends[1]) // 2)
        return Fraction(int(x.up_to(n - m)) - int(x.up_to(m)), n - 2 * m)

    def work(self, most: int) -> int:
        return (most + 1) * self.values

    def steps(self, x: Ordered, most: int) -> list[Fraction]:
        """A_k = the sum of what `values` values one after the other do, from k·values steps on."""
        reach, span = (most + 1) * self.values, (self.ends[1] - self.ends[0]) << FINE
        sides = [self._moves(side, reach) for side in (x, x.mirrored)]
        each = [min(max(pair), span) for pair in zip(*sides, strict=True)]
        sums = (sum(each[k * self.values : (k + 1) * self.values]) for k in range(most + 1))
        return [Fraction(min(size, span), 1 << FINE) for size in sums]

    def _moves(self, x: Ordered, reach: int) -> list[int]:
        """(W − L)/(M − 1) for j = 0 … reach − 1, in parts of a step, rounded up; the range where M < 2."""
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
