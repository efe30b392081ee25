"""What an engine must be, so that a curator can trust it with data."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol


class Engine(Protocol):
    """SQL text in, exact integers out. It sees no budget and no noise; the curator asks it only what it has charged.

    It promises:
    - to read only. No statement changes anything that another statement, or anybody else, could see.
    - one moment for one question: statements inside `snapshot` see the same data.
    - to be locked down: no files, network, extensions, settings or catalog within reach of a statement, names of tables
      mean the owner's tables, and how values are written as texts hangs on nobody's session or locale.
    - exact integers: what is summed as integers is returned without rounding, as anything that int() takes.
    - to stop: Ctrl-C and a time limit end the statement in the engine too, with an exception. The limit is far above
      what any allowed question takes; whether it is reached must not be something that an analyst can steer.
    - its dialect's word: sfumato/sql/dialects says how it is told of each function, and the same texts give the same
      numbers here as on every other engine (tests/curator/test_conformance.py).
    """

    @property
    def dialect(self) -> str:
        """The name of a file in sfumato/sql/dialects."""

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of one statement: keys as float, str, bool or None, then integers, or lists of them."""

    def snapshot(self) -> AbstractContextManager[None]:
        """All that this thread runs inside sees one moment."""

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        """table → column → type, as the engine calls it, of all that it may read: metadata alone, and public."""

    def check(self, sql: str) -> None:
        """Raises unless this statement could be run now: there is an engine, and it knows the names, types and
        functions. The statement is bound and not run: whether this raises depends on no value of any row."""

    def close(self) -> None:
        """Let go of files and connections; the next statement opens them again."""
