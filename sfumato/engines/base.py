"""The contract of an engine: the conditions under which a curator can trust it with data."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol


class Engine(Protocol):
    """SQL text in, exact integers out. It sees neither budget nor noise; the curator runs only what it has charged.

    It promises:
    - Read-only access. No statement changes anything that another statement, or anybody else, could see.
    - Snapshots. All statements inside `snapshot` see the same data.
    - Isolation. A statement cannot reach files, network, extensions, settings or the catalog. Table names mean the
      owner's tables. How a value is written as text depends on nobody's session or locale.
    - Exact integers. Sums of integers are returned without rounding, as anything that int() accepts.
    - Interruption. Ctrl-C and a time limit end the statement in the engine too, with an exception. The limit is far
      above the time of any allowed question; an analyst must not be able to decide whether it is reached.
    - Kept tables, if it has `keep`: they last until they are closed. Where the data may change, `mark(sql)` tells,
      inside a snapshot, which state of the data a statement reads; a kept table serves where the mark is the same.
    - Silence. It prints nothing, and what it raises goes to the operator's log only.
    - Its dialect. sfumato/sql/dialects says how each function is written, and the same texts give the same numbers as
      on every other engine (tests/engines/test_conformance.py).
    """

    @property
    def dialect(self) -> str:
        """The name of its file in sfumato/sql/dialects."""

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of one statement: keys as float, str, bool or None, then integers, or lists of them."""

    def snapshot(self) -> AbstractContextManager[None]:
        """All statements that this thread runs inside see one state of the data."""

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        """table → column → type, in the engine's own terms, of all that it may read. Metadata only, and public."""

    def check(self, sql: str) -> None:
        """Raises unless this statement could run now: the engine is there and knows the names, types and functions.

        The statement is bound but not run, so the outcome depends on no value of any row.
        """

    def close(self) -> None:
        """Close files and connections; the next statement opens them again."""
