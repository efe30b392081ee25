"""The lattice of multiples of 2^e on which answers are released, and one type for each way of rounding to it."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, rational
from sfumato.noise.bernoulli import happens
from sfumato.noise.density import Density, Floored
from sfumato.noise.draw_table import CHUNK, USUAL, Integers, Words
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.sampler import LARGEST, Sampler
from sfumato.rounding import product_up, sqrt_up

SAFE = 2.0**62  # sums of two such numbers fit into 64 bits
TINY = 2.0**-1000  # scaled doubles of this size and more have lost no bit
LEAST_EXPONENT, MOST_EXPONENT = -900, 900


def fineness(spread: Fraction) -> int:
    """t ≥ 1 such that N is drawn in cells of 2^-t. A carry needs a coin once in 2^t draws.

    20 unless offsets would then need more than 32 bits, 16 unless the cells would leave int64. Speed only.
    """
    size = max(1, int(spread)).bit_length()
    return max(1, min(20, max(16, 38 - size), 58 - size))


@dataclass(frozen=True)
class Rounding:
    """⌊v + N + ½⌋ for every finite double v, N with a continuous density.

    With n = ⌊2^t·N⌋, g = ⌊2^t·v⌋, e = 2^t·v − g and R = 2^t·N − n: v + N + ½ = (A + e + R)/2^t, A = n + g + 2^(t−1),
    0 ≤ e + R < 2. So the answer is A >> t, unless e > 0 and A ≡ −1 mod 2^t; then it is one more iff R ≥ 1 − e, a coin
    whose probability given n is known by balls.
    Theorem: round(v + N) is drawn exactly from ⌊2^t·N⌋ and one rare coin [docs/theorems/noise.md, Theorem 5]
    """

    density: Density
    words: Words = USUAL
    source: Source = SYSTEM
    fine: int | None = None  # t; None: `fineness`
    bits: int = field(init=False, repr=False)
    cells: Density = field(init=False, repr=False)
    noise: Sampler = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", self.fine or fineness(self.density.spread))
        object.__setattr__(self, "cells", self.density.times(1 << self.bits))
        object.__setattr__(self, "noise", Sampler(Floored(self.cells), self.words, self.source))

    def about(self, values: ArrayLike, exponent: int = 0) -> Integers:
        """round(v/2^exponent + N), one independent N for each v, saturated at ±(2⁶³ − 1).

        Values may be private, so nothing is refused: ±∞ saturates and NaN counts as 0. Values of 2^(62−t) or more take
        longer (and non-zero ones below 2^-1000 steps, if the step is large), so clamp them to public bounds first where
        time could be watched.
        """
        v = np.asarray(values, np.float64)
        flat, out = v.reshape(-1), np.empty(v.size, np.int64)
        for start in range(0, v.size, CHUNK):
            self._part(flat[start : start + CHUNK], exponent, out[start : start + CHUNK])
        return out.reshape(v.shape)

    def _part(self, v: NDArray[np.float64], exponent: int, out: Integers) -> None:
        n, beyond = self.noise.draw_with_beyond(v.size)
        t = self.bits
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(v, t - exponent)  # exact, unless it over- or underflows
        cell = np.floor(scaled)
        far = ~(np.abs(cell) < SAFE)  # also NaN
        if exponent > t:
            far |= (np.abs(scaled) < TINY) & (v != 0)
        any_far = bool(far.any())
        if any_far:
            cell[far] = 0
        whole = cell.astype(np.int64)
        whole += 1 << (t - 1)
        whole += n  # may wrap where |n| ≥ 2⁶²; those places are done again below
        np.right_shift(whole, t, out=out)
        whole &= (1 << t) - 1
        again = np.flatnonzero(whole == (1 << t) - 1)
        again = again[cell[again] < scaled[again]]
        odd = set(again.tolist())
        if any_far:
            odd.update(np.flatnonzero(far).tolist())
        odd.update(np.flatnonzero((n >= 1 << 62) | (n <= -(1 << 62))).tolist())
        odd.update(beyond)
        for at in odd:
            out[at] = self._exactly(float(v[at]), exponent, beyond.get(at, int(n[at])))

    def _exactly(self, v: float, exponent: int, n: int) -> int:
        """The theorem in integers and fractions."""
        if np.isinf(v):
            return LARGEST if v > 0 else -LARGEST
        t, fine = self.bits, Fraction(0 if np.isnan(v) else v) * Fraction(2) ** (self.bits - exponent)
        g = fine.numerator // fine.denominator
        e, A = fine - g, n + g + (1 << (t - 1))
        carry = e > 0 and (A + 1) % (1 << t) == 0 and self._carry(n, e)
        return max(-LARGEST, min(LARGEST, (A + carry) >> t))

    def _carry(self, n: int, e: Fraction) -> bool:
        """True with probability P(R ≥ 1 − e | n). For n < 0 look at −N, whose cell is m = −1 − n, and at 1 − R ≤ e."""
        m = n if n >= 0 else -1 - n
        start, end = (m + 1 - e, Fraction(m + 1)) if n >= 0 else (Fraction(m), m + e)

        def theta(prec: int) -> Ball:
            return self.cells.mass(start, end, prec) / self.cells.mass(Fraction(m), Fraction(m + 1), prec)

        return happens(theta, self.source, step=self.words.step)


@dataclass(frozen=True)
class Lattice:
    """The multiples of 2^exponent. The exponent is public: do not derive it from data or a private scale."""

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
        v = self._in_steps(values)
        return RoundedFirst(self, _saturate(np.rint(np.where(np.isnan(v), 0.0, v))))

    def unrounded(self, values: ArrayLike) -> "Unrounded":
        """Real values, to be rounded together with their noise."""
        return Unrounded(self, np.array(values, np.float64))

    def _in_steps(self, values: ArrayLike) -> NDArray[np.float64]:
        with np.errstate(over="ignore", under="ignore"):
            scaled: NDArray[np.float64] = np.ldexp(np.asarray(values, np.float64), -self.exponent)
        return scaled


def _saturate(whole_values: NDArray[np.float64]) -> Integers:
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
        """These values as lattice values, for a caller who has priced the growth of the sensitivity."""
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
