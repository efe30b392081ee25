"""round(v + N) for real v, drawn without rounding v first: as private as v + N itself."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.noise.balls import Ball
from sfumato.noise.coin import happens
from sfumato.noise.density import Density, Floored
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.sampler import CHUNK, LARGEST, Sampler
from sfumato.noise.table import USUAL, Integers, Words

SAFE = 2.0**62  # sums of two such numbers fit into 64 bits
TINY = 2.0**-1000  # scaled doubles of this size and more have lost no bit


def fineness(spread: Fraction) -> int:
    """t ≥ 1 such that N is looked at in cells of 2^-t. Carries are asked for once in 2^t draws.

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
        object.__setattr__(self, "cells", self.density.scaled(1 << self.bits))
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
