"""An answer plus noise, on a public lattice.

Whole numbers are added to whole noise. For real numbers round(v + N) is drawn about v itself. Either way the answer is
a multiple of the step, and its law is that of the ideal v + N seen through rounding, which costs nothing.
"""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.values import numbers, shifted
from sfumato.noise import Answer, Density, Lattice, Law, Pool, Rounding, Sampler
from sfumato.noise.sampler import LARGEST

Released = int | float | NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Additive(Mechanism[ArrayLike, Released]):
    """v + N for a number, or for each number of an array, independently.

    Private values are never refused: answers saturate at ±(2⁶³ − 1) steps, so does ±∞, and NaN counts as 0. How many
    values there are and of which type is public. Subclasses have a field `step` and name the noise in units of it.
    """

    @property
    @abstractmethod
    def lattice(self) -> Lattice:
        """Where answers lie."""

    @abstractmethod
    def law(self) -> Law:
        """The noise of whole multiples of the step, in steps."""

    @abstractmethod
    def density(self) -> Density | None:
        """The noise of real numbers, in steps; None: this mechanism is for multiples of the step only."""

    @abstractmethod
    def error(self, confidence: float = 0.95, coordinates: int = 1) -> float:
        """With this probability all coordinates are off by at most this; one step more where values are real."""

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(self.law(), source=self.source)

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
        """Draw the noise of the next `count` single whole numbers, a public number, before data are read."""
        self.pool.ready(count)

    def release(self, value: ArrayLike) -> Released:
        """int (or int64) if the step is 1, else float (or float64); arrays keep their shape."""
        found = self.answer(value)
        if found.lattice.exponent == 0:
            return found.multiples if found.multiples.ndim else int(found.multiples)
        return found.floats() if found.multiples.ndim else float(found.floats())

    def answer(self, value: ArrayLike) -> Answer:
        """The same as exact multiples of the step."""
        lattice, found = self.lattice, numbers(value)
        if found.dtype.kind == "f":
            return lattice.unrounded(found).with_noise(self.rounding)
        if lattice.exponent > 0:
            raise InvalidParameter(
                f"integers are finer than this lattice.\n  found:  a step of {float(lattice.step):g}\n"
                "  do:     choose a step of at most 1, or give floats"
            )
        multiples = shifted(found.astype(np.int64, copy=False), -lattice.exponent)
        if multiples.ndim == 0:
            total = int(multiples) + self.pool.take()
            return Answer(lattice, np.array(max(-LARGEST, min(LARGEST, total)), np.int64))
        return lattice.exactly(multiples).with_noise(self.sampler)


def on_lattice(step: float | Fraction) -> Lattice:
    """The lattice with exactly this step."""
    found = Lattice.within(step)
    if found.step != step:
        raise InvalidParameter(
            f"step must be a power of two.\n  found:  step = {float(step):g}\n  do:     give {float(found.step):g}"
        )
    return found
