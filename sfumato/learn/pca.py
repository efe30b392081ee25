"""Covariances and principal components, from one noisy Gram matrix."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato import checks
from sfumato.learn.base import Estimator, Table
from sfumato.learn.bounded_rows import COARSE
from sfumato.learn.database_pass import NoisyPass, gram_of, gram_terms
from sfumato.learn.linear_regression import usual_norm
from sfumato.learn.row_wise import row_lengths, row_products
from sfumato.learn.spending import Spending
from sfumato.learn.tables import Bounds, BoundsLike, Data, Matrix
from sfumato.learn.transformer import Transformer
from sfumato.sql.emit.lattice_rows import Block


@dataclass(eq=False, kw_only=True, repr=False)
class Covariance(Estimator):
    """Mean and covariance of columns, projected to the nearest positive semi-definite matrix.

    Rows (1, x), x scaled to [−1, 1] and clipped to `row_norm`, are summed as a Gram matrix, and noise is added once.

    Theorem: one row of norm ≤ r moves the Gram matrix by r² in Frobenius norm, replacing one by √2·r²
        [`BoundedRows.gram_sensitivity`; Dwork, Talwar, Thakurta & Zhang 2014]
    """

    bounds: BoundsLike | None = None
    row_norm: float | None = None

    def check_params(self) -> None:
        super().check_params()
        if self.row_norm is not None:
            checks.number("row_norm", self.row_norm, 1e-3, 1e3, allowed="a number from 0.001 to 1000")

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        Bounds.of(self.bounds, columns, names, "bounds")

    def norm(self, columns: int) -> float:
        return usual_norm(columns) if self.row_norm is None else float(self.row_norm)

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        return super().fit(X, None, units=units)

    def learn(self, table: Table, spending: Spending) -> None:
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        norm = self.norm(table.columns)
        short = X * np.minimum(1.0, norm / np.maximum(row_lengths(X), 1e-300))[:, None]
        rows = self.bound_rows(np.column_stack([np.ones(len(X)), short]), table, math.sqrt(norm**2 + 1), 1.0)
        gram, deviation = self.noisy_gram(rows, spending)
        self.learn_from_gram(gram, deviation, float(len(table)) if self.count_share(table) == 0 else None, norm, table)

    def database_blocks(self, columns: int) -> tuple[Block, ...]:
        return (Block(gram_terms(columns + 1)),)

    def learn_from_sums(self, found: NoisyPass, table: Table, spending: Spending) -> None:
        gram = gram_of(found.sums[0], table.columns + 1)
        self.learn_from_gram(gram, found.deviations[0], None, math.sqrt(table.columns), table)

    def learn_from_gram(self, gram: Matrix, deviation: float, rows: float | None, norm: float, table: Table) -> None:
        """Post-processing of a noisy Gram matrix of (1, x); `rows` is their number where that is public."""
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        count = max(float(gram[0, 0]) if rows is None else rows, 1.0)
        mean = np.clip(gram[0, 1:] / count, -1, 1)
        values, vectors = np.linalg.eigh(gram[1:, 1:] / count - np.outer(mean, mean))
        values = np.clip(values, 0.0, norm**2)[::-1]
        vectors = vectors[:, ::-1]
        self.mean_ = bounds.middle + bounds.half * mean
        self.covariance_ = (vectors * values) @ vectors.T * np.outer(bounds.half, bounds.half)
        self.set_components(values, vectors.T, bounds, deviation / count)

    def set_components(self, values: Matrix, components: Matrix, bounds: Bounds, noise: float) -> None:
        """What a subclass keeps of the eigenvectors."""
        self.noise_ = noise

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        spending = self.spending()
        rows = self.bound_rows(np.zeros((0, d + 1)), Table(np.zeros((0, d)), None, None, None),
                               math.sqrt(self.norm(d) ** 2 + 1), 1.0)  # fmt: skip
        sensitivity = rows.gram_sensitivity(spending.relation)
        deviation = spending.deviation(sensitivity, (d + 1) * (d + 2) // 2) / COARSE**2
        return deviation / n, "error of a covariance, for columns scaled to [-1, 1]"


@dataclass(eq=False, kw_only=True, repr=False)
class PCA(Covariance, Transformer):
    """Principal components of columns in the units of the data, from the noisy covariance of `Covariance`.

    Theorem: eigenvectors of a released matrix are post-processing [Dwork & Roth 2014, Prop. 2.1]
    """

    n_components: int | None = None

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        super().check_columns(columns, names)
        if self.n_components is not None:
            checks.whole("n_components", self.n_components, 1, columns)

    def set_components(self, values: Matrix, components: Matrix, bounds: Bounds, noise: float) -> None:
        super().set_components(values, components, bounds, noise)
        own, vectors = np.linalg.eigh(self.covariance_)
        keep = len(own) if self.n_components is None else self.n_components
        order = np.argsort(own)[::-1][:keep]
        self.components_ = vectors[:, order].T
        self.explained_variance_ = np.maximum(own[order], 0.0)
        total = float(np.sum(np.maximum(own, 0.0)))
        self.explained_variance_ratio_ = self.explained_variance_ / max(total, 1e-300)

    def new_columns(self, rows: Matrix) -> Matrix:
        """Coordinates of rows along the components; rows are clipped to the bounds first."""
        bounds = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds")
        return row_products(bounds.middle + bounds.half * bounds.scale(rows) - self.mean_, self.components_)

    def output_names(self, names: Sequence[str]) -> list[str]:
        return [f"pca{j}" for j in range(len(self.components_))]

    def inverse_transform(self, Z: Matrix) -> Matrix:
        return row_products(np.asarray(Z, np.float64), self.components_.T) + self.mean_
