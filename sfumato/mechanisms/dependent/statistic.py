"""A statistic of private data and its global, local and smooth sensitivity; the reciprocal of a count as an example."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, SupportsFloat, TypeVar

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.loss.numeric import ULP
from sfumato.rounding import round_up
from sfumato.sensitivity import AddRemove, Relation, Sensitivity

Data = TypeVar("Data", contravariant=True)
Exact = int | Fraction
MOST_STEPS = 1 << 22  # length of the curve at which the search for a smooth sensitivity is given up


@dataclass(frozen=True)
class Statistic(ABC, Generic[Data]):
    """f(x) and its local sensitivities LS_0(x) ≤ LS_1(x) ≤ … at distance k from x.

    LS(x) is the largest |f(x) − f(x′)| over neighbours x′. LS_k(x) is the largest LS(y) over all y within distance k of
    x (k additions and removals, or k replacements). S_t(x) = max_k e^{−tk}·LS_k(x) is the smooth sensitivity. All of
    them are as private as f(x): they are arguments of mechanisms and are never released.

    A class may give an upper bound A_k instead of LS_k if A_0 ≥ LS and A_k(x) ≤ A_{k+1}(x′) for neighbours x, x′.
    Theorem: then max_k e^{−tk}·A_k is at least LS, and changes by a factor of at most e^t between neighbours
        [Nissim, Raskhodnikova & Smith 2007, section 3]
    """

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """The neighbour relation."""

    @property
    @abstractmethod
    def everywhere(self) -> Exact:
        """The global sensitivity: no LS_k is larger."""

    @abstractmethod
    def value(self, data: Data) -> Exact:
        """f(x), exactly."""

    @abstractmethod
    def curve(self, data: Data, most: int) -> tuple[Exact, ...]:
        """LS_0 … LS_most, exactly."""

    def work(self, most: int) -> int:
        """Roughly how many numbers `curve(data, most)` holds in memory."""
        return most + 1

    def prepare(self, data: Data) -> Any:
        """The data in the form that `value` and `curve` work on, so that it is computed once."""
        return data

    @property
    def grain(self) -> Fraction | None:
        """All values are multiples of this; None if unknown, in which case noise is drawn about real numbers."""
        return None

    @property
    def span(self) -> Exact | None:
        """All values lie in an interval of this length; None if unknown."""
        return None

    @property
    def drift(self) -> int | None:
        """The global sensitivity of LS itself, where it is known; for integer statistics."""
        return None

    def local(self, data: Data) -> Exact:
        """LS(x): the largest change that one person can make to the answer on these data."""
        return self.at_distance(data, 0)

    def at_distance(self, data: Data, k: int) -> Exact:
        """LS_k(x)."""
        return self.curve(data, checks.whole("k", k, 0, MOST_STEPS))[-1]

    def smooth(self, data: Data, t: SupportsFloat) -> float:
        """S_t(x), rounded up: never below, and at most 1e-12 above, relatively.

        No LS_k exceeds the global sensitivity G, so the search ends once e^{−tk}·G is below the maximum found.
        A release uses the rung of a ladder instead, which is decided by integers.
        """
        rate, most, reach, ready = checks.positive("t", t), float(self.everywhere), 64, self.prepare(data)
        while True:
            found = np.array([float(size) for size in self.curve(ready, reach - 1)])
            powers = rate * np.arange(reach)
            best = float(np.max(found * np.exp(-powers) * (1 + (32 + powers) * ULP)))  # a power's error is in e^−power
            if found[-1] >= most or best >= most * math.exp(-rate * reach) * (1 + 1e-12):
                return best
            if reach >= MOST_STEPS:
                raise OutOfReach(
                    "the smooth sensitivity needs local sensitivities beyond distance four million.\n"
                    f"  found:  t = {rate:g}\n  do:     give a larger t"
                )
            reach *= 2

    def distance(self, data: Data, bound: Exact, most: int) -> int:
        """min{k : LS_k(x) > bound}, capped at `most`: the distance to data that violate the bound.

        Theorem: min{k : LS_k(x) > b} changes by at most one between neighbours [Dwork & Lei 2009]
        """
        if not most:
            return 0
        return sum(size <= bound for size in self.curve(data, most - 1))

    @property
    def sensitivity(self) -> Sensitivity:
        """The global sensitivity in the form that additive noise takes; rounded up."""
        found = round_up(self.everywhere)
        return Sensitivity(l0=1, linf=found, l1=found, l2=found, relation=self.relation)


def answer_step(statistic: Statistic[Any], bits: int) -> Fraction:
    """The step to round answers to: the grain of the statistic, or at most 2^−bits of its range.

    Rounding an answer is post-processing, so a fine step costs nothing; a coarse one would add error.
    """
    if statistic.grain is not None:
        return statistic.grain
    if statistic.span is None:
        raise InvalidParameter(
            "the range of this statistic is unknown, so the step of its answers must be given.\n"
            f"  found:  {type(statistic).__name__}, without a step\n"
            "  do:     give step=, a power of two: 1 for whole numbers, 2**-10 for thousandths"
        )
    return power_of_two(Fraction(statistic.span)) / (1 << bits)


def power_of_two(size: Fraction) -> Fraction:
    """The largest power of two that is at most `size`."""
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    found = Fraction(1 << max(exponent, 0), 1 << max(-exponent, 0))
    return found if found <= size else found / 2


@dataclass(frozen=True)
class Reciprocal(Statistic[Sized | int]):
    """1/max(n, least) for n people: the factor that turns a sum into a mean. Add/remove.

    LS(n) = 1/(n(n−1)) for n > least, 1/(least(least+1)) for n = least, 0 below. It decreases from n = least on, so
    LS_k(n) = LS(max(n − k, least)); for n < least it is 0 until k = least − n.

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
        """The number of people; a negative count is taken as 0."""
        if isinstance(data, bool) or not isinstance(data, int | Sized):
            raise InvalidParameter(
                "Reciprocal takes the data, or their number.\n"
                f"  found:  a {type(data).__name__}\n  do:     give a list, or a whole number"
            )
        return max(data, 0) if isinstance(data, int) else len(data)
