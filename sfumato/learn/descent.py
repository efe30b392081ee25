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


SHORTEST = 0.5
MOST_STEPS = 60


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
    return np.mean(kept, axis=0)
