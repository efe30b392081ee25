"""Means and deviations of columns, from one noisy vector of first and second moments."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.learn.base import Estimator, Table
from sfumato.learn.database_pass import NoisyPass, moment_terms
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.tables import Bounds, BoundsLike, Data, Matrix, Vector
from sfumato.learn.transformer import Transformer
from sfumato.sql.emit.lattice_rows import Block

USUAL = 0.3  # mean of x² + x⁴ over columns in [−1, 1]: about its usual size
PRIOR = 0.05  # how much variances differ between columns: noisier ones are drawn towards their mean
LEAST = 0.02  # of the half width: no column is stretched further


@dataclass(frozen=True, eq=False)
class Spreads:
    """Noisy means and deviations of columns in [−1, 1], each kept where it can be."""

    mean: Vector
    deviation: Vector

    def standardise(self, rows: Matrix) -> Matrix:
        return (rows - self.mean) / self.deviation


def measure_spreads(estimator: Estimator, X: Matrix, table: Table, spending: Spending) -> Spreads:
    """From the noisy sums of (x, x², 1), each row clipped to a public norm: quotients of sums are weighted means.

    Clipping scales all of a row, its 1 included, so that long rows weigh less and nothing else changes. Under pure ε
    only the box matters, and no row is clipped.

    Theorem: a row of norm ≤ r moves the sums by r under add/remove, by 2r if replaced [`BoundedRows.sensitivity`]
    """
    d = X.shape[1]
    norm = moments_norm(d, spending)
    rows = estimator.bound_rows(np.column_stack([X, X**2, np.ones(len(X))]), table, norm, 1.0)
    return spreads_of(estimator.noisy_sum(rows, spending), d, spread_noise(d, 1.0, spending))


def spreads_of(sums: Vector, d: int, noise: float) -> Spreads:
    """From released sums of (x, x², 1), each with noise of this deviation: post-processing."""
    size = max(float(sums[-1]), 1.0)
    mean = np.clip(sums[:d] / size, -1, 1)
    variance = np.clip(np.clip(sums[d:-1] / size, 0, 1) - mean**2, 0, 1)
    error = noise / size
    trust = PRIOR**2 / (PRIOR**2 + error**2)
    variance = trust * variance + (1 - trust) * float(variance.mean())
    return Spreads(mean, np.sqrt(np.clip(variance, LEAST**2, 1.0)))


def moments_norm(d: int, spending: Spending) -> float:
    """The norm to which rows (x, x², 1) are clipped: few rows of real tables are longer."""
    return math.sqrt((USUAL if isinstance(spending, GaussianSpending) else 2) * d + 1)


def spread_noise(d: int, n: float, spending: Spending) -> float:
    """The deviation of the noise of a mean, in half widths."""
    if isinstance(spending, GaussianSpending):
        return spending.fold * moments_norm(d, spending) / spending.amount / n
    return (2 * d + 2) / math.sqrt(3) * spending.fold / spending.amount / n


@dataclass(eq=False, kw_only=True, repr=False)
class StandardScaler(Transformer):
    """Columns minus their means, divided by their deviations; `bounds` are public.

    Theorem: the sums of (x, x², 1), rows clipped to norm r, have L2 sensitivity r under add/remove [`measure_spreads`]
    """

    bounds: BoundsLike | None = None

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        Bounds.of(self.bounds, columns, names, "bounds")

    def learn(self, table: Table, spending: Spending) -> None:
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        self.set_spreads(measure_spreads(self, bounds.scale(table.X), table, spending), bounds)

    def database_blocks(self, columns: int) -> tuple[Block, ...]:
        return (Block(moment_terms(columns)),)

    def learn_from_sums(self, found: NoisyPass, table: Table, spending: Spending) -> None:
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        self.set_spreads(spreads_of(found.sums[0][0], table.columns, found.deviations[0]), bounds)

    def set_spreads(self, found: Spreads, bounds: Bounds) -> None:
        self.mean_ = bounds.middle + bounds.half * found.mean
        self.scale_ = bounds.half * found.deviation
        self.var_ = self.scale_**2

    def new_columns(self, rows: Matrix) -> Matrix:
        """Clipped to the bounds (NaN: the middle), then standardised."""
        bounds = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds")
        return (bounds.middle + bounds.half * bounds.scale(rows) - self.mean_) / self.scale_

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        return super().fit(X, None, units=units)

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        return spread_noise(d, float(n), self.spending()), "error of a mean, in half widths of the bounds"
