"""Means and deviations of columns, from one noisy vector of first and second moments."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.learn.base import Estimator, Table
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.tables import Bounds, BoundsLike, Data, Matrix, Vector
from sfumato.sensitivity import Sensitivity

LEAST = 0.02  # of the half width: no column is stretched further


@dataclass(frozen=True, eq=False)
class Spreads:
    """Noisy means and deviations of columns in [−1, 1], each kept where it can be."""

    mean: Vector
    deviation: Vector

    def standardise(self, rows: Matrix) -> Matrix:
        return (rows - self.mean) / self.deviation


def measure_spreads(estimator: Estimator, X: Matrix, table: Table, n: float, spending: Spending) -> Spreads:
    """From Σ(x, 2x² − 1): both lie in [−1, 1], so their noise is as large as that of a mean of two columns.

    Theorem: x² + (2x² − 1)² ≤ 2 for |x| ≤ 1, so one row has norm at most √(2d) [convexity in x²: maximal at its ends]
    """
    d = X.shape[1]
    rows = estimator.bound_rows(np.column_stack([X, 2 * X**2 - 1]), table, math.sqrt(2 * d), 1.0)
    noisy = estimator.noisy_sum(rows, spending) / n
    mean = np.clip(noisy[:d], -1, 1)
    variance = np.clip((noisy[d:] + 1) / 2, 0, 1) - mean**2
    return Spreads(mean, np.sqrt(np.clip(variance, LEAST**2, 1.0)))


def spread_noise(d: int, n: float, spending: Spending) -> float:
    """The deviation of the noise of a mean, in half widths."""
    size = spending.fold * 1.0
    sensitivity = Sensitivity(l0=2 * d, linf=size, l2=size * math.sqrt(2 * d), relation=spending.relation)
    if isinstance(spending, GaussianSpending):
        return size * math.sqrt(2 * d) / spending.amount / n
    return spending.deviation(sensitivity, 2 * d) / n


@dataclass(eq=False, kw_only=True, repr=False)
class StandardScaler(Estimator):
    """Columns minus their means, divided by their deviations; `bounds` are public.

    Theorem: the moments Σ(x, 2x² − 1) of d columns in [−1, 1] have L2 sensitivity √(2d) under add/remove, twice that
        under replace-one [`measure_spreads`]
    """

    bounds: BoundsLike | None = None

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        Bounds.of(self.bounds, columns, names, "bounds")

    def learn(self, table: Table, spending: Spending) -> None:
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        count, rest = self.count_rows(table, spending)
        found = measure_spreads(self, bounds.scale(table.X), table, count, rest)
        self.mean_ = bounds.middle + bounds.half * found.mean
        self.scale_ = bounds.half * found.deviation
        self.var_ = self.scale_**2

    def transform(self, X: Data) -> Matrix:
        """Clipped to the bounds (NaN: the middle), then standardised."""
        rows = self.new_rows(X)
        bounds = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds")
        return (bounds.middle + bounds.half * bounds.scale(rows) - self.mean_) / self.scale_

    def fit_transform(self, X: Data, y: object = None) -> Matrix:
        return self.fit(X).transform(X)

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        return super().fit(X, None, units=units)

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        return spread_noise(d, float(n), self.spending()), "error of a mean, in half widths of the bounds"
