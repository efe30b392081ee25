"""Continuous noise seen through a lattice: the cell in which a real-valued draw falls, drawn without the draw."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from sfumato.noise.balls import Ball, precision
from sfumato.noise.monotone import BETWEEN, BOTH_SIDES, PREC, Floats, MonotoneLaw

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
    def scaled(self, factor: int) -> "Density":
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


def _halves(law: "Rounded | Floored", start: int, distance: int) -> bool:
    """`MonotoneLaw.halves`. Cells of a log-concave density are log-concave (Prékopa 1973)."""
    if (enough := law.density.halving()) is not None:
        return distance >= enough
    with precision(PREC):
        return bool(2 * law.weight(start + distance, PREC) <= law.weight(start, PREC))


@dataclass(frozen=True)
class Rounded(MonotoneLaw):
    """round(N) for continuous noise N: P(k) is the mass of [k − ½, k + ½].

    Rounding is post-processing: for integer v, v + round(N) = round(v + N) is as private as v + N.
    """

    density: Density
    sides = BOTH_SIDES

    @property
    def spread(self) -> Fraction:
        return self.density.spread

    @property
    def reach(self) -> float:
        return self.density.reach

    def weight(self, m: int, prec: int) -> Ball:
        return self.density.cell(2 * m, prec) if m else 2 * self.density.mass(Fraction(0), HALF, prec)

    def curve(self, m: int, prec: int) -> Ball:
        return self.density.cell(2 * m, prec)

    def beyond(self, m: int, prec: int) -> Ball:
        """|round(N)| > m where |N| > m + ½."""
        return self.density.beyond(m + HALF, prec)

    def bend(self, edge: Floats, width: int) -> Floats | None:
        return self.density.bend(edge, width)

    def flat(self, j: int, width: int) -> tuple[int, int] | None:
        return self.density.flat(j, width, -1)

    def halves(self, start: int, distance: int) -> bool:
        return _halves(self, start, distance)


@dataclass(frozen=True)
class Floored(MonotoneLaw):
    """⌊N⌋ for continuous noise N: P(k) is the mass of [k, k + 1], symmetric about −½."""

    density: Density
    sides = BETWEEN

    @property
    def spread(self) -> Fraction:
        return self.density.spread

    @property
    def reach(self) -> float:
        return self.density.reach

    def weight(self, m: int, prec: int) -> Ball:
        return self.density.cell(2 * m + 1, prec)

    def bend(self, edge: Floats, width: int) -> Floats | None:
        return self.density.bend(edge, width)

    def flat(self, j: int, width: int) -> tuple[int, int] | None:
        return self.density.flat(j, width, 0)

    def halves(self, start: int, distance: int) -> bool:
        return _halves(self, start, distance)
