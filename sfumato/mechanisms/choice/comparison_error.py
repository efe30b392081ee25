"""The probability that noise crosses a noisy level: the errors of report-noisy-max and above-threshold, from above."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfumato.loss.numeric import Floats, floats
from sfumato.noise import DiscreteLaplace

CELLS = 1024  # per scale of the level, where it is not summed number by number
BEYOND = 32  # e⁻³² of the allowed misses lie outside of the sum, and count as missed
SLACK = 1e-11  # relative: more than a thousand roundings, sixteen units each, of numbers whose logarithm is below 100


class Sides(NamedTuple):
    """For each cell of the level: its probability, and log P of a draw that stays below, or above, as it should."""

    mass: Floats
    below: Floats
    above: Floats


@dataclass(frozen=True)
class Contest:
    """A level ρ, drawn once, and fresh draws ν: `low` of them should stay below ρ + gap, `high` of them reach ρ − gap.

    With F the distribution function of ν, and given ρ = x, a draw of the first kind is right with probability
    a = F(x + gap − 1), of the second with b = F(gap − x), and all with a^low·b^high; what is missed is a sum over x of
    positive terms. The level is cut into cells of h numbers, h = 1 up to a scale of 2047, and a is read at the left end
    of a cell, b at the right one. So nothing is understated, and as a(left; gap) ≥ a(x; gap − h + 1), b alike, no more
    is missed than at gap − h + 1: a gap found here is less than h + h/16 < scale/900 above the least one.
    """

    level: DiscreteLaplace
    fresh: DiscreteLaplace
    miss: float  # the allowed probability of a miss

    @cached_property
    def width(self) -> int:
        """h."""
        return max(1, int(self.level.spread) // CELLS)

    @cached_property
    def rate(self) -> float:
        """By how much the logarithm of the level's probabilities falls from cell to cell."""
        return float(self.width / self.level.spread)

    @cached_property
    def cells(self) -> int:
        """How many on each side are summed."""
        return 1 + math.ceil((BEYOND - math.log(self.miss)) / self.rate)

    def sides(self, gap: int) -> Sides:
        """The cells [hq, hq + h − 1]: for q ≥ 0 of probability (r^{hq} − r^{hq+h})/(1 + r), r = e^{−1/scale}."""
        r, q = math.exp(-1 / self.level.spread), np.arange(-self.cells, self.cells)
        one = -math.expm1(-self.rate) / (1 + r)
        mass = one * np.where(q >= 0, 1.0, r) * np.exp(-self.rate * np.where(q >= 0, q, -1 - q))
        left = q.astype(np.float64) * self.width
        return Sides(floats(mass), self._inside(left + (gap - 1)), self._inside(gap - (left + (self.width - 1))))

    def _inside(self, t: Floats) -> Floats:
        """log P(ν ≤ t)."""
        rate = float(1 / self.fresh.spread)
        share = 1 + math.exp(-rate)
        beyond = np.exp(-rate * np.maximum(t + 1, 0.0)) / share
        return floats(
            np.where(t >= 0, np.log1p(-np.where(t >= 0, beyond, 0.0)), rate * np.minimum(t, 0.0) - math.log(share))
        )

    def miss_probability(self, sides: Sides, low: int, high: int) -> float:
        """P(not all are right); never below."""
        wrong = -np.expm1(low * sides.below + high * sides.above)
        return min(float(np.sum(sides.mass * wrong)) * (1 + SLACK) + 2 * math.exp(-self.rate * self.cells), 1.0)

    def missed_most(self, gap: int, draws: int, most_high: int) -> float:
        """The largest chance for any `high` ≤ most_high of so many draws; never below.

        Σ p·a^{m−j}b^j is a sum of exponentials in j, hence convex, and what is missed is concave: it is largest where
        its slope changes its sign. Where the sign is in doubt, the tangent still bounds all that is beyond.
        """
        sides, top = self.sides(gap), min(most_high, draws)

        def slope(j: int) -> tuple[float, float]:
            """miss_probability(j + 1) − miss_probability(j) = Σ p·a^{m−j}b^j·(1 − b/a), and how far it may be off."""
            terms = np.exp((draws - j) * sides.below + j * sides.above) * -np.expm1(sides.above - sides.below)
            terms *= sides.mass
            return float(np.sum(terms)), SLACK * float(np.sum(np.abs(terms)))

        low, high = 0, top
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if slope(middle)[0] > 0 else (low, middle)
        found = self.miss_probability(sides, draws - low, low)
        if low < top:
            rise, doubt = slope(low)
            found += (top - low) * max(rise + doubt, 0.0)
        if low > 0:
            rise, doubt = slope(low - 1)
            found += low * max(doubt - rise, 0.0)
        return min(found, 1.0)


def least_gap(contest: Contest, missed: Callable[[int], float]) -> int:
    """The least gap ≥ 1 at which no more is missed than is allowed, or a sixteenth of a cell more.

    Exactly the least one where h = 1, unless what is missed there is within 1e-11 of the miss, relatively.
    """
    low, high = 0, max(1, int(max(contest.level.spread, contest.fresh.spread)))
    while missed(high) > contest.miss:
        low, high = high, 2 * high
    while high - low > max(1, contest.width // 16):
        middle = (low + high) // 2
        low, high = (low, middle) if missed(middle) <= contest.miss else (middle, high)
    return high
