"""Columns of categories as numbers: one column of 0 and 1 for each public category. It reads one row at a time.

Which categories there are is public here, so a fit of this costs nothing: it does not look at data. Whoever does not
know them buys them first, as the keys of a question (`SELECT ward, COUNT(*) FROM visits GROUP BY ward`).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.learn.tables import Data, Matrix, column_names, plain, read_column


@dataclass(eq=False, kw_only=True)
class CategoryEncoder:
    """A data frame with each of these columns replaced by 0/1 columns, one for each category but the first.

    A value that is no category is 0 in all of them, like the first: no value makes a fit fail. Other columns stay. The
    bounds of new columns are (0, 1); `bounds_of` completes those of the others.
    """

    categories: Mapping[str, Sequence[Hashable]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"categories": self.categories}

    def set_params(self, **params: Any) -> Self:
        self.categories = params.get("categories", self.categories)
        return self

    def fit(self, X: Data, y: object = None) -> Self:
        """Checks the names of columns; free, since no value is read."""
        names = column_names(X)
        missing = [name for name in self.categories if name not in (names or ())]
        if names is None or missing:
            raise InvalidParameter(
                "there is no column for these categories.\n"
                f"  found:  {'columns without names' if names is None else ', '.join(names)}\n"
                f"  do:     give a data frame with the columns {', '.join(self.categories)}"
            )
        for name, listed in self.categories.items():
            if isinstance(listed, str) or len({plain(one) for one in listed}) != len(listed) or len(listed) < 2:
                raise InvalidParameter(
                    f"categories of {name} must be at least two different values.\n  found:  others\n"
                    "  do:     list each once"
                )
        self.feature_names_in_ = np.array(names, object)
        return self

    def new_names(self) -> list[str]:
        """The names of the columns after `transform`."""
        found: list[str] = []
        for name in self.feature_names_in_:
            listed = self.categories.get(name)
            found += [name] if listed is None else [f"{name}={one}" for one in list(listed)[1:]]
        return found

    def get_feature_names_out(self, input_features: object = None) -> Any:
        return np.array(self.new_names(), object)

    def bounds_of(self, bounds: Mapping[str, tuple[float, float]]) -> tuple[list[float], list[float]]:
        """(low, high) of all new columns, for an estimator: those given, and (0, 1) of categories."""
        ends = [bounds.get(name, (0.0, 1.0)) for name in self.new_names()]
        return [low for low, _ in ends], [high for _, high in ends]

    def transform(self, X: Data) -> Matrix:
        columns: list[Any] = []
        for name in self.feature_names_in_:
            values = X.column(name).to_numpy() if hasattr(X, "column_names") else X[name].to_numpy()
            if name not in self.categories:
                columns.append(read_column(values))
                continue
            place = {plain(one): k for k, one in enumerate(self.categories[name])}
            found = np.fromiter((place.get(plain(one), 0) for one in values), np.int64, len(values))
            columns += [(found == k) * 1.0 for k in range(1, len(place))]
        return np.column_stack(columns)

    def fit_transform(self, X: Data, y: object = None) -> Matrix:
        return self.fit(X).transform(X)
