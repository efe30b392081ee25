"""How targets lie, from a few noisy vectors of moments: the trivial predictor, and how much noise a fit may have.

Bounds that hold for everybody are often far wider than what most people have (visits to a doctor: up to 77, most below
10). A fit starts at the mean, as it would stay there if nothing else could be told from noise, and stops where noise is
as large as such a spread bears. Where that is more than all there is to tell, the mean is the fit.
"""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.learn.base import Estimator, Table
from sfumato.learn.forest import vote_noise
from sfumato.learn.spending import Spending
from sfumato.learn.tables import Vector

LOOKS = (0.03, 0.12, 0.48)  # of the budget; each is taken only if the one before was too noisy for a small spread
USELESS = 0.3  # error of a mean, in half widths, above which a look is not worth its price
KNOWN = 0.15  # error of a mean, in half widths, that a usual spread bears
EXACT = 0.1  # error of a mean, in deviations of the target, that costs a hundredth of its variance
USUAL = 0.45  # deviation of a target in [−1, 1] for which constants of estimators are meant
WIDE = 0.3  # deviation of targets of which a fit finds the mean by itself
WIDER = 1.25  # deviation of normal numbers over their mean distance from the middle
COUNTED = 1.0  # deviations of noise that the number of rows must have, or nothing but a mean is worth its price


@dataclass(frozen=True)
class TargetSpread:
    """Mean and deviation of targets in [−1, 1]; 0 and 1 where they are not known. Released, so free to use."""

    mean: float
    deviation: float
    error: float = math.inf  # of the mean, by noise
    least: float = 0.0  # of the deviation, less noise

    @property
    def bearable(self) -> float:
        """How much noise a fit may have, as a part of what it may have for a usual spread."""
        return min(1.0, self.deviation / USUAL)

    @property
    def settled(self) -> bool:
        """Is the mean as exact as it need be, or the spread so wide that a fit finds the mean by itself?"""
        return self.error <= EXACT * self.deviation or (self.least >= WIDE and self.error <= KNOWN)

    @property
    def start(self) -> float:
        """Where a fit starts: the mean, no farther from the middle of the bounds than it is known."""
        return self.mean * max(0.0, 1.0 - (self.error / max(abs(self.mean), 1e-300)) ** 2)


@dataclass(frozen=True, eq=False)
class Target:
    """Private targets in [−1, 1], and what has been released of them: how many rows, nearly, and their spread."""

    estimator: Estimator
    y: Vector
    table: Table
    spending: Spending  # what is left
    count: float
    spread: TargetSpread
    counted: bool = True  # is the number of rows known at all?

    @staticmethod
    def measure(estimator: Estimator, y: Vector, table: Table, spending: Spending) -> "Target":
        """Look as often as a small spread demands, for up to 63 % of the budget; 3 % or nothing are usual.

        Theorem: shares of a budget that are chosen by earlier answers cost the budget [`Spending.part`]
        """
        public = estimator.count_share(table) == 0
        found = Target(estimator, y, table, spending, float(max(len(table), 1)), TargetSpread(0.0, 1.0), public)
        spent = 0.0
        for share in LOOKS:
            part = spending.part(share)
            if public and vote_noise(part) > USELESS * found.count:
                continue
            if share == LOOKS[-1] and found.spread.deviation >= USUAL:
                break  # dear, and nothing says that targets vary little
            found, spent = found.look(part, spending.part(1 - spent - share)), spent + share
            if found.spread.settled or not found.counted:
                break
        return found

    def look(self, part: Spending, rest: Spending) -> "Target":
        """The sums of (z, z², 1), z the distance from the mean that is known so far; of (z, z²) if rows are public.
        Once a mean is known, |z| takes the place of z², whose noise would hide a spread below its root.

        Theorem: a row moves them by at most √3 under add/remove, by twice that if replaced [`BoundedRows.sensitivity`]
        """
        public, known = self.estimator.count_share(self.table) == 0, self.spread.error < USELESS
        centre = self.spread.mean if known else 0.0
        width = 1 + abs(centre)
        z = (self.y - centre) / width
        parts = np.column_stack([z, np.abs(z) if known else z**2, *([] if public else [np.ones(len(z))])])
        rows = self.estimator.bound_rows(parts, self.table, math.sqrt(parts.shape[1]), 1.0)
        sums, noise = self.estimator.noisy_sum(rows, part), self.estimator.noise_of(rows, part)
        count = self.count if public else max(float(sums[-1]), 1.0)
        away, size = float(np.clip(sums[0] / count, -1.0, 1.0)), float(np.clip(sums[1] / count, 0.0, 1.0))
        error = noise / count
        most, least = WIDER * (size + error), WIDER * (size - error)
        if not known:
            variance, doubt = max(size - away**2, 0.0), error * math.sqrt(1 + 4 * away**2)
            most, least = math.sqrt(variance + doubt), math.sqrt(max(variance - doubt, 0.0))
        mean = float(np.clip(centre + width * away, -1.0, 1.0))
        spread = TargetSpread(mean, min(width * most, 1.0), width * error * math.sqrt(1 + away**2), width * least)
        return Target(self.estimator, self.y, self.table, rest, count, spread, public or count > COUNTED * noise)

    def mean_alone(self) -> float:
        """The trivial predictor, for all that is left."""
        return self.look(self.spending, self.spending).spread.start
