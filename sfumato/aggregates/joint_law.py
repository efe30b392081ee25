"""Joint noise as a mean over boxes, in each of which its numbers are independent: what intervals are computed from."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.additive.joint_laplace import OneOf
from sfumato.noise.draw_table import Integers
from sfumato.noise.joint_laplace import JointLaplace, level_tail

Floats = NDArray[np.float64]
MISSED = 1e-5  # the chance of boxes that are left out, as if what they hold were never within an interval
MOST = 256  # boxes; of more levels, several are taken as one
BATCH = 32
BITS = 64


@dataclass(frozen=True, eq=False)
class Boxes:
    """Box i has chances[i] and |zⱼ| ≤ sides[i, j]. In truth each zⱼ may be `spare` steps farther out.

    Theorem: if levels a < R ≤ b are all taken as b, what is found for P(|Σcⱼzⱼ| ≤ m) is at most P(|Σcⱼzⱼ| ≤ m + Σ|cⱼ|)
      [docs/theorems/joint.md, Theorem 5, by Birnbaum 1948]
    """

    chances: Floats
    sides: Floats  # whole numbers
    spare: int = 0

    @staticmethod
    @lru_cache(maxsize=64)
    def of(joint: JointLaplace) -> "Boxes":
        highest = 1
        while float(level_tail(joint, highest, BITS)) > MISSED:
            highest = highest * 5 // 4 + 1
        if highest < MOST:
            levels = np.arange(highest + 1)
            chances = level_probabilities(joint, levels) * (1 - MISSED)
        else:
            levels = np.arange(1, MOST + 1) * highest // MOST
            above = np.array([1.0, *(float(level_tail(joint, int(r), BITS)) for r in levels)])
            chances = np.maximum(-np.diff(above), 0.0)
        sides = np.array([[joint.side(j, int(r)) for j in range(len(joint.sizes))] for r in levels], float)
        return Boxes(chances, sides, int(highest >= MOST))

    def batches(self) -> Iterator[tuple[Floats, Floats]]:
        """Slices of boxes, small enough for their cells to stay in the processor's cache."""
        for start in range(0, len(self.chances), BATCH):
            yield self.chances[start : start + BATCH], self.sides[start : start + BATCH]


def level_probabilities(joint: JointLaplace, levels: Integers) -> Floats:
    """P(R) for all R but a few: as many as its box has points, each with its weight, times e^{−λεR/M}."""
    logs = -float(joint.level.rate) * levels
    for j in range(len(joint.sizes)):
        n: Floats = np.floor(levels * float(joint.sizes[j]) / joint.levels)
        logs += np.log(geometric_weight(n, float(joint.slopes[j])) if j in joint.slopes else 2 * n + 1)
    found: Floats = np.exp(logs - logs.max())
    return np.asarray(found / found.sum())


def deviation_of(one: OneOf) -> float:
    """Not much below the standard deviation: λε·R/M is nearly a Gamma variable of at most d + 1, and z in its box."""
    law, parts = one.joint.law, len(one.joint.law.level.sizes)
    return float(law.sizes[one.place] / law.common) * math.sqrt((parts + 2) * (parts + 3) / 3) + 0.5


def cumulative_in_boxes(one: OneOf, k: Floats, sides: Floats) -> Floats:
    """P(z ≤ k) in each box; one row for each box."""
    slope, side = one.joint.law.slopes.get(one.place), sides[:, one.place, None]
    k = np.clip(k, -side - 1, side)
    found: Floats = (k + side + 1) / (2 * side + 1)
    if slope is not None:
        rate, outer = float(slope), np.where(k < 0, -k, k + 1)  # the first integer on the far side of k
        tail = np.exp(-outer * rate) * -np.expm1((outer - side - 1) * rate) / geometric_weight(side, rate)
        found = np.where(k < 0, tail, 1 - tail)
    return found


def geometric_weight(n: Floats, rate: float) -> Floats:
    """(1 − r)·Σ r^|k| over |k| ≤ n, r = e^−rate: (1 − r^{n+1}) + r(1 − rⁿ)."""
    found: Floats = -np.expm1(-(n + 1) * rate) - np.exp(-rate) * np.expm1(-n * rate)
    return found
