"""The error of combined noise: of a sum of independent noises, and of a noisy sum over a noisy count."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from sfumato.loss.numeric import TINY, ULP, Floats, floats
from sfumato.noise.balls import ball, precision
from sfumato.noise.monotone import TailedLaw

CELLS = 8192  # on each side of 0; where one noise reaches further, cells are wider
PREC = 192
LOST = 1e-16  # of the misses may lie beyond the cells, for each noise; they count as missed
STEEPEST = 600.0  # logarithms stay below it
SLACK = 1e-11
NEAR = 1e-9  # relative: where the search for the least error ends


@dataclass(frozen=True)
class NoiseCells:
    """J = the noise in cells of an odd width h, numbered from 0: P(J = j) for |j| ≤ R, and what is outside."""

    width: int
    chances: Floats
    outside: float

    @property
    def reach(self) -> int:
        """R."""
        return self.chances.size // 2

    @staticmethod
    def of(law: TailedLaw, outside: float) -> "NoiseCells":
        """By balls: each chance is within 2 units in the last place, and no tail is below the true one."""
        last = _reach(law, outside)
        h = -(-last // CELLS) | 1
        with precision(PREC):
            ends = [law.beyond(h * j + (h - 1) // 2, PREC) for j in range(max(1, -(-last // h)) + 1)]
            right = np.array([float((a - b) / 2) for a, b in pairwise(ends)])
            middle = float(1 - ends[0])
            return NoiseCells(h, np.concatenate([right[::-1], [middle], right]), float(ends[-1].upper()))


def sum_radius(law: TailedLaw, terms: int, miss: float) -> int:
    """A t with P(|N₁ + … + N_m| > t) ≤ miss: the least if no noise reaches beyond 8192, up to 1e-16·miss.

    Each noise is put into cells of h numbers, so that the sum is off by at most m(h−1)/2: t is at most (m+1)(h−1) above
    the least, and exactly it for h = 1, unless the chance there is within 1e-9 of the miss, relatively. Chances
    are tilted by e^{θj}, θ where Chernoff's bound is best, then transformed, raised and transformed back: the roundings
    are then a share of a number that is not much more than the miss. By Higham (2002, section 24.1) a transform of
    length L is off by less than 8·log₂L units in the last place of its size (the root of the sum of squares), and so is
    the law of the sum, (m+1)-fold; by Cauchy's inequality, a tail Σ e^{−θ(x−t)}·law by 1/√(1 − e^{−2θ}) times that.

    Where `beyond` is only known to be not too small, a heavier law is summed. It is symmetric and falls away from 0, as
    all noise here does, and then P(|K + Z| ≤ t) falls with |K|: heavier tails of K are heavier tails of the sum.

    Theorem: convolutions of laws that are symmetric and fall away from 0 are, too [Wintner 1938]
    Theorem: for such Z, P(|k + Z| ≤ t) falls with |k| [Anderson 1955]
    """
    cells = NoiseCells.of(law, LOST * miss / terms)
    j = floats(np.arange(-cells.reach, cells.reach + 1))
    theta, growth = _tilt(cells.chances, j, terms, miss)
    tilted = cells.chances * np.exp(theta * j - growth)
    size = 1 << (2 * cells.reach * terms).bit_length()
    law_of_sum = np.fft.irfft(_power(np.fft.rfft(tilted, size), terms), size)[
        cells.reach * terms : 2 * cells.reach * terms + 1
    ]
    x = np.arange(law_of_sum.size)
    chance = np.maximum(law_of_sum, 0.0) * np.exp(terms * growth - theta * x)
    beyond = np.cumsum(chance[::-1])[::-1][1:]  # P(ΣJ > i), i = 0, 1, …
    off = 16 * (terms + 1) * ULP * math.log2(size) * float(np.linalg.norm(tilted)) / math.sqrt(-math.expm1(-2 * theta))
    missed = 2 * (beyond * (1 + 1e-11) + off * np.exp(terms * growth - theta * x[1:])) + terms * cells.outside + TINY
    return cells.width * int(np.count_nonzero(missed > miss)) + terms * (cells.width - 1) // 2


def _tilt(chances: Floats, j: Floats, terms: int, miss: float) -> tuple[float, float]:
    """θ and g = log E e^{θJ}, where (m·g + log 2/miss)/θ is least, roughly: any θ would give true bounds."""
    best = (math.inf, 0.0, 0.0)
    for theta in np.geomspace(1e-3 / j[-1], STEEPEST / j[-1], 64).tolist():
        growth = math.log(float(np.sum(chances * np.exp(theta * j))))
        if terms * growth < STEEPEST:
            best = min(best, ((terms * growth + math.log(2 / miss)) / theta, theta, growth))
    return best[1:]


def _power(x: np.ndarray, n: int) -> np.ndarray:
    """xⁿ by repeated squares."""
    found = np.ones_like(x)
    while n:
        if n & 1:
            found = found * x
        x, n = x * x, n >> 1
    return found


def _reach(law: TailedLaw, chance: float) -> int:
    """Some m with P(|K| > m) ≤ chance, at most a 32nd above the least one."""
    with precision(PREC):
        goal = ball(Fraction(chance))
        low, high = 0, 1
        while not law.beyond(high, PREC) <= goal:
            low, high = high, 2 * high
        while high - low > max(1, low // 32):
            middle = (low + high) // 2
            low, high = (low, middle) if law.beyond(middle, PREC) <= goal else (middle, high)
        return high


@dataclass(frozen=True)
class NoisyMean:
    """R = (n·u + Y)/(n + Z), put into [−below, above], for a mean u of n values in it, all in steps; below ≤ above.

    Z is `count_law` times `count_step`.
    """

    sum_law: TailedLaw
    count_law: TailedLaw
    count_step: float
    below: int
    above: int
    people: int
    miss: float

    @cached_property
    def counts(self) -> tuple[Floats, Floats, Floats, float]:
        """Cells of Z: left ends, right ends, chances, and what is missed: it is outside, or n + Z < 1."""
        cells = NoiseCells.of(self.count_law, LOST * self.miss)
        middles = np.arange(-cells.reach, cells.reach + 1.0) * cells.width
        half = (cells.width - 1) / 2
        left, right = (middles - half) * self.count_step, (middles + half) * self.count_step
        good = self.people + left >= 1
        lost = float(cells.chances[~good].sum()) + cells.outside
        return left[good], right[good], cells.chances[good], lost

    @cached_property
    def tails(self) -> tuple[Floats, Floats]:
        """Edges of cells of Y + U, U uniform on [−½, ½], from 0 on, and the chance that it passes each."""
        cells = NoiseCells.of(self.sum_law, LOST * self.miss)
        right = cells.chances[cells.reach + 1 :]
        beyond = np.cumsum(np.append(right, cells.outside / 2)[::-1])[::-1]
        edges = (np.arange(beyond.size) + 0.5) * cells.width
        return np.concatenate([[0.0], edges]), np.concatenate([[0.5], beyond])

    def passes(self, y: Floats) -> Floats:
        """P(Y + U > y), never below.

        The density of Y + U falls away from 0. So this is convex for y > 0, and a chord between edges is above it; for
        y < 0 it is 1 − P(Y + U > −y), of which the next edge further away is below.
        """
        edges, beyond = self.tails
        right = np.interp(y, edges, beyond)
        at = np.searchsorted(edges, -y)
        left = 1 - np.where(at < edges.size, beyond[np.minimum(at, edges.size - 1)], 0.0) * (1 - SLACK)
        return floats(np.where(y >= 0, right, left) * (1 + SLACK))

    def miss_probability(self, t: float) -> float:
        """P(|R − u| > t) for the worst u; never below.

        Proof. If n + Z < 1 it counts as missed. Else R − u > t if u + t < above and Y − Zu > (n + Z)t; R − u < −t if
        u − t > −below and Y − Zu < −(n + Z)t. As Y is whole, Y > y implies Y + U > y − ½, so Y + U and (n + Z)t − ½ may
        be put instead; Y + U is symmetric and has a density that falls away from 0. Where both can happen, |Y + U − Zu|
        is larger, the larger |u|: the worst u is next to above − t. Where only the second can, u is from
        max(below − t, t − above) to above, and Z(u − t) is largest at an end; where only the first can, −u is. Cells of
        Z are read where they miss most. A heavier law of Z, where only that is known, misses more: it is symmetric, and
        Z and −Z together miss more, the larger |Z|.

        Theorem: P(|k + Z| ≤ t) falls with |k| if Z is symmetric and falls away from 0 [Anderson 1955]
        """
        if t >= self.below + self.above:
            return 0.0
        left, right, chances, lost = self.counts
        near = self.people * t - 0.5
        slip = SLACK * (
            self.people * t + (np.abs(left) + np.abs(right)) * self.above + 1
        )  # more than roundings of what follows
        both = 0.0
        if 2 * t < self.below + self.above:
            u = self.above - t
            far = np.maximum(left * (u - t), right * (u - t))
            chance = self.passes(near + left * self.above - slip) + self.passes(near - far - slip)
            both = float(np.sum(chances * np.minimum(chance, 1.0)))
        low = max(self.below - t, t - self.above)
        far = np.max([z * (u - t) for z in (left, right) for u in (low, self.above)], axis=0)
        one = float(np.sum(chances * self.passes(near - far - slip)))
        return max(both, one) * (1 + SLACK) + lost

    def radius(self) -> float:
        """A t with P(|R − u| > t) ≤ miss whatever u is."""
        low, high = 0.0, float(self.below + self.above)
        if not high or self.miss_probability(0.0) <= self.miss:
            return 0.0
        while high - low > NEAR * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.miss_probability(middle) <= self.miss else (middle, high)
        return high
