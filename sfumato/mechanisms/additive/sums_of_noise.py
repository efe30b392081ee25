"""The radius of a sum of independent noises, which is less than the sum of their radii."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from sfumato.loss.numeric import TINY, ULP, Floats, floats
from sfumato.noise.balls import ball, precision
from sfumato.noise.monotone import TailedLaw

CELLS = 8192  # on each side of 0; where one noise reaches further, cells are wider
PREC = 192
LOST = 1e-16  # of the misses may lie beyond the cells, for each noise; they count as missed
STEEPEST = 600.0  # logarithms stay below it


@dataclass(frozen=True)
class Cells:
    """J = the noise in cells of an odd width h, numbered from 0: P(J = j) for |j| ≤ R, and what is outside."""

    width: int
    chances: Floats
    outside: float

    @property
    def reach(self) -> int:
        """R."""
        return self.chances.size // 2

    @staticmethod
    def of(law: TailedLaw, outside: float) -> "Cells":
        """By balls: each chance is within 2 units in the last place, and no tail is below the true one."""
        last = _reach(law, outside)
        h = -(-last // CELLS) | 1
        with precision(PREC):
            ends = [law.beyond(h * j + (h - 1) // 2, PREC) for j in range(max(1, -(-last // h)) + 1)]
            right = np.array([float((a - b) / 2) for a, b in pairwise(ends)])
            middle = float(1 - ends[0])
            return Cells(h, np.concatenate([right[::-1], [middle], right]), float(ends[-1].upper()))


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
    cells = Cells.of(law, LOST * miss / terms)
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
