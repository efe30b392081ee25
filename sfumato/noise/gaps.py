"""Arrays of numbers ≥ 0 that are known exactly one by one, and as doubles all together."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.noise.powers import Floats

Numbers = NDArray[np.float64 | np.int64 | np.uint64]


@dataclass(frozen=True, eq=False, repr=False)
class Gaps:
    """`exactly(i)` is the i-th number; `near(start, stop)` are doubles within a relative 2⁻⁵³ of some, or +∞ beyond.

    Integers are subtracted as integers and rounded once, so that no bit of an int64 is lost.
    """

    size: int
    near: Callable[[int, int], Floats]
    exactly: Callable[[int], Fraction | int]


def finite_numbers(name: str, values: ArrayLike) -> Numbers:
    """A row of at least one finite number: float64, int64 or uint64, whichever holds them exactly."""
    row = np.asarray(values)
    if row.ndim != 1 or not row.size:
        raise InvalidParameter(
            f"{name} must be a row of numbers.\n  found:  an array of shape {row.shape}\n"
            "  do:     give one dimension and at least one number"
        )
    if row.dtype.kind in "bi":
        return row.astype(np.int64, copy=False)
    if row.dtype.kind == "u":
        return row.astype(np.uint64, copy=False)
    if row.dtype.kind != "f" or row.dtype.itemsize > 8:
        raise InvalidParameter(
            f"{name} must be floats or integers.\n  found:  {row.dtype}\n  do:     give float64 or int64"
        )
    row = row.astype(np.float64, copy=False)
    if not (row.min() > -np.inf and row.max() < np.inf):  # also refuses NaN
        raise InvalidParameter(
            f"{name} must be finite.\n  found:  an infinity or NaN\n"
            "  do:     clamp values to public bounds and replace NaN before this"
        )
    return row


def below_top(scores: ArrayLike) -> Gaps:
    """How far each score lies below the highest one."""
    row = finite_numbers("scores", scores)
    top = row.max()
    if row.dtype == np.float64:
        summit = Fraction(float(top))

        def near(start: int, stop: int) -> Floats:
            with np.errstate(over="ignore"):
                difference: Floats = top - row[start:stop]
            return difference

        return Gaps(row.size, near, lambda i: summit - Fraction(float(row[i])))
    # Differences modulo 2⁶⁴ are the differences: they are below 2⁶⁴, signed or not.
    unsigned, highest = row.view(np.uint64), np.array(top).view(np.uint64)[()]
    return Gaps(
        row.size,
        lambda start, stop: (highest - unsigned[start:stop]).astype(np.float64),
        lambda i: int(top) - int(row[i]),
    )


def above_zero(name: str, values: ArrayLike) -> Gaps:
    """Numbers that are ≥ 0 already."""
    row = finite_numbers(name, values)
    if row.min() < 0:
        raise InvalidParameter(f"{name} must be ≥ 0.\n  found:  a negative number\n  do:     give numbers ≥ 0")
    return Gaps(
        row.size,
        lambda start, stop: row[start:stop].astype(np.float64),
        lambda i: Fraction(row[i].item()),
    )
