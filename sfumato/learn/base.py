"""The base of estimators: parameters as scikit-learn has them, a budget that is charged before data are touched, units.

What a fit costs follows from its parameters alone, so `loss` and `preview` answer before any data are read. Exceptions
depend on parameters, shapes, types and names; never on values. docs/decisions/0033-learning.md says why it is so.
"""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.bounded_rows import COARSE, UNIT, BoundedRows, UnitWeights
from sfumato.learn.database_pass import NoisyPass
from sfumato.learn.spending import Spending, spending_of
from sfumato.learn.tables import (
    Data,
    Matrix,
    Vector,
    check_names,
    column_names,
    plain,
    read_matrix,
)
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.shares import OWNER
from sfumato.loss.base import PrivacyLoss
from sfumato.sensitivity import AddRemove, Relation
from sfumato.sql.emit.lattice_rows import Block

MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class FitPreview:
    """What a fit would cost and how exact it may be expected to be. Free: no data were read."""

    estimator: str
    loss: PrivacyLoss
    rows: int
    columns: int
    error: float  # expected excess error, in the unit that `measure` names
    measure: str

    def __str__(self) -> str:
        return (
            f"{self.estimator} on {self.rows:,} rows × {self.columns} columns: {self.loss!r}, "
            f"{self.loss.relation.value}; expected {self.measure}: about {self.error:.3g}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Private rows as numbers, with what is public about them: how many columns, their names, who owns rows."""

    X: Matrix
    y: object
    names: tuple[str, ...] | None
    weights: UnitWeights | None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def columns(self) -> int:
        return int(self.X.shape[1])


@dataclass(eq=False, kw_only=True, repr=False)
class Estimator(ABC):
    """A model that is fitted to private rows.

    `epsilon` and `delta` (0: pure ε), or a `budget` (a Gaussian or pure loss), are what one fit costs, about
    `relation`. With a `ledger` each fit is charged there first. A unit is a row; or, if `unit` names a column (or
    `units` are given to `fit`), whoever owns several rows, which then weigh `rows_per_unit` rows at most.
    """

    epsilon: float | None = None
    delta: float = 0.0
    budget: PrivacyLoss | None = None
    relation: Relation = AddRemove
    ledger: Ledger | None = None
    who: str = OWNER
    unit: str | None = None
    rows_per_unit: int = 1
    score_epsilon: float | None = None

    # ---- parameters, as scikit-learn has them -----------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; unknown names are refused."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise InvalidParameter(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}.\n"
                    f"  found:  {name}\n  do:     give one of {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if not same(getattr(self, f.name), f.default))
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    def __sklearn_tags__(self) -> object:
        """For pipelines and searches of scikit-learn, which alone call this."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags, TransformerTags

        kind = getattr(self, "_estimator_type", None)
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=kind is not None),
            input_tags=InputTags(allow_nan=True),
            classifier_tags=ClassifierTags() if kind == "classifier" else None,
            regressor_tags=RegressorTags() if kind == "regressor" else None,
            transformer_tags=TransformerTags() if hasattr(self, "transform") else None,
            non_deterministic=True,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    # ---- the price --------------------------------------------------------------------------------------------------

    def spending(self) -> Spending:
        """What one fit may spend."""
        return spending_of(self.epsilon, self.delta, self.budget, self.relation)

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one fit, for any data: a function of the parameters."""
        self.check_params()
        return self.spending().loss()

    @property
    def score_loss(self) -> PrivacyLoss:
        """The privacy loss of one score; raises without `score_epsilon`."""
        return score_spending(self).loss()

    def price(self, n: int, d: int) -> PrivacyLoss:
        """The same: no estimator's price depends on how many rows there are."""
        return self.loss

    def preview(self, n: int, d: int) -> FitPreview:
        """What a fit to n rows of d columns costs, and the expected excess error. Free."""
        rows, columns = checks.whole("n", n, 1), checks.whole("d", d, 1, MOST_COLUMNS)
        error, measure = self.expected_error(rows, columns)
        return FitPreview(type(self).__name__, self.loss, rows, columns, error, measure)

    @abstractmethod
    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        """A rule of thumb for what noise adds to the error, and what it is measured in."""

    # ---- fitting ----------------------------------------------------------------------------------------------------

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        """Charge, then read, then release a model. Fitting again costs again."""
        table = self.read_table(X, y, units)
        spending = self.spending()
        self.check_params()
        self.check_columns(table.columns, table.names)
        self.charge(self.loss, f"fit {type(self).__name__} to {table.columns} columns")
        self.learn(table, spending)
        self.n_features_in_ = table.columns
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, object)
        return self

    @abstractmethod
    def learn(self, table: Table, spending: Spending) -> None:
        """Set the fitted attributes. All that is read from private rows has noise on it, within `spending`."""

    @property
    def number_target(self) -> bool:
        """Is it fitted to a number of each row, within `y_bounds`?"""
        return False

    @property
    def label_target(self) -> bool:
        """Is it fitted to a class of each row, one of `class_list()`?"""
        return False

    def class_list(self) -> list[Hashable]:
        """The public classes, in the order of the outputs."""
        return []

    def database_blocks(self, columns: int) -> tuple[Block, ...]:
        """The sums that one pass over a table must give, columns before the target; none: rows are needed again."""
        return ()

    def learn_from_sums(self, found: NoisyPass, table: Table, spending: Spending) -> None:
        """Set the fitted attributes from the noisy sums of `database_blocks`; the table has names and no rows."""
        raise NotImplementedError

    def check_params(self) -> None:
        """Raise if the parameters make no sense. Before the charge, and blind to data."""
        checks.whole("rows_per_unit", self.rows_per_unit, 1, 1_000_000)
        self.spending()

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        """Raise if the parameters do not fit so many columns. Before the charge."""
        return

    def charge(self, loss: PrivacyLoss, question: str) -> None:
        """Durable before data are read."""
        if self.ledger is not None:
            self.ledger.charge(loss, question=question, who=self.who)

    def read_table(self, X: Data, y: object, units: object) -> Table:
        """Shapes and types are checked; values are not looked at."""
        if self.unit is not None:
            X, units = split_unit(X, self.unit)
        names, matrix = column_names(X), read_matrix(X)
        if not 1 <= matrix.shape[1] <= MOST_COLUMNS:
            raise InvalidParameter(
                f"0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required: no columns to learn from.\n"
                f"  found:  {matrix.shape[1]} columns\n  do:     give from 1 to {MOST_COLUMNS:,} columns"
            )
        if y is not None and len(read_shape(y)) and read_shape(y)[0] != len(matrix):
            raise InvalidParameter(
                f"X and y must have as many rows.\n  found:  {len(matrix)} and {read_shape(y)[0]}\n"
                "  do:     give one target for each row"
            )
        weights = None if units is None else UnitWeights.of(read_units(units, len(matrix)), self.rows_per_unit)
        return Table(matrix, y, names, weights)

    def bound_rows(self, rows: Matrix, table: Table, norm: float, box: float = math.inf) -> BoundedRows:
        """Rows clipped and put on the lattice, with the weights of their units: nothing else may be summed."""
        several = 1 if table.weights is None else self.rows_per_unit
        return BoundedRows.of(rows, norm, box, table.weights, several)

    def noisy_sum(self, rows: BoundedRows, spending: Spending) -> Vector:
        """Σ row with noise, in the unit of the rows."""
        noisy = spending.add_noise(rows.sum(), rows.sensitivity(spending.relation))
        return noisy.astype(np.float64) / UNIT

    def noise_of(self, rows: BoundedRows, spending: Spending) -> float:
        """The deviation of the noise of each of these sums, in the unit of the rows."""
        return spending.deviation(rows.sensitivity(spending.relation), rows.integers.shape[1]) / UNIT

    def noisy_sum_by_class(
        self, rows: BoundedRows, labels: NDArray[np.int64], count: int, spending: Spending
    ) -> Matrix:
        """Σ row with noise for each of `count` classes, of which a row is in one; rows of other labels are left out."""
        exact = rows.sum_by_class(labels, count)
        return spending.add_noise_by_block(exact, rows.sensitivity(AddRemove)).astype(np.float64) / UNIT

    def noisy_gram(self, rows: BoundedRows, spending: Spending) -> tuple[Matrix, float]:
        """Σ row·rowᵀ with noise on its upper triangle, mirrored; and the deviation of the noise."""
        exact, sensitivity = rows.gram(), rows.gram_sensitivity(spending.relation)
        upper = np.triu_indices(len(exact))
        noisy = spending.add_noise(exact[upper], sensitivity).astype(np.float64) / COARSE**2
        found = np.zeros(exact.shape)
        found[upper] = noisy
        return found + np.triu(found, 1).T, spending.deviation(sensitivity, noisy.size) / COARSE**2

    def row_count(self, table: Table, spending: Spending) -> float:
        """How many rows there are: public where one is replaced; else, or with weights, noisy and at least 1."""
        if spending.relation is Relation.ReplaceOne and table.weights is None:
            return float(max(len(table), 1))
        ones = self.bound_rows(np.ones((len(table), 1)), table, 1.0)
        return max(float(self.noisy_sum(ones, spending)[0]), 1.0)

    def count_share(self, table: Table) -> float:
        """What `row_count` needs of the budget."""
        return 0.0 if self.spending().relation is Relation.ReplaceOne and table.weights is None else 0.03

    def count_rows(self, table: Table, spending: Spending) -> tuple[float, Spending]:
        """How many rows there are, nearly, and what is left to spend."""
        share = self.count_share(table)
        if not share:
            return float(max(len(table), 1)), spending
        return self.row_count(table, spending.part(share)), spending.part(1 - share)

    # ---- using a fitted model ---------------------------------------------------------------------------------------

    def check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted_error()(
                f"This {type(self).__name__} instance is not fitted yet.\n  found:  no coefficients\n"
                "  do:     call fit(X, y) first"
            )

    def names_in(self) -> Sequence[str] | None:
        return getattr(self, "feature_names_in_", None)

    def new_rows(self, X: Data) -> Matrix:
        """Rows to predict for: as many columns as were fitted."""
        self.check_fitted()
        X = split_unit(X, self.unit)[0] if self.unit in (column_names(X) or ()) else X
        names, fitted, matrix = column_names(X), self.names_in(), read_matrix(X)
        if names is not None and fitted is not None:
            check_names(names, fitted)
        if matrix.shape[1] != self.n_features_in_:
            raise InvalidParameter(
                f"X has {matrix.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                f"features as input.\n  found:  {matrix.shape[1]} columns\n  do:     give those of the fit"
            )
        return matrix


