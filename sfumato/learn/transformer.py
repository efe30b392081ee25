"""Estimators that make other columns: what scalers, selectors and components share, and frames in which units stay."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.learn.base import Estimator, split_unit
from sfumato.learn.tables import Data, Matrix, column_names

OUTPUTS = ("default", "pandas", "polars")


@dataclass(eq=False, kw_only=True, repr=False)
class Transformer(Estimator):
    """An estimator with `transform`. Rows come out as an array, or as `set_output` says.

    Where `unit` names a column of a data frame, a frame of that kind comes out, and that column stays in it, so that
    the next step of a pipeline knows whose rows they are.
    """

    @abstractmethod
    def new_columns(self, rows: Matrix) -> Matrix:
        """Each row by itself, transformed."""

    def output_names(self, names: Sequence[str]) -> list[str]:
        """The names of the new columns: those of the old ones, unless a subclass says otherwise."""
        return list(names)

    def transform(self, X: Data) -> Any:
        """New columns of rows: each row by itself."""
        found = self.new_columns(self.new_rows(X))
        names = self.get_feature_names_out().tolist()
        kind = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        owner = split_unit(X, self.unit)[1] if self.unit in (column_names(X) or ()) else None
        if owner is None and kind == "default":
            return found
        columns = dict(zip(names, found.T, strict=True)) | ({} if owner is None else {str(self.unit): owner})
        return frame_like(X, kind, columns)

    def fit_transform(self, X: Data, y: object = None, *, units: object = None) -> Any:
        """Fit, which costs, then transform the same rows."""
        return self.fit(X, y, units=units).transform(X)

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """The names of the new columns, as scikit-learn asks for them."""
        self.check_fitted()
        known = self.names_in() if input_features is None else [str(name) for name in np.asarray(input_features)]
        names = [f"x{j}" for j in range(self.n_features_in_)] if known is None else list(known)
        return np.array(self.output_names(names), object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """The kind of table that `transform` gives: "default" (an array), "pandas" or "polars"."""
        if transform is not None:
            if transform not in OUTPUTS:
                raise InvalidParameter(
                    f"a table is one of {', '.join(OUTPUTS)}.\n  found:  {transform!r}\n  do:     give one of these"
                )
            self._sklearn_output_config = {"transform": transform}  # the name under which scikit-learn copies it
        return self


def frame_like(X: Data, kind: str, columns: dict[str, Any]) -> Any:
    """A data frame of X's kind, or of the named kind."""
    index = {"index": X.index} if hasattr(X, "iloc") else {}  # pandas
    if kind != "default":
        plain = {name: np.asarray(column) for name, column in columns.items()}
        return import_module(kind).DataFrame(plain, **index if kind == "pandas" else {})
    if hasattr(X, "from_arrays"):  # Arrow
        return type(X).from_pydict(columns)
    return type(X)(columns, **index)
