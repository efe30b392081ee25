"""Reading private inputs: numbers, counts per key, values of a stream.

Types and shapes are public, so an unsuitable one is refused. Values never are.
"""

from collections.abc import Hashable, Iterable, Mapping
from datetime import date, datetime
from typing import SupportsFloat, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.noise.draw_table import Integers
from sfumato.noise.sampler import LARGEST

EXACT = (np.float16, np.float32, np.float64)
WHOLE = (int, np.integer, np.bool_)
MOST_EXACT = 2**53
Key = TypeVar("Key", bound=Hashable)
Counts = Mapping[Key, int]
PLAIN = (str, bytes, bool, int, float, type(None), date, datetime, np.generic)


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
        return clamp_integer(value)
    if isinstance(value, list) and set(map(type, value)) == {int} and -LARGEST <= min(value) <= max(value) <= LARGEST:
        return np.array(value, np.int64)  # the same, much quicker
    try:
        return np.array(value, dtype=object)
    except ValueError as problem:
        raise _refusal("a ragged list") from problem


def _objects(array: NDArray[np.object_]) -> Integers | NDArray[np.float64]:
    kinds = {type(x) for x in array.flat}
    if all(issubclass(kind, WHOLE) for kind in kinds) and kinds:
        flat: Iterable[int] = (clamp_integer(int(x)) for x in array.flat)
        return np.fromiter(flat, np.int64, array.size).reshape(array.shape)
    if all(issubclass(kind, (*WHOLE, float, *EXACT)) for kind in kinds):
        return np.fromiter((_float(x) for x in array.flat), np.float64, array.size).reshape(array.shape)
    raise _refusal(", ".join(sorted(kind.__name__ for kind in kinds)))


def clamp_integer(x: int) -> int:
    """x, at most ±(2⁶³ − 1)."""
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


def read_stream_value(value: object) -> int:
    """A private number as a whole one of any size. Types are public."""
    if not isinstance(value, int | np.integer | np.bool_):
        raise InvalidParameter(
            f"values of a stream must be whole numbers.\n  found:  a {type(value).__name__}\n"
            "  do:     count in whole steps and give integers"
        )
    return int(value)


def _refusal(found: str) -> InvalidParameter:
    return InvalidParameter(
        f"values must be numbers, or an array of them.\n  found:  {found}\n  do:     give integers or floats"
    )


def sorted_counts(counts: Mapping[Key, int]) -> tuple[list[Key], Integers]:
    """Keys sorted by type and value, and their counts, of which those below 0 count as 0.

    A mapping remembers in which order its keys came, and a set gives hints of it; whatever is made of these two lists
    depends on which keys there are and on nothing else. The type of keys and counts is public.
    """
    if not isinstance(counts, Mapping):
        raise InvalidParameter(
            f"counts must be a mapping from keys to numbers of people.\n  found:  a {type(counts).__name__}\n"
            "  do:     give a dictionary such as {'Oslo': 12, 'Rome': 7}"
        )
    keys = sorted(counts, key=_key_order)
    return keys, np.fromiter((_whole_count(counts[key]) for key in keys), np.int64, len(keys))


def _key_order(key: object) -> tuple[str, object]:
    """Type and value: values of one type can be compared, NaN included, which stands last."""
    if isinstance(key, tuple):
        return "tuple", tuple(_key_order(part) for part in key)
    if isinstance(key, np.generic):
        key = key.item()
    if key is None:
        return "NoneType", 0
    if isinstance(key, float):
        return "float", (key != key, 0.0 if key != key else key)
    if isinstance(key, PLAIN):
        return type(key).__name__, key.isoformat() if isinstance(key, date) else key
    raise InvalidParameter(
        f"keys must be plain values that have an order.\n  found:  a {type(key).__name__}\n"
        "  do:     give strings, numbers, dates, or tuples of them"
    )


def _whole_count(count: object) -> int:
    if not isinstance(count, int | np.integer):
        raise InvalidParameter(
            f"counts are whole numbers of people.\n  found:  a {type(count).__name__}\n  do:     give integers"
        )
    return min(max(int(count), 0), LARGEST)


def read_counts(counts: object) -> Integers:
    """A row of counts as int64, those below 0 as 0."""
    row = np.asarray(counts)
    if row.ndim != 1 or row.dtype.kind not in "biu":
        raise InvalidParameter(
            "counts must be a row of whole numbers of people.\n"
            f"  found:  {row.dtype} of shape {row.shape}\n  do:     give one integer for each key"
        )
    top = np.minimum(row, LARGEST) if row.dtype.kind == "u" else row
    found: Integers = np.maximum(top.astype(np.int64), 0)
    return found
