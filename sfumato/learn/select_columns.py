"""Feature selection: the columns that vary most with the target, from one vector of noisy sums."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.base import Table
from sfumato.learn.database_pass import NoisyPass, moment_terms
from sfumato.learn.spending import Spending
from sfumato.learn.supervised import require_target
from sfumato.learn.tables import Bounds, BoundsLike, Data, Matrix, Vector, read_column, read_labels
from sfumato.learn.transformer import Transformer
from sfumato.sql.emit.lattice_rows import Block, ByLabel

NORM = 0.4  # mean of (xy)² + x² + x⁴ over columns in [−1, 1]: about its usual size


@dataclass(eq=False, kw_only=True, repr=False)
class SelectColumns(Transformer):
    """Keeps the `count` columns whose squared correlation with the target is largest, nearly.

    Targets are numbers within `y_bounds`, or two or more public `classes`, of which each has a column of 0 and 1. The
    sums of (x·y, x, x², y, 1) get noise once; correlations and the choice are post-processing. Which columns are kept
    is the whole release.

    Theorem: a row clipped to norm r moves the sums by r under add/remove, by 2r if replaced [`BoundedRows.sensitivity`]
    """

    count: int = 10
    bounds: BoundsLike | None = None
    y_bounds: tuple[float, float] | None = None
    classes: Sequence[Hashable] | None = None

    def check_params(self) -> None:
        super().check_params()
        checks.whole("count", self.count, 1)
        if (self.y_bounds is None) == (self.classes is None):
            raise InvalidParameter(
                "the target is a number within y_bounds, or one of public classes.\n"
                f"  found:  {'neither' if self.classes is None else 'both'}\n  do:     give one of them"
            )

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        Bounds.of(self.bounds, columns, names, "bounds")
        checks.whole("count", self.count, 1, columns)

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        require_target(self, y)
        return super().fit(X, y, units=units)

    @property
    def number_target(self) -> bool:
        return self.classes is None

    @property
    def label_target(self) -> bool:
        return self.classes is not None

    def class_list(self) -> list[Hashable]:
        return list(self.classes or ())

    def targets(self, table: Table) -> Matrix:
        """One column for a number; one for each class but the first, −1 or 1."""
        if self.classes is None:
            return Bounds.of(self.y_bounds, 1, None, "y bounds").scale(read_column(table.y)[:, None])
        labels = read_labels(table.y, self.class_list(), len(table))
        return np.where(labels[:, None] == np.arange(1, len(self.classes)), 1.0, -1.0)

    def learn(self, table: Table, spending: Spending) -> None:
        X, Y = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X), self.targets(table)
        d, k = X.shape[1], Y.shape[1]
        products = (X[:, :, None] * Y[:, None, :]).reshape(len(X), d * k)
        parts = np.column_stack([products, X, X**2, Y, np.ones(len(X))])
        rows = self.bound_rows(parts, table, math.sqrt(NORM * parts.shape[1] + 1), 1.0)
        self.choose(self.noisy_sum(rows, spending), d, k)

    def database_blocks(self, columns: int) -> tuple[Block, ...]:
        if self.label_target:
            return (Block(moment_terms(columns), ByLabel(), len(self.class_list())),)
        products = tuple((j, columns + 1) for j in range(1, columns + 1))
        *moments, one = moment_terms(columns)
        return (Block((*products, *moments, (0, columns + 1), one)),)

    def learn_from_sums(self, found: NoisyPass, table: Table, spending: Spending) -> None:
        """Sums with targets of −1 and 1 are twice those of a class, less those of all rows."""
        d, kinds = table.columns, len(self.class_list())
        if self.number_target:
            self.choose(found.sums[0][0], d, 1)
            return
        whole = found.sums[0].sum(axis=0)
        signed = 2 * found.sums[0][1:] - whole
        self.choose(np.concatenate([signed[:, :d].T.reshape(-1), whole[:-1], signed[:, -1], whole[-1:]]), d, kinds - 1)

    def choose(self, sums: Vector, d: int, k: int) -> None:
        """Post-processing of the noisy sums of (x·y, x, x², y, 1)."""
        self.scores_ = scores(sums, d, k)
        self.support_ = np.sort(np.argsort(-self.scores_, kind="stable")[: self.count])

    def get_support(self, indices: bool = False) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """The places of the kept columns, or whether each is kept."""
        self.check_fitted()
        found = self.support_ if indices else np.isin(np.arange(self.n_features_in_), self.support_)
        return np.asarray(found)

    def output_names(self, names: Sequence[str]) -> list[str]:
        return [names[j] for j in self.support_]

    def new_columns(self, rows: Matrix) -> Matrix:
        """The kept columns, clipped to their bounds (NaN: the middle)."""
        bounds = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds")
        return (bounds.middle + bounds.half * bounds.scale(rows))[:, self.support_]

    def bounds_kept(self) -> tuple[list[float], list[float]]:
        """(low, high) of the kept columns, for the estimator behind."""
        self.check_fitted()
        found = Bounds.of(self.bounds, self.n_features_in_, self.names_in(), "bounds")
        return found.low[self.support_].tolist(), found.high[self.support_].tolist()

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        spending = self.spending()
        count = 3 * d + 2 if self.classes is None else d * (len(self.classes) + 1) + len(self.classes)
        each = math.sqrt(NORM * count + 1) * spending.fold / spending.amount
        return each / n, "error of a covariance, for columns and target in [-1, 1]"


def scores(sums: Vector, d: int, k: int) -> Vector:
    """Σ over targets of the squared correlation, from noisy sums: post-processing."""
    n = max(float(sums[-1]), 1.0)
    products, x = sums[: d * k].reshape(d, k) / n, sums[d * k : d * k + d] / n
    squares, y = sums[d * k + d : d * k + 2 * d] / n, sums[d * k + 2 * d : -1] / n
    covariance = products - np.outer(x, y)
    found: Vector = (covariance**2).sum(axis=1) / np.maximum(squares - x**2, 0.01)
    return found
