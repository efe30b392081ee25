"""Estimators of a number or of a class: what all regressors and all classifiers share."""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.learn.base import Estimator, Table, score_spending
from sfumato.learn.tables import Bounds, BoundsLike, Data, Matrix, Vector, plain, read_column, read_labels, read_matrix


@dataclass(eq=False, kw_only=True, repr=False)
class Regressor(Estimator):
    """An estimator of a number. `bounds` are those of the columns, `y_bounds` those of the target."""

    bounds: BoundsLike | None = None
    y_bounds: tuple[float, float] | None = None
    _estimator_type = "regressor"

    @property
    def number_target(self) -> bool:
        return True

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        Bounds.of(self.bounds, columns, names, "bounds")
        Bounds.of(self.y_bounds, 1, None, "y bounds")

    def scaled_target(self, table: Table) -> Vector:
        """In [−1, 1]; NaN is the middle of the bounds."""
        column = read_column(table.y)
        return Bounds.of(self.y_bounds, 1, None, "y bounds").scale(column[:, None])[:, 0]

    def in_target_units(self, scaled: Vector) -> Vector:
        """Predictions in [−1, 1] as numbers within `y_bounds`."""
        ends = Bounds.of(self.y_bounds, 1, None, "y bounds")
        found: Vector = np.clip(ends.middle[0] + ends.half[0] * np.clip(scaled, -1.0, 1.0), ends.low[0], ends.high[0])
        return found

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        require_target(self, y)
        return super().fit(X, y, units=units)

    @abstractmethod
    def predict(self, X: Data) -> Vector:
        """A number for each row, within `y_bounds`."""

    def public_score(self, X: Data, y: object) -> float:
        """R² on data that are public. On private data use `score`, which costs."""
        truth = read_column(y)
        spread = float(np.sum((truth - truth.mean()) ** 2))
        return 1.0 - float(np.sum((truth - self.predict(X)) ** 2)) / spread if spread > 0 else 0.0

    def score(self, X: Data, y: object, *, units: object = None) -> float:
        """R² on private data, with noise: costs `score_epsilon` (at the δ of the fit), charged first.

        Residuals and targets lie within the bounds, so their squares and sums are bounded; the quotient of noisy sums
        is kept in [−1, 1].
        """
        spending = score_spending(self)
        table = self.read_table(X, y, units)
        predicted = self.predict(X)
        self.charge(spending.loss(), f"score {type(self).__name__}")
        bounds = Bounds.of(self.y_bounds, 1, None, "y bounds")
        truth = self.scaled_target(table)
        residual = truth - bounds.scale(predicted[:, None])[:, 0]
        parts = np.column_stack([residual**2 / 4, truth, truth**2, np.ones(len(truth))])
        squares, total, second, count = self.noisy_sum(self.bound_rows(parts, table, 2.0, 1.0), spending)
        rows = max(float(count), 1.0)
        spread = max(float(second) - float(total) ** 2 / rows, 1e-9)
        return float(np.clip(1.0 - 4 * float(squares) / spread, -1.0, 1.0))


@dataclass(eq=False, kw_only=True, repr=False)
class Classifier(Estimator):
    """An estimator of a class. `bounds` are those of the columns; `classes` are public, in the order of the outputs."""

    bounds: BoundsLike | None = None
    classes: Sequence[Hashable] | None = None
    _estimator_type = "classifier"

    def check_params(self) -> None:
        super().check_params()
        found = self.class_list()
        if len({plain(label) for label in found}) != len(found) or not 2 <= len(found) <= 1000:
            raise InvalidParameter(
                f"classes must be from 2 to 1,000 different labels.\n  found:  {len(found)}\n  do:     give each once"
            )

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        Bounds.of(self.bounds, columns, names, "bounds")

    @property
    def label_target(self) -> bool:
        return True

    def class_list(self) -> list[Hashable]:
        if self.classes is None or isinstance(self.classes, str | bytes):
            raise InvalidParameter(
                "classes are needed: which labels there are must be public.\n  found:  none\n"
                "  do:     give classes=[…], never the labels that happen to be in the data"
            )
        return list(self.classes)

    def labels(self, table: Table) -> NDArray[np.int64]:
        """Places among the classes; −1 for an unknown label, whose row then counts as nothing."""
        return read_labels(table.y, self.class_list(), len(table))

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        require_target(self, y)
        super().fit(X, y, units=units)
        self.classes_ = array_of_labels(self.class_list())
        return self

    @abstractmethod
    def predict_proba(self, X: Data) -> Matrix:
        """A probability for each row and class."""

    def predict(self, X: Data) -> NDArray[Any]:
        """The most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def public_score(self, X: Data, y: object) -> float:
        """Accuracy on data that are public. On private data use `score`, which costs."""
        labels = read_labels(y, self.class_list(), len(read_matrix(X)))
        right = read_labels(self.predict(X), self.class_list(), len(labels)) == labels
        return float(np.mean(right)) if len(labels) else 0.0

    def score(self, X: Data, y: object, *, units: object = None) -> float:
        """Accuracy on private data, with noise: costs `score_epsilon` (at the δ of the fit), charged first."""
        spending = score_spending(self)
        table = self.read_table(X, y, units)
        predicted = read_labels(self.predict(X), self.class_list(), len(table))
        self.charge(spending.loss(), f"score {type(self).__name__}")
        right = predicted == self.labels(table)
        parts = np.column_stack([np.where(right, 1.0, 0.0), np.where(right, 0.0, 1.0)])
        good, bad = np.maximum(self.noisy_sum(self.bound_rows(parts, table, 1.0), spending), 0.0)
        return float(np.clip(good / max(good + bad, 1.0), 0.0, 1.0))


def array_of_labels(labels: Sequence[Hashable]) -> NDArray[Any]:
    """One array of them; of objects, unless NumPy keeps each as what it is: ["a", 1] would be two texts."""
    kinds = {type(plain(label)) for label in labels}
    found = np.array(labels) if len(kinds) == 1 or kinds <= {int, float} else np.array([])
    if found.shape == (len(labels),) and found.dtype.kind in "biufU":
        return found
    kept = np.empty(len(labels), object)
    kept[:] = labels
    return kept


def require_target(estimator: Estimator, y: object) -> None:
    if y is None:
        raise InvalidParameter(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None.\n  found:  no target\n"
            "  do:     call fit(X, y)"
        )
