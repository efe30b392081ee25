"""Additive noise: an answer plus noise, on a public lattice.

Whole numbers are added to whole noise. For real numbers round(v + N) is drawn about v itself. Either way the answer is
a multiple of the step, and its law is that of the ideal v + N seen through rounding, which costs nothing.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, SupportsFloat, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.base import Mechanism, Processed
from sfumato.mechanisms.private_inputs import read_numbers, shift_left
from sfumato.noise import (
    Answer,
    Density,
    Lattice,
    Pool,
    Rounding,
    Sampler,
    radius,
)
from sfumato.noise.draw_table import BRIEF, Integers
from sfumato.noise.monotone import LEAST, MOST, TailedLaw
from sfumato.noise.sampler import LARGEST
from sfumato.rounding import round_up
from sfumato.sensitivity import Relation, Sensitivity

MOST_WHOLE = checks.MOST_WHOLE
FEW = 1 << 12  # draws for which a table is better made quickly
FAR = 1 << 61  # two such ends are less than 2⁶³ apart, with room to spare
Released = int | float | NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Additive(Mechanism[ArrayLike, Released]):
    """v + N for a number, or for each number of an array, independently.

    Private values are never refused: answers saturate at ±(2⁶³ − 1) steps, so does ±∞, and NaN counts as 0. How many
    values there are and of which type is public.
    """

    @property
    @abstractmethod
    def step(self) -> float | Fraction:
        """The distance between neighbouring answers: a power of two."""

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of answers."""
        return lattice_of_step(self.step)

    @abstractmethod
    def law(self) -> TailedLaw:
        """The law of the noise on whole multiples of the step, in steps."""

    @abstractmethod
    def density(self) -> Density | None:
        """The density of the noise on real numbers, in steps; None if only multiples of the step are taken."""

    def error(self, confidence: float = 0.95, coordinates: int = 1) -> float:
        """The least number by which, with this probability, no coordinate of a whole answer is off by more.

        Where values are real, count one step more: if v + N is within m + ½ steps of v, then |round(N)| ≤ m, and
        round(v + N) is within m + 1 steps of v. The saturation of answers at ±(2⁶³ − 1) steps is left aside.
        """
        return round_up(radius(self.law(), confidence, coordinates) * self.lattice.step)

    def clamped(self, low: float, high: float) -> "Processed":
        """This mechanism with answers clamped to a public range: post-processing.

        For Laplace noise this is not even cheaper: what lies beyond an end has one and the same loss.
        """
        return self.then(Clamp(low, high))

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(self.law(), source=self.source)

    @cached_property
    def brief(self) -> Sampler:
        """A sampler of the same law that is built sooner, for up to some thousand draws."""
        return self.sampler if "sampler" in self.__dict__ else Sampler(self.law(), BRIEF, self.source)

    @cached_property
    def pool(self) -> Pool:
        return Pool(self.sampler)

    @cached_property
    def rounding(self) -> Rounding:
        if (density := self.density()) is None:
            raise InvalidParameter(
                f"{type(self).__name__} is for whole numbers.\n  found:  real numbers\n"
                "  do:     count in whole steps and give integers, or use Gaussian or Laplace, which take reals"
            )
        return Rounding(density, source=self.source)

    def ready(self, count: int) -> None:
        """Draw the noise of the next `count` single whole numbers, a public number, before data are read.

        The time of a release then does not reveal its noise. (CPython keeps the integers from −5 to 256 at hand, so
        answers among these come some 10 ns sooner; but the answer is public.)
        """
        self.pool.ready(count)

    def needs_sensitivity(self) -> bool:
        return True

    def release(self, value: ArrayLike) -> Released:
        """int (or int64) if the step is 1, else float (or float64); arrays keep their shape."""
        if type(value) is int and self.lattice.exponent == 0:  # the same, twenty times as quick
            return max(-LARGEST, min(LARGEST, self.pool.about(max(-LARGEST, min(LARGEST, value)))))
        return plain_numbers(self.answer(value))

    def answer(self, value: ArrayLike) -> Answer:
        """The answer as exact multiples of the step."""
        if type(value) is np.ndarray and value.dtype == np.int64 and value.ndim and self.lattice.exponent == 0:
            return self.noisy(value)  # the same without a copy: `Sampler.about` treats −2⁶³ as `read_numbers` does
        lattice, found = self.lattice, read_numbers(value)
        if not found.size:
            return Answer(lattice, np.zeros(found.shape, np.int64))
        if found.dtype.kind == "f":
            return lattice.unrounded(found).with_noise(self.rounding)
        if lattice.exponent > 0:
            raise InvalidParameter(
                f"integers are finer than this lattice.\n  found:  a step of {float(lattice.step):g}\n"
                "  do:     choose a step of at most 1, or give floats"
            )
        return self.noisy(shift_left(found.astype(np.int64, copy=False), -lattice.exponent))

    def noisy(self, multiples: Integers) -> Answer:
        """Noise on private multiples of the step: single ones from the pool."""
        if multiples.ndim:
            return Answer(self.lattice, (self.brief if multiples.size <= FEW else self.sampler).about(multiples))
        total = self.pool.about(int(multiples))
        return Answer(self.lattice, np.array(max(-LARGEST, min(LARGEST, total)), np.int64))


