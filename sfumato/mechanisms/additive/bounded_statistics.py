"""Counts, sums, means and histograms of bounded values, where each person has one value.

Values are private: none is refused, all are clipped to public bounds. Sums are sums of integers, so that what one value
adds depends neither on the order of the values nor on the others.
"""

import math
from collections.abc import Hashable, Iterable, Sequence, Sized
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.numeric import ULP
from sfumato.mechanisms.additive.base import (
    Additive,
    Released,
    bounds_in_steps,
    check_additive,
    lattice_of_step,
    plain_numbers,
)
from sfumato.mechanisms.additive.combined_noise import NoisyMean
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import DATA, LARGEST_DOUBLE, Example, Inputs, Neighbours
from sfumato.mechanisms.private_inputs import read_numbers, shift_left
from sfumato.noise import Lattice
from sfumato.noise.draw_table import Integers
from sfumato.noise.monotone import open_probability
from sfumato.noise.sampler import LARGEST
from sfumato.rounding import round_up
from sfumato.sensitivity import AddRemove, Relation, ReplaceOne, Sensitivity

Numbers = Integers | NDArray[np.float64]
FAR = 1 << 62
LOW_BITS = (1 << 32) - 1


@dataclass(frozen=True)
class Count(Mechanism[Sized, Released]):
    """The number of rows, with noise. Adding or removing a person changes it by 1, and so does replacing one.

    Theorem: a count has sensitivity 1 [Dwork, McSherry, Nissim & Smith 2006, section 3]
    """

    noise: Additive
    relation: Relation = AddRemove
    use = "for how many there are"

    def __post_init__(self) -> None:
        check_counting_noise(self.noise)
        self.loss()

    def release(self, data: Sized) -> Released:
        if not hasattr(data, "__len__"):
            raise InvalidParameter(
                f"what is counted must have a length.\n  found:  a {type(data).__name__}\n  do:     give a list"
            )
        self.noise.ready(1)
        return self.noise.release(len(data))

    def loss(self) -> PrivacyLoss:
        return self.noise.loss(Sensitivity(l0=1, linf=1, relation=self.relation))

    def error(self, confidence: float = 0.95) -> float:
        """With this probability the count is off by at most this: the least such number."""
        return self.noise.error(confidence)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(
                cls(DiscreteLaplace(1.0)),
                (Neighbours([1, 2], [1]), Neighbours("ab", "a"), Neighbours([], [math.nan])),
                Inputs("whatever has a length", ([], {}, "", np.zeros((0, 2))), (None, 1j)),
                step=Fraction(1),
                distance=lambda data, count: abs(len(data) - count),
            ),
        )


@dataclass(frozen=True)
class BoundedSum(Mechanism[Iterable[object], Released]):
    """Σ of the values, each clipped to [low, high] and rounded to a multiple of the noise's step, with noise.

    Adding a person changes the sum by at most max(|low|, |high|), replacing one by at most high − low. What is not
    a number counts as 0, or as the end next to it.

    Theorem: a sum of values in [low, high] has these sensitivities [Dwork & Roth 2014, section 3.3]
    """

    noise: Additive
    low: float
    high: float
    relation: Relation = AddRemove
    use = "for a sum of values that are put into public bounds"

    def __post_init__(self) -> None:
        bounds_in_steps(check_additive(self.noise).lattice, self.low, self.high)
        self.loss()

    def release(self, data: Iterable[object]) -> Released:
        check_row(data)
        self.noise.ready(1)
        first, last = bounds_in_steps(self.noise.lattice, self.low, self.high)
        total = exact_sum(clip_to_steps(data, self.noise.lattice, first, last))
        return plain_numbers(self.noise.noisy(np.array(max(-LARGEST, min(LARGEST, total)), np.int64)))

    def loss(self) -> PrivacyLoss:
        first, last = bounds_in_steps(self.noise.lattice, self.low, self.high)
        return self.noise.loss(value_sensitivity(self.noise.lattice, first, last, self.relation))

    def error(self, confidence: float = 0.95) -> float:
        """With this probability the sum of the bounded, rounded values is off by at most this: the least such."""
        return self.noise.error(confidence)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        added = (
            Neighbours([3, 1], [1]),
            Neighbours([math.inf, 1], [1]),
            Neighbours([LARGEST_DOUBLE, -1.0], [-1.0]),
            Neighbours([math.inf, "x"], ["x"]),
        )
        replaced = (
            Neighbours([0.5, -9.0], [0.5, 9.0]),
            Neighbours([0.5, -1.0], [0.5, 1.0]),
            Neighbours([-LARGEST_DOUBLE, 0.1], [LARGEST_DOUBLE, 0.1]),
        )
        return (
            Example(
                cls(Laplace(3.0), 0, 3),
                added,
                DATA,
                step=Fraction(1),
                distance=lambda data, total: abs(sum(data) - total),
            ),
            Example(cls(Gaussian(1.0, 2**-20), -1, 1, ReplaceOne), replaced, DATA, step=Fraction(1, 2**20)),
        )


