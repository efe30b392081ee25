"""Where answers live: a public grid of step 2^e, and types that tell how a number came to lie on it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import rational
from sfumato.noise.off_lattice import Rounding
from sfumato.noise.sampler import LARGEST, Sampler
from sfumato.noise.table import Integers
from sfumato.rounding import product_up, sqrt_up

LEAST_EXPONENT, MOST_EXPONENT = -900, 900


@dataclass(frozen=True)
class Lattice:
    """The multiples of 2^exponent. The exponent is public: never take it from data or from a scale that data decide."""

    exponent: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", whole("exponent", self.exponent, LEAST_EXPONENT, MOST_EXPONENT))

    @cached_property
    def step(self) -> Fraction:
        return Fraction(2) ** self.exponent

    @staticmethod
    def within(step: Fraction | float) -> "Lattice":
        """The coarsest lattice whose step is at most this public number.

        >>> Lattice.within(0.3)
        Lattice(exponent=-2)
        """
        above, below = rational(
            "step", step, Fraction(2) ** LEAST_EXPONENT, Fraction(2) ** MOST_EXPONENT
        ).as_integer_ratio()
        exponent = above.bit_length() - below.bit_length()
        return Lattice(exponent if Fraction(2) ** exponent * below <= above else exponent - 1)

    def units(self, scale: Fraction | float) -> Fraction:
        """A public length in steps: the scale to give to a law."""
        return rational("scale", scale, 0, Fraction(2) ** 1000) / self.step

    def exactly(self, multiples: ArrayLike) -> "OnLattice":
        """Values that are integers in units of the step, as sums of integers are. Nothing is rounded."""
        found = np.asarray(multiples)
        if found.dtype.kind not in "iu" or (found.dtype == np.uint64):
            raise InvalidParameter(
                f"values on a lattice are given as integer multiples of its step.\n  found:  {found.dtype}\n"
                "  do:     give int64, or use rounded() or unrounded() for real values"
            )
        return OnLattice(self, found.astype(np.int64))

    def rounded(self, values: ArrayLike) -> "RoundedFirst":
        """Real values, rounded to the lattice before any noise; their sensitivity has grown (see RoundedFirst)."""
        v = self._scaled(values)
        return RoundedFirst(self, _saturated(np.rint(np.where(np.isnan(v), 0.0, v))))

    def unrounded(self, values: ArrayLike) -> "Unrounded":
        """Real values, to be rounded together with their noise."""
        return Unrounded(self, np.array(values, np.float64))

    def _scaled(self, values: ArrayLike) -> NDArray[np.float64]:
        with np.errstate(over="ignore", under="ignore"):
            scaled: NDArray[np.float64] = np.ldexp(np.asarray(values, np.float64), -self.exponent)
        return scaled


def _saturated(whole_values: NDArray[np.float64]) -> Integers:
    """Doubles with whole values as int64, ±(2⁶³ − 1) at most: a cast would wrap."""
    inside = np.abs(whole_values) < 2.0**63
    values = np.where(inside, whole_values, 0).astype(np.int64)
    values[~inside] = np.where(whole_values[~inside] > 0, LARGEST, -LARGEST)
    return values


@dataclass(frozen=True)
class Answer:
    """A noisy answer: integers in units of the lattice's step. It becomes a double only when it is printed."""

    lattice: Lattice
    multiples: Integers

    def fractions(self) -> list[Fraction]:
        """The exact values."""
        return [int(k) * self.lattice.step for k in self.multiples.reshape(-1)]

    def floats(self) -> NDArray[np.float64]:
        """The nearest doubles: post-processing."""
        return np.ldexp(self.multiples.astype(np.float64), self.lattice.exponent)


@dataclass(frozen=True, repr=False)
class OnLattice:
    """Private values that are multiples of the step by nature. Their sensitivity is what it was."""

    lattice: Lattice
    multiples: Integers

    def __repr__(self) -> str:
        return f"OnLattice({self.lattice}, {self.multiples.size} values)"

    def with_noise(self, sampler: Sampler) -> Answer:
        """Add independent integer noise, whose scale is in units of the step."""
        return Answer(self.lattice, sampler.about(self.multiples))


@dataclass(frozen=True, repr=False)
class RoundedFirst:
    """Private values rounded before the noise. Each moved by at most step/2, so two neighbours by a step more:

    sensitivities become Δ₁ + d·step, Δ₂ + √d·step and Δ_∞ + step for d coordinates. `OnLattice` is another type so that
    no one adds noise for the old ones by mistake.
    """

    lattice: Lattice
    multiples: Integers

    def __repr__(self) -> str:
        return f"RoundedFirst({self.lattice}, {self.multiples.size} values)"

    def growth(self) -> tuple[float, float, float]:
        """The growth of (Δ₁, Δ₂, Δ_∞) by rounding, never below the true one."""
        d, step = self.multiples.size, self.lattice.step
        return product_up(d, step), sqrt_up(d * step**2), float(step)

    def paid(self) -> OnLattice:
        """The same values as lattice values, said by someone who has priced the growth."""
        return OnLattice(self.lattice, self.multiples)


@dataclass(frozen=True, repr=False)
class Unrounded:
    """Private real values. round(v + N) is drawn about v itself, so their sensitivity is what it was."""

    lattice: Lattice
    values: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"Unrounded({self.lattice}, {self.values.size} values)"

    def with_noise(self, rounding: Rounding) -> Answer:
        """round(v + N) on the lattice; the density's scale is in units of the step."""
        return Answer(self.lattice, rounding.about(self.values, self.lattice.exponent))
