"""Private keys: the types that may be keys, and an order that reveals nothing about the data."""

from collections.abc import Hashable, Mapping
from datetime import date, datetime
from typing import TypeVar

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.noise.draw_table import Integers
from sfumato.noise.sampler import LARGEST

Key = TypeVar("Key", bound=Hashable)
Counts = Mapping[Key, int]
PLAIN = (str, bytes, bool, int, float, type(None), date, datetime, np.generic)


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
    keys = sorted(counts, key=_rank)
    return keys, np.fromiter((_whole(counts[key]) for key in keys), np.int64, len(keys))


def _rank(key: object) -> tuple[str, object]:
    """Type and value: values of one type can be compared, NaN included, which stands last."""
    if isinstance(key, tuple):
        return "tuple", tuple(_rank(part) for part in key)
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


def _whole(count: object) -> int:
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
