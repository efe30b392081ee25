"""A number made of private data, and how far one person can move it: anywhere, here, and near here."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Generic, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.loss.numeric import ULP
from sfumato.mechanisms.additive.base import bounds_in_steps, lattice_of_step
from sfumato.mechanisms.dependent.ordered import Ordered
from sfumato.noise import Lattice
from sfumato.rounding import round_up
from sfumato.sensitivity import AddRemove, Relation, Sensitivity

Data = TypeVar("Data", contravariant=True)
Exact = int | Fraction
MOST_STEPS = 1 << 22  # of the curve, before a smooth sensitivity is given up


@dataclass(frozen=True)
class Statistic(ABC, Generic[Data]):
    """f(x), and its local sensitivities LS_0(x) ≤ LS_1(x) ≤ …: the most that one person moves f within k steps of x.

    LS(x) is the largest |f(x) − f(x′)| over neighbours x′, LS_k(x) the largest LS(y) over all y that k people (k
    additions and removals, or k replacements) can make of x, and S_t(x) = max_k e^{−tk}·LS_k(x) the smooth sensitivity.
    All but f are private numbers as f itself is: they are arguments of mechanisms, never answers.

    A class may give an upper bound A_k instead of LS_k, provided that A_0 ≥ LS and A_k(x) ≤ A_{k+1}(x′) for neighbours.
    Theorem: then max_k e^{−tk}·A_k is at least LS, and changes by a factor of at most e^t between neighbours
        [Nissim, Raskhodnikova & Smith 2007, section 3]
    """

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """Which data sets are neighbours."""

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
        """How many numbers `curve` works on for that many steps, about: it decides how much memory that takes."""
        return most + 1

    def prepared(self, data: Data) -> Any:
        """Data in a form that need not be made again for each look at them."""
        return data

    @property
    def grain(self) -> Fraction | None:
        """All values are multiples of this, or nothing of the kind is known: then noise is drawn about real numbers."""
        return None

    @property
    def span(self) -> Exact | None:
        """All values lie in an interval of this length, or nothing of the kind is known."""
        return None

    @property
    def drift(self) -> int | None:
        """How far LS itself moves between neighbours at most, where that is known, for whole statistics."""
        return None

    def local(self, data: Data) -> Exact:
        """LS(x): how far one person can move the answer here."""
        return self.at_distance(data, 0)

    def at_distance(self, data: Data, k: int) -> Exact:
        """LS_k(x)."""
        return self.curve(data, checks.whole("k", k, 0, MOST_STEPS))[-1]

    def smooth(self, data: Data, t: SupportsFloat) -> float:
        """S_t(x), never below, and at most 1e-12 above, relatively.

        No LS_k exceeds the global sensitivity G, so nothing beyond k counts once e^{−tk}·G is less than what was found.
        A release reads the rung of a ladder instead (integers decide there).
        """
        rate, most, reach, ready = checks.positive("t", t), float(self.everywhere), 64, self.prepared(data)
        while True:
            found = np.array([float(size) for size in self.curve(ready, reach - 1)])
            powers = rate * np.arange(reach)
            best = float(np.max(found * np.exp(-powers) * (1 + (32 + powers) * ULP)))  # a power's error is in e^−power
            if found[-1] >= most or best >= most * math.exp(-rate * reach) * (1 + 1e-12):
                return best
            if reach >= MOST_STEPS:
                raise OutOfReach(
                    "no smooth sensitivity within four million steps of these data.\n"
                    f"  found:  t = {rate:g}\n  do:     give a larger t"
                )
            reach *= 2

    def distance(self, data: Data, bound: Exact, most: int) -> int:
        """How many people must change until one more can move the answer by more than the bound; at most `most`.

        Theorem: min{k : LS_k(x) > b} changes by at most one between neighbours [Dwork & Lei 2009]
        """
        if not most:
            return 0
        return sum(size <= bound for size in self.curve(data, most - 1))

    @property
    def sensitivity(self) -> Sensitivity:
        """The global one, as additive noise takes it; rounded up."""
        found = round_up(self.everywhere)
        return Sensitivity(l0=1, linf=found, l1=found, l2=found, relation=self.relation)


def answer_step(statistic: Statistic[Any], bits: int) -> Fraction:
    """How far apart answers may lie: all values are multiples of it, or it is 2^−bits of their range, or less.

    Rounding an answer is post-processing, so a fine step costs nothing; a coarse one would hide what was asked for.
    """
    if statistic.grain is not None:
        return statistic.grain
    if statistic.span is None:
        raise InvalidParameter(
            "nothing is known of the range of this statistic, so the step of its answers must be given.\n"
            f"  found:  {type(statistic).__name__}, without a step\n"
            "  do:     give step=, a power of two: 1 for whole numbers, 2**-10 for thousandths"
        )
    return power_of_two(Fraction(statistic.span)) / (1 << bits)


def power_of_two(size: Fraction) -> Fraction:
    """The largest power of two that is at most this."""
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    found = Fraction(1 << max(exponent, 0), 1 << max(-exponent, 0))
    return found if found <= size else found / 2


@dataclass(frozen=True)
class OfValues(Statistic[ArrayLike | Ordered]):
    """A statistic of one value per person, on the multiples of a public step (a power of two) from low to high.

    Values outside the range are put to its ends, NaN to the low one; reals are rounded to the step. That is done to
    each value by itself, so that neighbours stay neighbours, and costs nothing.
    """

    low: float
    high: float
    step: float | Fraction = 1

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        assert self.ends  # refuses what makes no sense

    @cached_property
    def lattice(self) -> Lattice:
        return lattice_of_step(self.step)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The range in steps."""
        return bounds_in_steps(self.lattice, self.low, self.high)

    @property
    def span(self) -> Exact:
        return self.exact(self.ends[1] - self.ends[0])

    def ordered(self, data: ArrayLike | Ordered) -> Ordered:
        """The values in steps, sorted; what is sorted already, or a window of it, is taken as it is."""
        return data if isinstance(data, Ordered) else Ordered.of(data, *self.ends, scale=float(1 / self.lattice.step))

    def prepared(self, data: ArrayLike | Ordered) -> Ordered:
        return self.ordered(data)

    def exact(self, steps: Any) -> Exact:
        """A number of steps as a value."""
        if not isinstance(steps, Fraction) and self.lattice.exponent >= 0:
            return int(steps) << self.lattice.exponent
        found = (steps if isinstance(steps, Fraction) else int(steps)) * self.lattice.step
        return int(found) if found.denominator == 1 else found

    def value(self, data: ArrayLike | Ordered) -> Exact:
        return self.exact(self.middle(self.ordered(data)))

    def curve(self, data: ArrayLike | Ordered, most: int) -> tuple[Exact, ...]:
        return tuple(self.exact(size) for size in accumulate(self.steps(self.ordered(data), most), max))

    @abstractmethod
    def middle(self, x: Ordered) -> Exact:
        """f, in steps."""

    @abstractmethod
    def steps(self, x: Ordered, most: int) -> "list[Exact] | list[int] | list[Fraction]":
        """What LS_0 … LS_most are the running maxima of, in steps."""

    @abstractmethod
    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        """Which ranks `steps` reads of so many values: (first, last) of each part, to be fetched by SQL."""


@dataclass(frozen=True)
class OneOfThem(OfValues):
    """One of the values, by its rank, of people whose number is private."""

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def everywhere(self) -> Exact:
        return self.exact(self.ends[1] - self.ends[0])

    @property
    def grain(self) -> Fraction:
        return self.lattice.step
