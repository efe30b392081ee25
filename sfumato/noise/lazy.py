"""Real noise given by a formula in uniform numbers, drawn lazily: only as many bits as the answer needs.

Heavy tails do not fit into the tables of `monotone`, and a scale that depends on private data must not decide which
table is built. Here the uniforms are drawn first, the same number of bits whatever the scale, and the formula is
evaluated in balls; more bits are read only where a ball holds a boundary between two integers.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb

from sfumato.noise.balls import Ball, Real, ball, enclosure, precision
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.sampler import LARGEST

BITS = 128  # of each uniform at first, and read more at a time
GUARD = 64  # bits of working precision beyond


class Formula(ABC):
    """Z = f(U₁, …, U_n) for independent uniforms on (0, 1), known by balls."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many uniforms."""

    @abstractmethod
    def value(self, uniforms: list[Ball]) -> Ball:
        """An enclosure of f on a box of uniforms; not finite where the box does not decide."""

    def accepts(self, uniforms: list[Ball]) -> bool | None:
        """Does the whole box belong to what is kept? None: a part of it, so more bits are needed.

        Formulas whose law is a conditional one start again where this is False.
        """
        return True


@dataclass
class Uniforms:
    """Bits of n uniform numbers, more of them on request; no bit is read twice."""

    source: Source
    count: int
    bits: int = 0
    known: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = [0] * self.count
        self.more()

    def more(self) -> None:
        """Continue every number by BITS fair bits."""
        self.known = [u << BITS | self.source.bits(BITS) for u in self.known]
        self.bits += BITS

    def balls(self) -> list[Ball]:
        """Intervals [u, u + 1]/2^bits that hold the numbers, at the working precision."""
        half = Fraction(1, 2 << self.bits)
        return [arb(ball(Fraction(2 * u + 1, 2 << self.bits)), ball(half)) for u in self.known]


@dataclass
class Draw:
    """One draw of a formula: a real number with enclosures as small as needed.

    Theorem: ⌊v + c·Z + ½⌋ is found exactly and almost surely after finitely many bits, whatever v and c > 0
      [docs/theorems/dilation.md, Theorem 5]
    """

    formula: Formula
    source: Source = SYSTEM
    uniforms: Uniforms = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.uniforms = Uniforms(self.source, self.formula.count)
        while not self._is_accepted():
            self.uniforms = Uniforms(self.source, self.formula.count)

    def _is_accepted(self) -> bool:
        """Is the draw accepted? Reads more bits where the box does not decide."""
        while True:
            with precision(self.uniforms.bits + GUARD):
                found = self.formula.accepts(self.uniforms.balls())
            if found is not None:
                return found
            self.uniforms.more()

    def round_to_integer(self, value: Fraction | int, scale: Fraction | Real) -> int:
        """⌊value + scale·Z + ½⌋, at most ±(2⁶³ − 1): post-processing of value + scale·Z."""
        while True:
            prec = self.uniforms.bits + GUARD
            with precision(prec):
                noise = enclosure(scale, prec) * self.formula.value(self.uniforms.balls())
                whole = (ball(Fraction(value) + Fraction(1, 2)) + noise).floor().unique_fmpz()
            if whole is not None:
                return max(-LARGEST, min(LARGEST, int(whole)))
            self.uniforms.more()


# ---- pieces that formulas share -----------------------------------------------------------------------------------


def normal(first: Ball, second: Ball) -> Ball:
    """√(−2 ln U)·cos 2πV has the standard normal law.

    Theorem: polar form of a normal pair [Box & Muller 1958]
    """
    return (-2 * first.log()).sqrt() * (2 * second).cos_pi()


def split_sign(uniform: Ball) -> tuple[Ball, Ball]:
    """A fair sign and an independent uniform number, out of one: 2U − 1 is uniform on (−1, 1)."""
    centred = 2 * uniform - 1
    return centred.sgn(), abs(centred)
