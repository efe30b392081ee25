"""Order statistics and trimmed means with a public number of people; neighbours replace one of them."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.numeric import ULP, Floats, floats
from sfumato.mechanisms.dependent.ordered_values import OfValues, Ordered
from sfumato.mechanisms.dependent.statistic import Exact
from sfumato.noise.draw_table import Integers
from sfumato.sensitivity import Relation, ReplaceOne

MOST_SIZE = 10**12


@dataclass(frozen=True)
class Kept(OfValues):
    """The mean of x_{below+1}, …, x_{size−above}; the number of values is public. Replace-one.

    Keeping one value gives an order statistic such as the median, keeping all gives the mean. With
    N = size − below − above > 0 values kept,
    LS_k = (1/N)·max_{0≤a≤k+1} (x_{size−above+1+k−a} − x_{below+1−a}), hence
    S_t = (1/N)·max (x_l − x_i)·e^{−t(l−i−N)} over i ≤ below + 1, l ≥ size − above, l − i ≥ N.

    Theorem: this is the local sensitivity at distance k [Nissim, Raskhodnikova & Smith 2007 for the median;
        docs/theorems/sensitivity.md, Theorem 3]

    >>> Kept.median(7, 0, 10, 0.5).value([1, 2, 2.5, 3, 4.5, 7, 9])
    3
    """

    size: int = 1
    below: int = 0
    above: int = 0

    def check(self) -> None:
        super().check()
        checks.whole("size", self.size, 1, MOST_SIZE)
        checks.whole("below", self.below, 0, MOST_SIZE)
        checks.whole("above", self.above, 0, MOST_SIZE)
        if self.kept_count < 1:
            raise InvalidParameter(
                "all values are trimmed, so none is left to average.\n"
                f"  found:  {self.below} values cut below and {self.above} above, of {self.size}\n  do:     cut less"
            )

    @staticmethod
    def rank(rank: int, size: int, low: float, high: float, step: float | Fraction = 1) -> "Kept":
        """The value of this rank, from 1 to size."""
        r = checks.whole("rank", rank, 1, checks.whole("size", size, 1, MOST_SIZE))
        return Kept(low, high, step, size, r - 1, size - r)

    @staticmethod
    def median(size: int, low: float, high: float, step: float | Fraction = 1) -> "Kept":
        """The lower median."""
        return Kept.rank((checks.whole("size", size, 1, MOST_SIZE) + 1) // 2, size, low, high, step)

    @staticmethod
    def trimmed(size: int, trim: int, low: float, high: float, step: float | Fraction = 1) -> "Kept":
        """The mean without the `trim` least and largest values."""
        return Kept(low, high, step, size, trim, trim)

    @property
    def kept_count(self) -> int:
        """N, the number of values kept."""
        return self.size - self.below - self.above

    @property
    def relation(self) -> Relation:
        return ReplaceOne

    @property
    def everywhere(self) -> Exact:
        return self.exact(Fraction(self.ends[1] - self.ends[0], self.kept_count))

    @property
    def grain(self) -> Fraction | None:
        return self.lattice.step if self.kept_count == 1 else None

    def order_values(self, data: ArrayLike | Ordered) -> Ordered:
        x = super().order_values(data)
        if x.size != self.size:
            raise InvalidParameter(
                "the number of values is a public parameter of this statistic.\n"
                f"  found:  {x.size} values, while size = {self.size}\n"
                "  do:     give that many, or use Quantile or TrimmedMean, where it is private"
            )
        return x

    def value_in_steps(self, x: Ordered) -> Fraction:
        return Fraction(int(x.up_to(x.size - self.above)) - int(x.up_to(self.below)), self.kept_count)

    def curve_in_steps(self, x: Ordered, most: int) -> list[Fraction]:
        left, right = self._sides(x, most)
        found = [int(np.max(right[k::-1] - left[: k + 1])) for k in range(1, most + 2)]
        return [Fraction(size, self.kept_count) for size in found]

    def _sides(self, x: Ordered, most: int) -> tuple[Integers, Integers]:
        """x_{below+1−a} for a = 0 … most + 1, and x_{size−above+b} for b = 0 … most + 1."""
        a = np.arange(most + 2)
        return x.at(self.below + 1 - a), x.at(x.size - self.above + a)

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        return ((self.below - most, self.below + 1), (size - self.above, size - self.above + most + 1))

    def smooth(self, data: ArrayLike | Ordered, t: SupportsFloat) -> float:
        """S_t(x) in O(K log K) after sorting, K = min(size, ln(range/LS)/t); rounded up by at most 1e-13 of the range.

        The matrix M(a, b) = (x_{l+b} − x_{i−a})e^{−t(a+b−1)} is totally monotone: if a column exceeds one to its left
        in some row, it does so in all rows of larger x_i. So the best column of the middle row splits the problem in
        two, recursively. Where two columns are equal up to rounding, doubles may choose the wrong one; that costs at
        most a few units in the last place of the range for each of the log₂K levels, which is added.

        Theorem: row maxima of a totally monotone matrix are monotone [Aggarwal, Klawe, Moran, Shor & Wilber 1987;
            docs/theorems/sensitivity.md, Theorem 3]
        """
        rate, x = checks.positive("t", t), self.order_values(data)
        span, all_of_it, reach = float(x.high - x.low), max(self.below, self.above), 64
        while True:
            left, right = (floats(side) for side in self._sides(x, min(reach, all_of_it)))
            best = _largest_pair(left, right, rate) + 64 * ULP * span * left.size.bit_length()
            if reach >= all_of_it or best >= span * math.exp(-rate * reach):  # no larger distance can exceed this
                return best / self.kept_count * float(self.lattice.step) * (1 + 64 * ULP)
            reach *= 2


def _largest_pair(left: Floats, right: Floats, rate: float) -> float:
    """max over a + b ≥ 1 of (right_b − left_a)·e^{−rate(a+b−1)}, by divide and conquer over the rows a.

    Rows of larger x_i (smaller a) have their best column b further right.
    """
    best, todo = 0.0, [(0, left.size - 1, 0, right.size - 1)]
    while todo:
        top, bottom, first, last = todo.pop()
        a = (top + bottom) // 2
        b = np.arange(first, last + 1)
        row = np.where(a + b > 0, (right[first : last + 1] - left[a]) * np.exp(-rate * (a + b - 1)), 0.0)
        at = int(np.argmax(row))
        best = max(best, float(row[at]))
        if top < a:
            todo.append((top, a - 1, first + at, last))
        if a < bottom:
            todo.append((a + 1, bottom, first, first + at))
    return best