@dataclass(frozen=True)
class Scaled(Additive):
    """Noise of one scale: the field of a subclass that `named` names."""

    named: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, self.named, checks.positive(self.named, getattr(self, self.named)))
        _ = self.units  # raises unless such noise can be drawn

    @cached_property
    def units(self) -> Fraction:
        """The scale in steps."""
        return scale_in_steps(self.named, getattr(self, self.named), self.lattice)


def plain_numbers(answer: Answer) -> Released:
    """The answer as int (or int64) if the step is 1, else as float (or float64)."""
    if answer.lattice.exponent == 0:
        return answer.multiples if answer.multiples.ndim else int(answer.multiples)
    return answer.floats() if answer.multiples.ndim else float(answer.floats())


@dataclass(frozen=True)
class Clamp:
    """x ↦ the number of [low, high] next to x."""

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = (checks.number(name, getattr(self, name), -1e300, 1e300, allowed="a number") for name in self.ends)
        if not low <= high:
            raise InvalidParameter(
                f"low must not be above high.\n  found:  low = {low:g}, high = {high:g}\n  do:     exchange them"
            )

    @property
    def ends(self) -> tuple[str, str]:
        return "low", "high"

    def __call__(self, answer: Released) -> Released:
        if isinstance(answer, np.ndarray):
            return cast("Released", np.clip(answer, self.low, self.high))
        return max(self.low, min(self.high, answer))


def lattice_of_step(step: float | Fraction) -> Lattice:
    """The lattice with exactly this step."""
    found = Lattice.within(step)
    if found.step != step:
        raise InvalidParameter(
            f"step must be a power of two.\n  found:  step = {float(step):g}\n  do:     give {float(found.step):g}"
        )
    return found


def scale_in_steps(name: str, scale: float, lattice: Lattice) -> Fraction:
    """A scale in steps, if it is one that can be drawn."""
    found = lattice.units(scale)
    if not LEAST <= found <= MOST:
        raise InvalidParameter(
            f"{name} must be from 0.001 to 1e18 steps.\n"
            f"  found:  {name} = {scale:g} with a step of {float(lattice.step):g}\n"
            f"  do:     choose the step nearer to {name}"
        )
    return found


def whole_steps(size: float, lattice: Lattice) -> int:
    """A sensitivity in steps, rounded up.

    Values on the lattice move by whole steps. So rounding down would do for them, but up also covers a real number that
    was rounded to the lattice before: |round(x) − round(y)| ≤ ⌈|x − y|⌉.
    """
    return math.ceil(Fraction(size) / lattice.step)


def positive_sensitivity(sensitivity: Sensitivity | SupportsFloat) -> Sensitivity:
    """A sensitivity above 0; what no one can change needs no noise."""
    found = Sensitivity.of(sensitivity)
    if found.linf == 0:
        raise InvalidParameter(
            "a value that no one can change needs no noise.\n  found:  sensitivity = 0\n  do:     publish it as it is"
        )
    return found


def coordinate_count(found: Sensitivity) -> int | None:
    """The number of coordinates that change, if it is known and above 1."""
    return int(found.l0) if 2 <= found.l0 <= MOST_WHOLE else None


def loss_by_coordinates(
    sensitivity: Sensitivity | SupportsFloat,
    lattice: Lattice,
    noise: str,
    shifted: Callable[[int, Relation], PrivacyLoss],
) -> PrivacyLoss:
    """That of one coordinate moved by Δ₁; where l0 coordinates move by linf each, their sum: less at δ > 0.

    `shifted(steps, relation)` is the loss of this noise, moved by so many steps.
    """
    found = Sensitivity.of(sensitivity)
    size = whole_steps(found.norm("l1", noise), lattice)
    each, count = whole_steps(found.linf, lattice), coordinate_count(found)
    if count and size >= count * each:
        return count * shifted(each, found.relation)
    return shifted(size, found.relation)


def bounds_in_steps(lattice: Lattice, low: float, high: float) -> tuple[int, int]:
    """A public range in steps."""
    found = [
        checks.number(name, end, -1e300, 1e300, allowed="a number") for name, end in (("low", low), ("high", high))
    ]
    first, last = (Fraction(end) / lattice.step for end in found)
    if first.denominator > 1 or last.denominator > 1 or not first < last or max(abs(first), abs(last)) > FAR:
        raise InvalidParameter(
            "low and high must be multiples of the step, low < high, at most 2^61 steps from 0.\n"
            f"  found:  low = {found[0]:g}, high = {found[1]:g} with a step of {float(lattice.step):g}\n"
            "  do:     choose a step that divides both"
        )
    return int(first), int(last)


def check_additive(noise: object) -> Additive:
    """The noise itself; raises InvalidParameter if it is not additive."""
    if not isinstance(noise, Additive):
        raise InvalidParameter(
            f"noise must be additive.\n  found:  a {type(noise).__name__}\n  do:     give one such as sf.Laplace(2)"
        )
    return noise