@dataclass(frozen=True)
class BoundedMean(Mechanism[Iterable[object], float]):
    """The mean of values clipped to [low, high] where the number of people is private: noisy sum over noisy count.

    The sum is that of distances from the middle: one person moves it by (high − low)/2 only, and the noise of the count
    matters only as far as the mean is away from the middle. The quotient is clipped to [low, high].

    Theorem: losses add up [Zhu, Dong & Wang 2022, Thm 10], and post-processing is free [Dwork & Roth 2014, Prop. 2.1]
    """

    sum_noise: Additive
    count_noise: Additive
    low: float
    high: float
    use = "for a mean where the number of people is private, too"

    def __post_init__(self) -> None:
        check_counting_noise(self.count_noise)
        bounds_in_steps(check_additive(self.sum_noise).lattice, self.low, self.high)
        self.loss()

    @staticmethod
    def of(epsilon: float, low: float, high: float, step: float | Fraction = 1) -> "BoundedMean":
        """Laplace noise, ε/2 for the sum and ε/2 for the count."""
        half, lattice = checks.positive("epsilon", epsilon) / 2, lattice_of_step(step)
        first, last = bounds_about_middle(lattice, low, high)
        return BoundedMean(
            Laplace.of(half, value_sensitivity(lattice, first, last, AddRemove), step), Laplace.of(half), low, high
        )

    def release(self, data: Iterable[object]) -> float:
        check_row(data)
        self.sum_noise.ready(1)
        self.count_noise.ready(1)
        lattice = self.sum_noise.lattice
        first, last = bounds_in_steps(lattice, self.low, self.high)
        values = clip_to_steps(data, lattice, first, last)
        middle = (first + last) // 2
        total = exact_sum(values) - middle * values.size
        distance = self.sum_noise.noisy(np.array(max(-LARGEST, min(LARGEST, total)), np.int64))
        people = max(Fraction(1), self.count_noise.answer(values.size).fractions()[0])
        mean = min(max(middle + int(distance.multiples) / people, Fraction(first)), Fraction(last))
        return float(mean * lattice.step)

    def loss(self) -> PrivacyLoss:
        first, last = bounds_about_middle(self.sum_noise.lattice, self.low, self.high)
        return self.sum_noise.loss(
            value_sensitivity(self.sum_noise.lattice, first, last, AddRemove)
        ) + self.count_noise.loss(1)

    def error(self, confidence: float = 0.95, *, count: int) -> float:
        """With at least this probability the mean of so many values is off by at most this, whatever they are; at most.

        What bounds and rounding do to the values is left aside, as are sums that saturate. The worst mean lies next to
        one end of the range, as far from it as the error (`NoisyMean`). For people by the dozen this is above the least
        such number by less than a hundredth, and a step of the sum over the count: choose the step fine. For few, it is
        overstated what is missed if n + Z < 1.
        More people miss an error less often: a private count may be replaced by a number that it is surely not below.
        """
        lattice, n = self.sum_noise.lattice, checks.whole("count", count, 1)
        first, last = bounds_about_middle(lattice, self.low, self.high)
        step, miss = float(self.count_noise.lattice.step), float(1 - open_probability(confidence))
        noisy = NoisyMean(self.sum_noise.law(), self.count_noise.law(), step, -first, last, n, miss)
        printed = max(abs(self.low), abs(self.high)) * ULP
        return min(round_up(Fraction(noisy.radius()) * lattice.step) + printed, round_up((last - first) * lattice.step))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example(
                cls(Laplace(1.0), Laplace(1.0), 0, 4),
                (Neighbours([4], []), Neighbours([0, 0], [0])),
                DATA,
                distance=lambda data, mean: abs(mean - sum(data) / len(data)),
                error_arguments={"count": 1},
            ),
        )


