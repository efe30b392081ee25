"""A table that an answer needs of an engine, and how it may be had from tables that were kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Row = tuple[object, ...]
Run = Callable[[str], list[Row]]


@dataclass(frozen=True)
class TableRequest:
    """`direct` is the statement that gives the table.

    Each of its columns is known by a text: the canonical text of the question for this column alone, with the salt.
    Columns of one such text hold the same numbers for the same groups, whatever stands beside them; another filter,
    key, bound or salt is another text.
    """

    direct: str
    keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # none: it is not kept
    made: Callable[[Sequence[int]], str] = field(default=lambda places: "", repr=False)  # keys, m0, m1, … of these
    read: str | None = None  # what is read of a kept table, if not keys and columns
    tables: tuple[tuple[str, str], ...] = ()  # (name, statement): what `read` reads, each from those before
    quick: Callable[[Run], list[Row]] | None = None  # serves instead of `direct`, in steps
