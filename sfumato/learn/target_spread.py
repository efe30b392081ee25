"""How targets lie, from one noisy vector of moments: the trivial predictor, and how much noise a fit may have.

Bounds that hold for everybody are often far wider than what most people have (visits to a doctor: up to 77, most below
10). A fit starts at the mean, as it would stay there if nothing else could be told from noise, and stops where noise is
as large as such a spread bears.
"""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.learn.base import Estimator, Table
from sfumato.learn.forest import vote_noise
from sfumato.learn.spending import Spending
from sfumato.learn.tables import Vector

SHARE = 0.03  # of the budget
KNOWN = 0.05  # error of a mean, in half widths, above which it is of no use: the middle of the bounds takes its place
USUAL = 0.45  # deviation of a target in [−1, 1] for which constants of estimators are meant


@dataclass(frozen=True)
class TargetSpread:
    """Mean and deviation of targets in [−1, 1]; 0 and 1 where they are not known. Released, so free to use."""

    mean: float
    deviation: float

    @property
    def bearable(self) -> float:
        """How much noise a fit may have, as a part of what it may have for a usual spread."""
        return min(1.0, self.deviation / USUAL)


def measure_target(
    estimator: Estimator, y: Vector, table: Table, spending: Spending
) -> tuple[float, TargetSpread, Spending]:
    """How many rows there are, nearly; the spread of targets in [−1, 1]; and what is left to spend.

    Theorem: a row moves the sums of (y, y², 1) by at most √3 under add/remove, by twice that if replaced
        [`BoundedRows.sensitivity`]
    """
    share, public = spending.part(SHARE), estimator.count_share(table) == 0
    if public and vote_noise(share) > KNOWN * max(len(table), 1):
        return float(max(len(table), 1)), TargetSpread(0.0, 1.0), spending
    parts = np.column_stack([y, y**2, *([] if public else [np.ones(len(y))])])
    rows = estimator.bound_rows(parts, table, math.sqrt(parts.shape[1]), 1.0)
    sums, noise = estimator.noisy_sum(rows, share), estimator.noise_of(rows, share)
    count = max(float(len(table)) if public else float(sums[-1]), 1.0)
    mean, error = float(np.clip(sums[0] / count, -1.0, 1.0)), noise / count
    if error > KNOWN:
        return count, TargetSpread(0.0, 1.0), spending.part(1 - SHARE)
    variance = float(np.clip(sums[1] / count, 0.0, 1.0)) - mean**2
    most = max(variance, 0.0) + error * math.sqrt(1 + 4 * mean**2)
    return count, TargetSpread(mean, math.sqrt(min(most, 1.0))), spending.part(1 - SHARE)
