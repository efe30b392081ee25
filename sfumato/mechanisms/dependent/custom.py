"""Statistics of your own: from functions, whose bounds `refute` tries to break, or from numbers computed elsewhere."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, SupportsFloat

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.sensitivity import AddRemove, Relation

ROUNDING = 1e-9  # relative rounding error that is assumed of a user's doubles
MOST_EXPONENT = 600.0


@dataclass(frozen=True)
class Given(Statistic[Any]):
    """f = `function`, and `bounds(data, most)` = A_0, …, A_most with A_0 ≥ LS and A_k(x) ≤ A_{k+1}(x′).

    The caller guarantees both conditions for all data and neighbours, and that neither function fails or takes a time
    that depends on the data. `refute` searches for a counterexample.

    >>> count = Given(len, lambda data, most: [1] * (most + 1), 1)
    >>> count.local([3, 4])
    1
    """

    function: Callable[[Any], Exact | float] = field(repr=False)
    bounds: Callable[[Any, int], Iterable[Exact | float]] = field(repr=False)
    largest: Exact | float
    about: Relation = AddRemove

    def __post_init__(self) -> None:
        for name in ("function", "bounds"):
            if not callable(getattr(self, name)):
                raise InvalidParameter(
                    f"{name} must be a function of the data.\n  found:  a {type(getattr(self, name)).__name__}\n"
                    "  do:     give Given(function, bounds, largest)"
                )
        checks.positive("largest", self.largest)
        if not isinstance(self.about, Relation) or self.about.one_way:
            raise InvalidParameter(
                f"about must be a neighbour relation.\n  found:  a {type(self.about).__name__}\n"
                "  do:     give sf.AddRemove or sf.ReplaceOne"
            )

    @staticmethod
    def smoothly(
        function: Callable[[Any], Exact | float],
        bound: Callable[[Any], float],
        t: SupportsFloat,
        largest: Exact | float,
        about: Relation = AddRemove,
    ) -> "Given":
        """From one smooth upper bound: B(x) ≥ LS(x) and B(x) ≤ e^t·B(x′). It holds for this t and larger ones.

        A_k = B·e^{t′k} has both properties, and B = max_k e^{−t′k}·A_k. t′ = t + 1e-9 allows for rounding errors of B.
        """
        rate = checks.positive("t", t) + ROUNDING

        def bounds(data: Any, most: int) -> list[float]:
            start = max(float(bound(data)), 0.0)
            return [start * math.exp(min(rate * k, MOST_EXPONENT)) * (1 + ROUNDING / 4) for k in range(most + 1)]

        return Given(function, bounds, largest, about)

    @property
    def relation(self) -> Relation:
        return self.about

    @property
    def everywhere(self) -> Exact:
        return Fraction(self.largest)

    def value(self, data: Any) -> Exact:
        found = self.function(data)
        return found if isinstance(found, int | Fraction) else exact_fraction(found)

    def curve(self, data: Any, most: int) -> tuple[Exact, ...]:
        """The given bounds, capped at `largest`; missing, negative and non-finite numbers count as `largest`."""
        top = self.everywhere
        rows = accumulate((self._size(size) for size in self.bounds(data, most)), max)
        found = tuple(min(size, top) for size, _ in zip(rows, range(most + 1), strict=False))
        return found + (top,) * (most + 1 - len(found))

    def _size(self, size: Exact | float) -> Exact:
        number = math.isfinite(size) and size >= 0
        return (size if isinstance(size, int) else Fraction(size)) if number else self.everywhere


def exact_fraction(x: float) -> Fraction:
    """The exact value of a double; NaN and infinities become 0."""
    return Fraction(x) if math.isfinite(x) else Fraction(0)


@dataclass(frozen=True)
class Refuted:
    """A pair of neighbours that violates a statistic's own bounds, and the reason."""

    reason: str
    first: Any = field(repr=False)
    second: Any = field(repr=False)


def refute(
    statistic: Statistic[Any], pairs: Iterable[tuple[Any, Any]], *, most: int = 8, believed: float = 0.0
) -> Refuted | None:
    """The first of these pairs of neighbours that violates the conditions of `Statistic`; None proves nothing.

    For tests on synthetic data: the result contains data. Conditions, both ways for every pair: |f(x) − f(x′)| ≤
    A_0(x), A_k(x) ≤ A_{k+1}(x′), A_k ≤ A_{k+1}, A_k ≤ the global sensitivity. `believed` is a relative rounding error.
    """
    slack = 1 + Fraction(believed)
    for pair in pairs:
        moved = abs(Fraction(statistic.value(pair[0])) - Fraction(statistic.value(pair[1])))
        here, there = (statistic.curve(data, most) for data in pair)
        for a, b, (x, y) in ((here, there, pair), (there, here, pair[::-1])):
            if moved > a[0] * slack:
                return Refuted("the answer moves by more than the local sensitivity says", x, y)
            if any(p > q * slack for p, q in zip(a, b[1:], strict=False)):
                return Refuted("a neighbour's bound at distance k + 1 is below this one at distance k", x, y)
            if any(p > q for p, q in pairwise(a)):
                return Refuted("the bound is smaller at a larger distance", x, x)
            if a[-1] > statistic.everywhere * slack:
                return Refuted("the bound exceeds the global sensitivity", x, x)
    return None


MOST_VALUE = 1 << 60


@dataclass(frozen=True)
class Counted(Statistic[tuple[int, int]]):
    """An integer f(x) and its LS(x), given as a pair that was computed elsewhere, for example by a database.

    LS itself changes by at most `moves` between neighbours, as it does for `Triangles`.

    Theorem: LS_k ≤ LS + k·moves [immediate: each of k steps changes LS by at most moves]

    >>> Counted().curve((12, 3), 2)
    (3, 4, 5)
    """

    moves: int = 1

    def __post_init__(self) -> None:
        checks.whole("moves", self.moves, 1, MOST_VALUE)

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def everywhere(self) -> int:
        return MOST_VALUE

    @property
    def grain(self) -> Fraction:
        return Fraction(1)

    @property
    def drift(self) -> int:
        return self.moves

    def value(self, data: tuple[int, int]) -> int:
        return data[0]

    def curve(self, data: tuple[int, int], most: int) -> tuple[int, ...]:
        return tuple(min(data[1] + k * self.moves, MOST_VALUE) for k in range(most + 1))