@dataclass(frozen=True)
class Histogram(Mechanism[Iterable[Hashable], Released]):
    """How many people are in each of a public list of categories, with noise; other values are left out.

    A person is in one category: adding one changes one count by 1, replacing one changes two.

    Theorem: the counts of a histogram have L1 sensitivity 1 together [Dwork & Roth 2014, section 3.3]
    """

    noise: Additive
    categories: Sequence[Hashable]
    relation: Relation = AddRemove
    use = "for counts by public category: one person is in one of them"

    def __post_init__(self) -> None:
        check_counting_noise(self.noise)
        object.__setattr__(self, "categories", tuple(self.categories))
        if not self.categories or len(set(self.categories)) < len(self.categories):
            raise InvalidParameter(
                "the categories of a histogram are a public list without repetition.\n"
                f"  found:  {len(self.categories)} categories, {len(set(self.categories))} of them different\n"
                "  do:     list each category once"
            )
        self.loss()

    def release(self, data: Iterable[Hashable]) -> Released:
        """The counts, in the order of the categories."""
        check_row(data)
        places = {category: place for place, category in enumerate(self.categories)}
        counts = np.zeros(len(places), np.int64)
        for value in data.tolist() if isinstance(data, np.ndarray) else data:
            try:
                place = places.get(value)
            except TypeError:  # what cannot be looked up is in no category
                continue
            if place is not None:
                counts[place] += 1
        return self.noise.release(counts)

    def loss(self) -> PrivacyLoss:
        changed = 1 if self.relation is AddRemove else min(2, len(self.categories))
        return self.noise.loss(Sensitivity(l0=changed, linf=1, relation=self.relation))

    def error(self, confidence: float = 0.95) -> float:
        """With this probability all counts are off by at most this: the least such number."""
        return self.noise.error(confidence, len(self.categories))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        labels = ("a", 1, None)
        return (
            Example(
                cls(DiscreteLaplace(1.0), labels),
                (Neighbours(["a", 1], ["a"]), Neighbours([None], [])),
                Inputs("one category per person", ([], [math.nan, [], "a", 1, True], np.array([1, 2])), (None, 1j)),
                step=Fraction(1),
                distance=lambda data, counts: float(max(abs(counts - np.array([data.count(x) for x in labels])))),
            ),
            Example(
                cls(Laplace(1.0), (0, 1), ReplaceOne),
                (Neighbours([0, 0], [0, 1]),),
                Inputs("one category per person", ([],), (None, 1j)),
                step=Fraction(1),
            ),
        )


def check_counting_noise(noise: object) -> None:
    """Refuse noise that cannot be added to a count."""
    if check_additive(noise).lattice.exponent > 0:
        raise InvalidParameter(
            f"counts are finer than this noise.\n  found:  a step of {float(check_additive(noise).lattice.step):g}\n"
            "  do:     choose a step of at most 1"
        )


def bounds_about_middle(lattice: Lattice, low: float, high: float) -> tuple[int, int]:
    """The bounds as distances from the middle, in steps."""
    first, last = bounds_in_steps(lattice, low, high)
    middle = (first + last) // 2
    return first - middle, last - middle


def value_sensitivity(lattice: Lattice, first: int, last: int, relation: Relation) -> Sensitivity:
    """The sensitivity of a sum to one value from `first` to `last` steps."""
    steps = last - first if relation is not AddRemove else max(abs(first), abs(last))
    size = round_up(steps * lattice.step)
    return Sensitivity(l0=1, linf=size, l1=size, l2=size, relation=relation)


def check_row(data: object) -> None:
    """Refuse data that are not one row, before any noise is drawn; the shape is public."""
    if not isinstance(data, Iterable) or isinstance(data, str | bytes):
        raise InvalidParameter(
            f"data are a row of values, one per person.\n  found:  a {type(data).__name__}\n  do:     give a list"
        )
    if isinstance(data, np.ndarray) and data.ndim != 1:
        raise InvalidParameter(
            f"data are one value per person.\n  found:  an array of {data.ndim} dimensions\n"
            "  do:     give a list of numbers"
        )


def clip_to_steps(data: Iterable[object], lattice: Lattice, first: int, last: int) -> Integers:
    """Private values as whole steps from first to last.

    Each value is read by itself: a list in which one person has a float must not turn the others' integers into
    floats, and what is no number counts as 0.
    """
    if isinstance(data, np.ndarray) and data.dtype.kind in "iubf" and data.dtype.itemsize <= 8:
        found = read_numbers(data)
        steps = round_floats(found, lattice) if found.dtype.kind == "f" else round_integers(found, lattice)
        clipped: Integers = np.clip(steps, first, last)
        return clipped
    return np.array([max(first, min(last, round_value(x, lattice))) for x in data], np.int64)


def round_floats(values: Numbers, lattice: Lattice) -> Integers:
    """Floats in steps, rounded; NaN is 0."""
    with np.errstate(over="ignore", under="ignore"):
        steps = np.rint(np.ldexp(values.astype(np.float64), -lattice.exponent))
    return np.clip(np.where(np.isnan(steps), 0.0, steps), -float(FAR), float(FAR)).astype(np.int64)


def round_integers(values: Numbers, lattice: Lattice) -> Integers:
    """Integers in steps, rounded half to even."""
    whole = values.astype(np.int64, copy=False)
    if lattice.exponent <= 0:
        return shift_left(whole, -lattice.exponent)
    return np.array([round_value(x, lattice) for x in whole.tolist()], np.int64)


def round_value(value: object, lattice: Lattice) -> int:
    """One value in steps, rounded half to even: integers exactly, all else as a float if it has one."""
    if isinstance(value, int | np.integer):
        exact = int(value)
        steps = exact << -lattice.exponent if lattice.exponent <= 0 else round(exact / lattice.step)
        return max(-FAR, min(FAR, steps))
    try:
        x = float(value)  # type: ignore[arg-type]  # what has no float counts as 0
    except Exception:  # an error would reveal something about the value
        x = 0.0
    return int(round_floats(np.array([x]), lattice)[0])


def exact_sum(values: Integers) -> int:
    """A sum that does not wrap."""
    return (int((values >> 32).sum()) << 32) + int((values & LOW_BITS).sum())
