"""Private values as arrays of one kind. Types and shapes are public, so these may be refused; values never are."""

from collections.abc import Iterable
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.noise.draw_table import Integers
from sfumato.noise.sampler import LARGEST

EXACT = (np.float16, np.float32, np.float64)
WHOLE = (int, np.integer, np.bool_)
MOST_EXACT = 2**53


def read_numbers(value: ArrayLike) -> Integers | NDArray[np.float64]:
    """int64 for integers, those beyond ±(2⁶³ − 1) put there; float64 for floats, and for integers among floats."""
    found = value if isinstance(value, np.ndarray | np.generic) else _as_array(value)
    array = np.asarray(found)
    if array.dtype.kind in "ib":
        whole: Integers = np.maximum(array.astype(np.int64, copy=False), -LARGEST)  # new memory
        return whole
    if array.dtype.kind == "u":
        return np.minimum(array.astype(np.uint64), np.uint64(LARGEST)).astype(np.int64)
    if array.dtype.type in EXACT:
        return array.astype(np.float64)
    if array.dtype.kind == "O":
        return _objects(array)
    raise _refusal(str(array.dtype))


def _as_array(value: object) -> NDArray[np.object_] | Integers | int | float:
    """Lists as objects: NumPy would choose the type of a list by the values in it."""
    if isinstance(value, float):
        return value
    if type(value) is int:
        return _clamp(value)
    if isinstance(value, list) and set(map(type, value)) == {int} and -LARGEST <= min(value) <= max(value) <= LARGEST:
        return np.array(value, np.int64)  # the same, much quicker
    try:
        return np.array(value, dtype=object)
    except ValueError as problem:
        raise _refusal("a ragged list") from problem


def _objects(array: NDArray[np.object_]) -> Integers | NDArray[np.float64]:
    kinds = {type(x) for x in array.flat}
    if all(issubclass(kind, WHOLE) for kind in kinds) and kinds:
        flat: Iterable[int] = (_clamp(int(x)) for x in array.flat)
        return np.fromiter(flat, np.int64, array.size).reshape(array.shape)
    if all(issubclass(kind, (*WHOLE, float, *EXACT)) for kind in kinds):
        return np.fromiter((_float(x) for x in array.flat), np.float64, array.size).reshape(array.shape)
    raise _refusal(", ".join(sorted(kind.__name__ for kind in kinds)))


def _clamp(x: int) -> int:
    return max(-LARGEST, min(LARGEST, x))


def _float(x: SupportsFloat) -> float:
    """A double. Integers among floats stop at ±2⁵³: beyond, the nearest doubles of neighbours can be far apart."""
    return float(max(-MOST_EXACT, min(MOST_EXACT, int(x))) if isinstance(x, WHOLE) else x)


def shift_left(values: Integers, bits: int) -> Integers:
    """v·2^bits, saturated."""
    if bits == 0:
        return values
    most = LARGEST >> bits if bits < 63 else 0
    inside = np.abs(values) <= most
    return np.where(inside, np.where(inside, values, 0) << min(bits, 63), np.where(values < 0, -LARGEST, LARGEST))


def _refusal(found: str) -> InvalidParameter:
    return InvalidParameter(
        f"values must be numbers, or an array of them.\n  found:  {found}\n  do:     give integers or floats"
    )
