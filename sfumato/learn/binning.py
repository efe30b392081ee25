"""Quantiles of columns from noisy histograms: edges of bins, thresholds for trees."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato import checks
from sfumato.learn.base import Estimator, Table
from sfumato.learn.database_pass import NoisyPass
from sfumato.learn.spending import Spending
from sfumato.learn.tables import Bounds, BoundsLike, Data, Matrix, Vector
from sfumato.learn.transformer import Transformer
from sfumato.sql.emit.lattice_rows import Block, ByBin

CELLS = 64


def measure_quantiles(estimator: Estimator, X: Matrix, table: Table, count: int, spending: Spending) -> Matrix:
    """`count` inner quantiles of each column in [−1, 1], from a histogram of 64 cells with noise.

    Noisy counts are summed up to a distribution function, which is made to rise (isotonic, from both ends).

    Theorem: a row is in one cell of each of d histograms, so it moves them by √d in L2 and by d in L1 norm
        [Dwork & Roth 2014, section 3.3]
    """
    d = X.shape[1]
    places = np.clip(((X + 1) / 2 * CELLS).astype(np.int64), 0, CELLS - 1)
    found = np.zeros((d, count))
    share = spending.part(1 / d)
    for j in range(d):
        counts = estimator.noisy_sum_by_class(
            estimator.bound_rows(np.ones((len(X), 1)), table, 1.0), places[:, j], CELLS, share
        )[:, 0]
        found[j] = quantiles_of(counts, count)
    return found


def quantiles_of(counts: Vector, count: int) -> Vector:
    """`count` inner quantiles of a column in [−1, 1], from noisy counts of cells of equal width: post-processing."""
    edges = np.linspace(-1, 1, len(counts) + 1)
    rising = np.maximum.accumulate(np.cumsum(counts))
    falling = np.minimum.accumulate(np.cumsum(counts)[::-1])[::-1]
    total = np.maximum((rising + falling) / 2, 0.0)
    shares = np.concatenate([[0.0], total / max(float(total[-1]), 1.0)])
    found = np.interp(np.arange(1, count + 1) / (count + 1), shares + 1e-12 * np.arange(len(shares)), edges)
    return np.clip(found, -1 + 1e-9, 1 - 1e-9)


@dataclass(eq=False, kw_only=True, repr=False)
class QuantileBinner(Transformer):
    """Columns as bins of about equally many rows; `bounds` are public, the edges are noisy quantiles.

    Theorem: d histograms, each of L2 and L1 sensitivity 1 under add/remove, compose [`measure_quantiles`]
    """

    bounds: BoundsLike | None = None
    bins: int = 8

    def check_params(self) -> None:
        super().check_params()
        checks.whole("bins", self.bins, 2, CELLS)

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        Bounds.of(self.bounds, columns, names, "bounds")

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        return super().fit(X, None, units=units)

    def learn(self, table: Table, spending: Spending) -> None:
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        self.set_edges(measure_quantiles(self, bounds.scale(table.X), table, self.bins - 1, spending), bounds)

    def database_blocks(self, columns: int) -> tuple[Block, ...]:
        return tuple(Block(((0, 0),), ByBin(j, CELLS), CELLS) for j in range(columns))

    def learn_from_sums(self, found: NoisyPass, table: Table, spending: Spending) -> None:
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        self.set_edges(np.array([quantiles_of(counts[:, 0], self.bins - 1) for counts in found.sums]), bounds)

    def set_edges(self, edges: Matrix, bounds: Bounds) -> None:
        self.bin_edges_ = bounds.middle[:, None] + bounds.half[:, None] * edges

    def new_columns(self, rows: Matrix) -> Matrix:
        """The number of each value's bin, from 0; NaN is in the bin of the middle of the bounds."""
        bounds = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds")
        values = bounds.middle + bounds.half * bounds.scale(rows)
        columns = [np.searchsorted(self.bin_edges_[j], values[:, j]) for j in range(values.shape[1])]
        return np.column_stack(columns).astype(np.float64)

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        spending = self.spending().part(1 / d)
        return math.sqrt(CELLS) * spending.fold / spending.amount / n, "error of a quantile's rank, as a part of n"
