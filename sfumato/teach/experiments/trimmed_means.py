"""Trimmed means of normal numbers in a generous range: how much noise and trimming add to the error of the sample.

Bun & Steinke 2019 compare at ρ = ½ of zCDP, one person replaced. Each way has its own best trimming and smoothness.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.mechanisms.dependent.calibration import for_zcdp
from sfumato.mechanisms.dependent.fixed_n import Kept
from sfumato.mechanisms.dependent.ladder import Ladder
from sfumato.sensitivity import ReplaceOne

RHO, FAR, STEP = 0.5, 50.0, 2.0**-20
TRIMS = {101: (8, 10, 12, 15, 20, 25, 30, 40), 501: (10, 15, 20, 30, 40, 60, 80), 2001: (15, 20, 30, 50, 70, 100, 140)}
RATES = (0.05, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35)


@dataclass(frozen=True)
class Excess:
    """E(answer − mean)² less 1/n, the error of the sample itself; with its trimming and smoothness."""

    size: float
    trim: int
    rate: float


@dataclass(frozen=True)
class Compared:
    """Errors of ours, of the published formula, and of Gaussian noise at the local sensitivity (not private)."""

    n: int
    ours: Excess
    published: Excess
    alike: Excess  # published, with our trimming
    local: Excess

    @property
    def ratio(self) -> float:
        """The excess of the published noise, divided by ours."""
        return self.published.size / self.ours.size

    @property
    def most(self) -> float:
        """No noise that has the variance of a Gaussian at its scale could do better."""
        return self.published.size / self.local.size

    @property
    def worst_case(self) -> float:
        """Excess of the plain mean with Gaussian noise at its global sensitivity, 2·FAR/n."""
        return (2 * FAR / self.n) ** 2 / (2 * RHO)


def compare_trimmed_means(
    n: int, sets: int, trims: Sequence[int] = (), rates: Sequence[float] = RATES, steps: int = 16
) -> Compared:
    """Compare each with its best parameters on the same data sets; `rates` and `steps` are those tried for ours.

    For normal numbers the sample's mean x̄ is independent of T − x̄ (Basu), so T errs by 1/n and E(T − x̄)² = `cut`. Ours:
    the certified noise of least variance, at the scale of a rung. Published: Laplace log-normal noise at S itself.
    """
    every = np.sort(np.random.default_rng(n).normal(size=(10 * sets, n)), axis=1)
    rows = every[:sets]
    ours, theirs, local = [], [], []
    for trim in trims or TRIMS.get(n) or sorted({n // 12, n // 8, n // 5}):
        statistic = Kept.trimmed(n, trim, -FAR, FAR, STEP)
        cut = float(np.mean((every[:, trim : n - trim].mean(axis=1) - every.mean(axis=1)) ** 2))
        here = float(np.mean([float(statistic.local(row)) ** 2 for row in rows]))
        local.append(Excess(cut + here / (2 * RHO), trim, 0.0))
        for rate in RATES:
            smooth = np.array([statistic.smooth(row, rate) for row in rows])
            theirs.append(Excess(cut + published_variance(rate) * float(np.mean(smooth**2)), trim, rate))
            if rate in rates:
                ladder = Ladder(rate, statistic.everywhere, Fraction(STEP), steps)
                rungs = np.array([ladder.near[ladder.least(float(s))] for s in smooth])
                variance = for_zcdp(RHO, rate, steps, ReplaceOne).variance
                ours.append(Excess(cut + variance * float(np.mean(rungs**2)), trim, rate))
    first = least(ours)
    return Compared(n, first, least(theirs), least([one for one in theirs if one.trim == first.trim]), least(local))


def least(found: Sequence[Excess]) -> Excess:
    """The way with the least excess."""
    return min(found, key=lambda one: one.size)


def published_variance(rate: float) -> float:
    """The least variance of Laplace log-normal noise at S = 1 for ρ = ½(t/σ + e^{3σ²/2}s)²: Var = 2e^{2σ²}/s²."""
    sigmas = np.linspace(rate * 1.001, 3.0, 4000)
    shift = (math.sqrt(2 * RHO) - rate / sigmas) * np.exp(-1.5 * sigmas**2)
    return float(np.min(np.where(shift > 0, 2 * np.exp(2 * sigmas**2) / np.maximum(shift, 1e-300) ** 2, math.inf)))
