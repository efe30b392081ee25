"""Continuous noise on a lattice: the index of the cell in which a real-valued draw falls, sampled directly."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.noise.balls import Ball
from sfumato.noise.monotone import BETWEEN, BOTH_SIDES, Floats, MonotoneLaw, TailedLaw

HALF = Fraction(1, 2)


class Density(ABC):
    """A density on the reals, symmetric about 0 and falling away from it, up to a constant factor."""

    @property
    @abstractmethod
    def spread(self) -> Fraction:
        """The scale, in cells. It decides how wide bins are, nothing else."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """How many scales the bins cover."""

    @abstractmethod
    def mass(self, a: Fraction, b: Fraction, prec: int) -> Ball:
        """An enclosure of the mass of [a, b], 0 ≤ a ≤ b, of about `prec` bits."""

    @abstractmethod
    def cell(self, twice: int, prec: int) -> Ball:
        """mass(y − ½, y + ½) for y = twice/2 ≥ ½; at y = 0 any number ≥ the mass of [−½, ½] and ≥ cell(1)."""

    @abstractmethod
    def beyond(self, x: Fraction, prec: int) -> Ball:
        """An enclosure of P(|N| > x), x ≥ 0, of about `prec` bits."""

    @abstractmethod
    def times(self, factor: int) -> "Density":
        """The density of `factor` times this noise."""

    def bend(self, edge: Floats, width: int) -> Floats | None:
        """As `MonotoneLaw.bend`, for y ↦ mass(y − ½, y + ½) and for y ↦ mass(y, y + 1)."""
        return None

    def flat(self, j: int, width: int, ahead: int) -> tuple[int, int] | None:
        """As `MonotoneLaw.flat`, for cells [m + ahead/2, m + ahead/2 + 1]."""
        return None

    def halving(self) -> Fraction | None:
        """A distance over which the density falls to half or less, wherever it starts; None: it is log-concave."""
        return None


@dataclass(frozen=True)
class CellLaw(MonotoneLaw):
    """The number of the cell of width 1 in which continuous noise falls; `ahead` halves from k the cell of k begins."""

    density: Density
    ahead: ClassVar[int]

    @property
    def spread(self) -> Fraction:
        return self.density.spread

    @property
    def reach(self) -> float:
        return self.density.reach

    def bend(self, edge: Floats, width: int) -> Floats | None:
        return self.density.bend(edge, width)

    def flat(self, j: int, width: int) -> tuple[int, int] | None:
        return self.density.flat(j, width, self.ahead)

    def halving(self) -> Fraction | None:
        """Cells of a log-concave density are log-concave (Prékopa 1973)."""
        return self.density.halving()


@dataclass(frozen=True)
class Rounded(CellLaw, TailedLaw):
    """round(N) for continuous noise N: P(k) is the mass of [k − ½, k + ½].

    Rounding is post-processing: for integer v, v + round(N) = round(v + N) is as private as v + N.
    """

    sides = BOTH_SIDES
    ahead = -1

    def weight(self, m: int, prec: int) -> Ball:
        return self.density.cell(2 * m, prec) if m else 2 * self.density.mass(Fraction(0), HALF, prec)

    def curve(self, m: int, prec: int) -> Ball:
        return self.density.cell(2 * m, prec)

    def beyond(self, m: int, prec: int) -> Ball:
        """|round(N)| > m where |N| > m + ½."""
        return self.density.beyond(m + HALF, prec)


@dataclass(frozen=True)
class Floored(CellLaw):
    """⌊N⌋ for continuous noise N: P(k) is the mass of [k, k + 1], symmetric about −½."""

    sides = BETWEEN
    ahead = 0

    def weight(self, m: int, prec: int) -> Ball:
        return self.density.cell(2 * m + 1, prec)
