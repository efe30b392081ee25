"""Gradient descent on exact, clipped, noisy sums of gradients: every step is one additive mechanism.

Each row's gradient is clipped and put on a lattice by `BoundedRows`, the sum is exact, and noise is added to the sum.
A step sees earlier steps through their noisy answers only, so T steps of a T-th of the budget cost the budget.

Theorem: T adaptively chosen steps of μ/√T-GDP are μ-GDP together [Dong, Roth & Su 2022, Cor. 3.3]
Theorem: early stopping acts as a ridge penalty of 1/(rate·steps) [Ali, Kolter & Tibshirani 2019, Thm 1]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.learn.base import Estimator, Table
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.tables import Matrix, Vector


@dataclass(frozen=True)
class Schedule:
    """How many steps, of what length, and what one row may add to the sum of a step. All of it is public."""

    steps: int
    rate: float
    norm: float
    box: float = math.inf

    @property
    def time(self) -> float:
        """Steps times length: how far descent may get."""
        return self.steps * self.rate

    def noise(self, n: float, d: int, spending: Spending) -> float:
        """The length of the noise of all d coefficients at the end, about."""
        if isinstance(spending, GaussianSpending):
            each = self.norm * spending.fold / (spending.amount * n)
        else:
            each = joint_deviation(d) * min(self.box, self.norm) * spending.fold / (spending.amount * n)
            each *= math.sqrt(self.steps)
        return self.time * each * math.sqrt(d)

    def prediction_noise(self, n: float, d: int, spending: Spending) -> float:
        """The variance of a prediction by noise alone, for columns of a usual spread and a constant: later steps undo
        noise of earlier ones where the objective is curved, and averaging iterates lessens it."""
        each = TOGETHER * self.noise(n, d, spending) ** 2 / d
        if not isinstance(spending, GaussianSpending):  # independent noise by the L1 norm may be less than joint noise
            each *= min(1.0, math.sqrt(2 * d) * self.norm / (joint_deviation(d) * min(self.box, self.norm))) ** 2
        return each * ((d - 1) * CURVED * self.remaining(CURVED) + self.remaining(1.0))

    def remaining(self, curvature: float) -> float:
        """What is left of the summed variance of all steps, along a direction of this curvature."""
        ages = np.arange(self.steps)[:, None] - np.arange(self.steps)[None, :]  # of a step's noise, by iterate
        weights = np.where(ages >= 0, (1 - min(self.rate * curvature, 1.0)) ** np.maximum(ages, 0), 0.0)
        later = 2 * np.arange(self.steps) >= self.steps - 1
        return float(np.sum(np.mean(weights[later], axis=0) ** 2)) / self.steps


SHORTEST = 0.5
MOST_STEPS = 60
TOGETHER = 0.5  # of noise: where columns vary together, it is along what hardly varies, and moves predictions less
CURVED = 0.2  # mean of x² of a usual column in [−1, 1]


def kept_part(signal: float, chance: float) -> float:
    """How much of a fit is kept, given the mean square of its predictions and what noise alone would make of that: 0
    where they are alike, so that a fit is hardly worse than the trivial predictor.

    Theorem: the positive part of 1 − noise/|estimate|² [James & Stein 1961; Baranchik 1964]
    """
    return max(0.0, 1.0 - chance / max(signal, 1e-300))


def choose_schedule(
    n: float, d: int, spending: Spending, norm: float, box: float, longest: float, tolerated: float, pace: float = 0.5
) -> Schedule:
    """Descend for as long as noise allows: until the noise of all d coefficients has the length `tolerated`.

    With Gaussian noise the noise of all steps together has the deviation time·norm·fold/(μ·n) on each coefficient,
    however many steps there are; one step is at most `pace` long, unless that takes too many. Under pure ε each of T
    steps has T times the noise, so there are few.
    """
    if isinstance(spending, GaussianSpending):
        each = norm * spending.fold / (spending.amount * n)
        time = max(min(longest, tolerated / (each * math.sqrt(d))), SHORTEST)
        steps = max(1, min(MOST_STEPS, math.ceil(time / pace)))
        return Schedule(steps, time / steps, norm, box)
    each = joint_deviation(d) * min(box, norm) * spending.fold / (spending.amount * n)
    steps = max(1, min(MOST_STEPS, math.floor((tolerated / (each * math.sqrt(d))) ** (2 / 3))))
    time = max(min(longest, tolerated / (each * math.sqrt(d * steps))), SHORTEST)
    return Schedule(steps, time / steps, norm, box)


def joint_deviation(d: int) -> float:
    """Of joint Laplace noise on each of d coordinates, for ε and sizes of 1, nearly."""
    return (d + 1) / math.sqrt(3)


def descend(
    estimator: Estimator, gradients: Callable[[Vector], Matrix], start: Vector, schedule: Schedule,
    table: Table, n: float, spending: Spending, radius: float = math.inf, scaling: Matrix | None = None,
) -> Vector:  # fmt: skip
    """The mean of the later half of the iterates; `gradients(θ)` has a row for each row of the table.

    A released matrix `scaling`, such as an inverse curvature, may take the place of the step's direction.
    """
    theta, kept = start, []
    share = spending.part(1.0 / schedule.steps)
    for step in range(schedule.steps):
        rows = estimator.bound_rows(gradients(theta), table, schedule.norm, schedule.box)
        direction = estimator.noisy_sum(rows, share) / n
        theta = theta - schedule.rate * (direction if scaling is None else scaling @ direction)
        length = float(np.linalg.norm(theta))
        theta = theta * min(1.0, radius / max(length, 1e-300))
        if 2 * step >= schedule.steps - 1:
            kept.append(theta)
    found: Vector = np.mean(kept, axis=0)
    return found
