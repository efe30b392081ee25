"""Tables as estimators read them: numbers of any data frame as a matrix, public facts about it apart from values.

Shapes, types and column names are public; values never decide whether a table is read. A value that is no number
becomes NaN, and what NaN means is decided where rows are clipped.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Data = Any  # numpy, pandas, polars, Arrow, or nested lists
TEXTS = ("str", "string", "large_string", "utf8", "category", "categorical", "enum", "dictionary")
BoundsLike = tuple[Any, Any] | Mapping[str, tuple[float, float]]


def column_names(data: Data) -> tuple[str, ...] | None:
    """The names of the columns, if they have any."""
    found = getattr(data, "column_names", None)  # Arrow
    if found is None:
        found = getattr(data, "columns", None)  # pandas, polars
    return None if found is None or callable(found) else tuple(str(name) for name in found)


def check_names(names: Sequence[str], fitted: Sequence[str]) -> None:
    """Columns in another order would be read as others."""
    if list(names) != list(fitted):
        raise InvalidParameter(
            "The feature names should match those that were passed during fit, in the same order.\n"
            f"  found:  {', '.join(names)}\n  do:     give {', '.join(fitted)}"
        )


def read_matrix(data: Data) -> Matrix:
    """A table of numbers: rows × columns. Only its shape and type can be refused."""
    if hasattr(data, "tocsr"):
        raise InvalidParameter(
            "Sparse data are not read: which entries there are would be told by how long it takes.\n"
            "  found:  a sparse matrix\n  do:     give a dense one, X.toarray()"
        )
    if (names := column_names(data)) is not None:
        return matrix_of([read_number_column(name, *one) for name, one in zip(names, columns_of(data), strict=True)],
                         len(data))  # fmt: skip
    found = np.asarray(data)
    if found.ndim == 1 and found.size == 0:
        found = found.reshape(0, 0)
    if found.ndim != 2:
        raise InvalidParameter(
            f"data must be a table: rows × columns.\n  found:  {found.ndim} dimensions. Reshape your data\n"
            "  do:     give a 2-D array or a data frame; one column is X.reshape(-1, 1)"
        )
    return read_numbers(found)


def columns_of(data: Data) -> list[tuple[Any, str]]:
    """Each column of a data frame with the name of its type: by place, as names may be numbers, or occur twice."""
    if hasattr(data, "column_names"):  # Arrow
        return [(column.to_numpy(), str(column.type)) for column in data.columns]
    pandas = hasattr(data, "iloc")  # else polars
    columns = [data.iloc[:, j] for j in range(data.shape[1])] if pandas else data.get_columns()
    return [(column.to_numpy(), str(column.dtype)) for column in columns]


def read_number_column(name: str, values: object, kind: str) -> Vector:
    """A column of numbers of a data frame; one whose type says that it holds text is refused by its name."""
    if kind.lower().startswith(TEXTS):
        raise InvalidParameter(
            f"the column {name} holds text, and a fit needs numbers.\n  found:  the type {kind}\n"
            "  do:     put sf.learn.CategoryEncoder(categories={…}) before, or leave the column out"
        )
    if np.asarray(values).dtype.kind in "mM":
        raise InvalidParameter(
            f"the column {name} holds times, and a fit needs numbers.\n  found:  the type {kind}\n"
            "  do:     give days since a public date, or leave the column out"
        )
    return read_column(values)


def take_rows(data: Data, rows: NDArray[np.bool_]) -> Data:
    """Some rows of a table of any kind."""
    if hasattr(data, "iloc"):
        return data.iloc[np.flatnonzero(rows)]
    if hasattr(data, "column_names") or hasattr(data, "get_columns"):
        return data[np.flatnonzero(rows)] if hasattr(data, "get_columns") else data.take(np.flatnonzero(rows))
    return np.asarray(data)[rows]


def matrix_of(columns: list[Vector], rows: int) -> Matrix:
    return np.column_stack(columns) if columns else np.zeros((rows, 0))


def read_column(values: object) -> Vector:
    """One column of numbers."""
    found = np.asarray(values)
    if found.ndim == 2 and 1 in found.shape:
        found = found.reshape(-1)
    if found.ndim != 1:
        raise InvalidParameter(
            f"a column has one dimension.\n  found:  {found.ndim}\n  do:     give one value for each row"
        )
    return read_numbers(found)


def read_numbers(found: NDArray[Any]) -> NDArray[np.float64]:
    """As doubles; what is no number becomes NaN."""
    if found.dtype.kind in "fiub":
        return found.astype(np.float64)
    if found.dtype.kind == "c":
        raise InvalidParameter("Complex data not supported.\n  found:  complex numbers\n  do:     give real ones")
    if found.dtype.kind not in "OUS":
        raise InvalidParameter(f"data must be numbers.\n  found:  {found.dtype}\n  do:     give integers or floats")
    flat = np.fromiter((as_number(value) for value in found.flat), np.float64, found.size)
    return flat.reshape(found.shape)


def as_number(value: object) -> float:
    """A double, or NaN: nothing is refused because of a value."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def read_labels(values: object, classes: Sequence[Hashable], rows: int) -> NDArray[np.int64]:
    """The place of each label among the public classes; −1 for any other label, which then counts as nothing."""
    found = np.asarray(values, dtype=object) if isinstance(values, list | tuple) else np.asarray(values)
    if found.ndim == 2 and 1 in found.shape:
        found = found.reshape(-1)
    if found.ndim != 1 or found.size != rows:
        raise InvalidParameter(
            f"y must have one label for each row.\n  found:  shape {found.shape} for {rows} rows\n"
            "  do:     give a column of labels"
        )
    place = {plain(label): k for k, label in enumerate(classes)}
    return np.fromiter((place.get(plain(label), -1) for label in found), np.int64, found.size)


