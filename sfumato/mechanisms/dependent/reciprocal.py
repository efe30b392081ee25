"""One over a count: what turns a sum into a mean."""

from collections.abc import Sized
from dataclasses import dataclass
from fractions import Fraction

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.sensitivity import AddRemove, Relation


@dataclass(frozen=True)
class Reciprocal(Statistic[Sized | int]):
    """1/max(n, least) for n people. Add/remove.

    LS(n) = 1/(n(n−1)) for n > least, 1/(least(least+1)) for n = least, 0 below. It falls from n = least on, so that
    LS_k(n) = LS(max(n − k, least)), and for n < least it is 0 until k = least − n.

    Theorem: S_t = max(1/(n(n−1)), e^{−t(n−2)}/2) for least = 1 and n ≥ 2, as ln(1/(m(m−1))) is convex in m
        [docs/theorems/sensitivity.md, Theorem 4; cf. Nissim, Raskhodnikova & Smith 2007]

    >>> Reciprocal().curve(4, 3)
    (Fraction(1, 12), Fraction(1, 6), Fraction(1, 2), Fraction(1, 2))
    """

    least: int = 1

    def __post_init__(self) -> None:
        checks.whole("least", self.least, 1, 10**12)

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def everywhere(self) -> Fraction:
        return Fraction(1, self.least * (self.least + 1))

    @property
    def span(self) -> Fraction:
        return Fraction(1, self.least)

    def value(self, data: Sized | int) -> Fraction:
        return Fraction(1, max(self.count(data), self.least))

    def curve(self, data: Sized | int, most: int) -> tuple[Exact, ...]:
        n = self.count(data)
        return tuple(self._local(n, k) for k in range(most + 1))

    def at_distance(self, data: Sized | int, k: int) -> Exact:
        return self._local(self.count(data), checks.whole("k", k, 0))

    def _local(self, n: int, k: int) -> Fraction:
        m = max(n - k, self.least)
        if n + k < self.least:
            return Fraction(0)
        return Fraction(1, m * (m - 1)) if m > self.least else self.everywhere

    @staticmethod
    def count(data: Sized | int) -> int:
        """How many there are; a count below 0 counts as 0."""
        if isinstance(data, bool) or not isinstance(data, int | Sized):
            raise InvalidParameter(
                "1/n needs data to count, or their number.\n"
                f"  found:  a {type(data).__name__}\n  do:     give a list, or a whole number"
            )
        return max(data, 0) if isinstance(data, int) else len(data)
