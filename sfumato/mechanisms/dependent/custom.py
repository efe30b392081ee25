"""Your own statistic, with a bound on its local sensitivities, and an attempt to refute it."""

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

ROUNDING = 1e-9  # relative: what is believed of numbers from a user's doubles
MOST_EXPONENT = 600.0


@dataclass(frozen=True)
class Given(Statistic[Any]):
    """f = `function`, and `bounds(data, most)` = A_0, …, A_most with A_0 ≥ LS and A_k(x) ≤ A_{k+1}(x′).

    Both are the word of whoever writes them, over all data and neighbours, and so is that neither fails, nor takes
    longer for some data. `refute` looks for a pair that breaks it.

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
            raise InvalidParameter("about says who are neighbours.\n  do:     give sf.AddRemove or sf.ReplaceOne")

    @staticmethod
    def smoothly(
        function: Callable[[Any], Exact | float],
        bound: Callable[[Any], float],
        t: SupportsFloat,
        largest: Exact | float,
        about: Relation = AddRemove,
    ) -> "Given":
        """From one smooth upper bound: B(x) ≥ LS(x) and B(x) ≤ e^t·B(x′). It serves for this t and larger ones.

        A_k = B·e^{t′k} has both properties, and B = max_k e^{−t′k}·A_k. t′ is 1e-9 above t, for the roundings of B.
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
        return found if isinstance(found, int | Fraction) else exact(found)

    def curve(self, data: Any, most: int) -> tuple[Exact, ...]:
        """As given, never more than `largest`; what is no number counts as `largest`."""
        top = self.everywhere
        rows = accumulate((self._size(size) for size in self.bounds(data, most)), max)
        found = tuple(min(size, top) for size, _ in zip(rows, range(most + 1), strict=False))
        return found + (top,) * (most + 1 - len(found))

    def _size(self, size: Exact | float) -> Exact:
        number = math.isfinite(size) and size >= 0
        return (size if isinstance(size, int) else Fraction(size)) if number else self.everywhere


def exact(x: float) -> Fraction:
    """A double as the number it is; what is no number is 0."""
    return Fraction(x) if math.isfinite(x) else Fraction(0)


@dataclass(frozen=True)
class Refuted:
    """A pair of neighbours that a statistic's own bounds do not cover, and what is wrong with it."""

    reason: str
    first: Any = field(repr=False)
    second: Any = field(repr=False)


def refute(
    statistic: Statistic[Any], pairs: Iterable[tuple[Any, Any]], *, most: int = 8, believed: float = 0.0
) -> Refuted | None:
    """The first of these pairs of neighbours that breaks what `Statistic` asks, or None: then nothing is proved.

    For tests, on made-up data: what it returns holds data. Asked of every pair: |f(x) − f(x′)| ≤ A_0(x), A_k(x) ≤
    A_{k+1}(x′), A_k ≤ A_{k+1}, A_k ≤ the global sensitivity, each both ways. `believed`: a relative rounding error.
    """
    slack = 1 + Fraction(believed)
    for pair in pairs:
        moved = abs(Fraction(statistic.value(pair[0])) - Fraction(statistic.value(pair[1])))
        here, there = (statistic.curve(data, most) for data in pair)
        for a, b, (x, y) in ((here, there, pair), (there, here, pair[::-1])):
            if moved > a[0] * slack:
                return Refuted("the answer moves by more than the local sensitivity says", x, y)
            if any(p > q * slack for p, q in zip(a, b[1:], strict=False)):
                return Refuted("a neighbour has less at distance k + 1 than there is here at k", x, y)
            if any(p > q for p, q in pairwise(a)):
                return Refuted("less at a larger distance", x, x)
            if a[-1] > statistic.everywhere * slack:
                return Refuted("more than the global sensitivity", x, x)
    return None