def plain(label: Any) -> Hashable:
    """A NumPy scalar as the Python object that it equals; what has no hash is no label."""
    label = label.item() if isinstance(label, np.generic) else label
    try:
        hash(label)  # a tuple that holds a list calls itself hashable
    except TypeError:
        return None
    found: Hashable = label
    return found


@dataclass(frozen=True, eq=False)
class Bounds:
    """Public ends of each column. Values outside are moved to the next end; they are never read from data."""

    low: Vector
    high: Vector

    @staticmethod
    def of(bounds: "BoundsLike | Bounds | None", columns: int, names: Sequence[str] | None, what: str) -> "Bounds":
        """From (low, high), of numbers or of one for each column, or from {column: (low, high)}."""
        if isinstance(bounds, Bounds):
            bounds = (bounds.low, bounds.high)
        if bounds is None:
            raise InvalidParameter(
                f"{what} are needed: without them one person could move the fit without limit.\n  found:  none\n"
                f"  do:     give {what.replace(' ', '_')}=(low, high), public numbers for all columns or for each;"
                " never the range of the data"
            )
        if isinstance(bounds, Mapping):
            bounds = bounds_by_name(bounds, names)
        if isinstance(bounds, list) and all(isinstance(pair, tuple) for pair in bounds):
            raise InvalidParameter(
                f"{what} are the low ends, then the high ends.\n  found:  a list of pairs\n"
                "  do:     give (lows, highs), such as ([0, 0], [100, 30]), or {column: (low, high)}"
            )
        try:
            low, high = (np.broadcast_to(np.asarray(end, np.float64), (columns,)).copy() for end in bounds)
        except (TypeError, ValueError) as problem:
            raise InvalidParameter(
                f"{what} must be two ends for each of {columns} columns.\n  found:  something else\n"
                "  do:     give (low, high), each a number or a list of one number for each column"
            ) from problem
        for end in (*low, *high):
            checks.number(what, float(end), -1e100, 1e100, allowed="numbers from -1e100 to 1e100")
        if not np.all(low <= high):
            raise InvalidParameter(
                f"{what} must have low ≤ high.\n  found:  a column where low is above high\n  do:     exchange them"
            )
        return Bounds(low, high)

    @property
    def middle(self) -> Vector:
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> Vector:
        """Half of the width; 1 for a column that bounds make constant."""
        width = self.high / 2 - self.low / 2
        return np.where(width > 0, width, 1.0)

    def scale(self, rows: Matrix) -> Matrix:
        """Clipped to the bounds and scaled to [−1, 1]; NaN counts as the middle. Each value by itself."""
        with np.errstate(invalid="ignore", over="ignore"):
            found = (np.clip(rows, self.low, self.high) - self.middle) / self.half
        return np.clip(np.nan_to_num(found, nan=0.0), -1.0, 1.0)


def bounds_by_name(bounds: Mapping[str, tuple[float, float]], names: Sequence[str] | None) -> tuple[Any, Any]:
    if names is None or (missing := [name for name in names if name not in bounds]):
        found = "columns without names" if names is None else f"no bounds of {', '.join(missing)}"
        raise InvalidParameter(
            f"bounds by name need a bound for each named column.\n  found:  {found}\n"
            "  do:     give a data frame, and {column: (low, high)} for each of its columns"
        )
    return tuple(bounds[name][0] for name in names), tuple(bounds[name][1] for name in names)