def not_fitted_error() -> type[InvalidParameter]:
    """Also scikit-learn's error of that name, where it is loaded: its tools expect it."""
    loaded = sys.modules.get("sklearn.exceptions")
    return InvalidParameter if loaded is None else type("NotFitted", (InvalidParameter, loaded.NotFittedError), {})


def same(a: object, b: object) -> bool:
    return a is b or (isinstance(a, int | float | str | bool) and a == b)


def read_shape(values: object) -> tuple[int, ...]:
    shape = getattr(values, "shape", None)
    return tuple(shape) if shape is not None else np.asarray(values, dtype=object).shape[:1]


def split_unit(X: Data, unit: str) -> tuple[Data, object]:
    """The columns without the one that names units, and that one."""
    names = column_names(X)
    if names is None or unit not in names:
        raise InvalidParameter(
            f"there is no column {unit} that says whose a row is.\n  found:  "
            f"{'columns without names' if names is None else ', '.join(names)}\n"
            "  do:     give a data frame with that column, or fit(X, y, units=…)"
        )
    place = names.index(unit)
    if hasattr(X, "drop_columns"):  # Arrow
        return X.drop_columns([unit]), X.column(place)
    if hasattr(X, "iloc"):  # pandas, whose names may be numbers
        return X.iloc[:, [j for j in range(len(names)) if j != place]], X.iloc[:, place]
    return X.drop(unit), X[unit]


def read_units(units: object, rows: int) -> NDArray[np.int64]:
    """A number for each unit; a row without a unit (NULL, NaN) is a unit of its own."""
    found = np.asarray(units, dtype=object).reshape(-1)
    if found.size != rows:
        raise InvalidParameter(
            f"units must name the owner of each row.\n  found:  {found.size} for {rows} rows\n"
            "  do:     give one value for each row"
        )
    place: dict[Hashable, int] = {}
    keys = (plain(value) for value in found)
    named = (key if key is not None and key == key else ("row", i) for i, key in enumerate(keys))
    return np.fromiter((place.setdefault(key, len(place)) for key in named), np.int64, found.size)


def score_spending(estimator: Estimator) -> Spending:
    """The budget of one score."""
    if estimator.score_epsilon is None:
        raise InvalidParameter(
            "a score looks at private data, so it costs.\n  found:  no score_epsilon\n"
            "  do:     give score_epsilon=0.1 when the estimator is made; for public data call public_score(X, y)"
        )
    own = estimator.spending()
    return spending_of(estimator.score_epsilon, estimator.delta, None, own.relation)
