"""Columns of categories as numbers: one column of 0 and 1 for each category. It reads one row at a time.

Where the categories are public, a fit costs nothing: it does not look at data. Where they are not, they are bought:
noisy counts of all values, of which those above a threshold are released.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.base import read_units, split_unit
from sfumato.learn.tables import Data, check_names, column_names, columns_of, plain, read_column
from sfumato.learn.transformer import frame_like
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.shares import OWNER
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.keys.threshold_selection import StabilityHistogram

REST = "…"  # the category of all values that are none of the bought ones


@dataclass(eq=False, kw_only=True)
class CategoryEncoder:
    """A data frame with each of these columns replaced by 0/1 columns, one for each category but the first.

    A value that is no category is 0 in all of them, like the first: no value makes a fit fail. Other columns stay. The
    bounds of new columns are (0, 1); `bounds_of` completes those of the others. A column whose categories are `None` is
    private: `epsilon` and `delta`, shared by all such columns, buy those that enough units have. Their first category
    is then the rest. A fit with a `ledger` is charged before values are read.

    A unit is a row; or, if `unit` names a column (or `units` are given to `fit`), whoever owns several rows, who then
    counts once for each of at most `categories_per_unit` categories of a column. The column of units stays as it is.

    Theorem: noisy counts above a threshold are (ε, δ)-DP without a list of keys [`StabilityHistogram`]
    """

    categories: Mapping[str, Sequence[Hashable] | None]
    epsilon: float | None = None
    delta: float = 0.0
    ledger: Ledger | None = None
    who: str = OWNER
    unit: str | None = None
    categories_per_unit: int = 1

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def set_params(self, **params: Any) -> Self:
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @property
    def private(self) -> list[str]:
        """The columns whose categories are bought."""
        return [name for name, listed in self.categories.items() if listed is None]

    def histogram(self) -> StabilityHistogram:
        """The purchase of one column: an equal share of ε and δ."""
        count = len(self.private)
        if self.epsilon is None or not self.delta > 0:
            raise InvalidParameter(
                f"categories of {', '.join(self.private)} are private, so they cost.\n  found:  no epsilon and delta\n"
                "  do:     give epsilon=0.1, delta=1e-6; or list the categories, if they are public"
            )
        groups = checks.whole("categories_per_unit", self.categories_per_unit, 1, 1000)
        scale = groups * count / checks.positive("epsilon", self.epsilon) * (1 + 1e-12)
        return StabilityHistogram(scale, self.delta / count, groups)

    @property
    def loss(self) -> PrivacyLoss | None:
        """What a fit costs, for any data; None if all categories are public."""
        return len(self.private) * self.histogram().loss() if self.private else None

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        """Checks the names of columns; if all categories are public, that is all, and free."""
        X, units = split_unit(X, self.unit) if self.unit is not None else (X, units)
        names = column_names(X)
        missing = [name for name in self.categories if name not in (names or ())]
        if names is None or missing:
            raise InvalidParameter(
                "there is no column for these categories.\n"
                f"  found:  {'columns without names' if names is None else ', '.join(names)}\n"
                f"  do:     give a data frame with the columns {', '.join(self.categories)}"
            )
        for name, listed in self.categories.items():
            if listed is not None:
                check_categories(name, listed)
        loss, owners = self.loss, np.arange(len(X)) if units is None else read_units(units, len(X))
        if loss is not None and self.ledger is not None:
            self.ledger.charge(loss, question=f"categories of {', '.join(self.private)}", who=self.who)
        self.categories_: dict[str, list[Hashable]] = {}
        for name, (values, _) in zip(names, columns_of(X), strict=True):
            if name in self.categories:
                listed = self.categories[name]
                self.categories_[name] = self.bought(values, owners) if listed is None else list(listed)
        self.feature_names_in_ = np.array(names, object)
        return self

    def bought(self, values: Any, owners: NDArray[np.int64]) -> list[Hashable]:
        """The rest, and the categories that enough units have; a missing value is none. Of the categories of a unit
        that has too many, the first by name count: that depends on its own rows only."""
        own: defaultdict[int, set[Hashable]] = defaultdict(set)
        for owner, key in zip(owners.tolist(), map(category_of, values), strict=True):
            if key is not None and key != REST:
                own[owner].add(key)
        counts = Counter(key for keys in own.values() for key in sorted(keys, key=repr)[: self.categories_per_unit])
        return [REST, *self.histogram().release(counts)]

    def new_names(self) -> list[str]:
        """The names of the columns after `transform`."""
        found: list[str] = []
        for name in self.feature_names_in_:
            listed = self.categories_.get(name)
            found += [name] if listed is None else [f"{name}={one}" for one in listed[1:]]
        return found

    def get_feature_names_out(self, input_features: object = None) -> Any:
        return np.array(self.new_names(), object)

    def bounds_of(self, bounds: Mapping[str, tuple[float, float]]) -> tuple[list[float], list[float]]:
        """(low, high) of all new columns, for an estimator: those given, and (0, 1) of categories."""
        ends = [bounds.get(name, (0.0, 1.0)) for name in self.new_names()]
        return [low for low, _ in ends], [high for _, high in ends]

    def transform(self, X: Data) -> Any:
        """An array; or a data frame of the kind of X, if it has a column of units, which stays."""
        columns: list[Any] = []
        owner = None
        if self.unit is not None and self.unit in (column_names(X) or ()):
            whole, (X, owner) = X, split_unit(X, self.unit)
        check_names(column_names(X) or (), self.feature_names_in_.tolist())
        for name, (values, _) in zip(self.feature_names_in_, columns_of(X), strict=True):
            if name not in self.categories_:
                columns.append(read_column(values))
                continue
            place = {plain(one): k for k, one in enumerate(self.categories_[name])}
            found = np.fromiter((place.get(plain(one), 0) for one in values), np.int64, len(values))
            columns += [(found == k) * 1.0 for k in range(1, len(place))]
        if owner is not None:
            return frame_like(
                whole, "default", dict(zip(self.new_names(), columns, strict=True)) | {str(self.unit): owner}
            )
        return np.column_stack(columns) if columns else np.zeros((len(X), 0))

    def fit_transform(self, X: Data, y: object = None, *, units: object = None) -> Any:
        return self.fit(X, units=units).transform(X)


def check_categories(name: str, listed: Sequence[Hashable]) -> None:
    if isinstance(listed, str) or len({plain(one) for one in listed}) != len(listed) or len(listed) < 2:
        raise InvalidParameter(
            f"categories of {name} must be at least two different values.\n  found:  others\n"
            "  do:     list each once; or give None, with epsilon and delta, to buy them"
        )


def category_of(value: Any) -> str | int | float | None:
    """A text or a number, in one form for all that are equal, so that no row decides how another one's is written; None
    for anything else, such as NULL and NaN."""
    key = plain(value)
    if isinstance(key, str):
        return key
    if not isinstance(key, bool | int | float) or key != key:
        return None
    return int(key) if abs(key) < 2**53 and key == int(key) else float(key) if abs(key) < 1e300 else None
