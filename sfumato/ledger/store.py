"""The database under a ledger: serialised, durable transactions. The SQL is written once, in `tables.py`."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

Row = Sequence[object]


class Transaction(Protocol):
    """A transaction. While one writes, no other one runs."""

    def run(self, sql: str, *values: object) -> list[Row]:
        """Execute one statement (with ? for values), and return its rows."""

    def write(self, sql: str, *values: object) -> None:
        """Execute one statement whose result is not needed: now, or with the next statement or the commit."""

    def update(self, sql: str, *values: object) -> int:
        """Execute one statement, and return how many rows it changed."""


class Store(Protocol):
    """A database that holds one ledger."""

    def exists(self) -> bool:
        """Is there a ledger, or at least a file, at this place?"""

    def create(self, transaction: Transaction) -> None:
        """Create empty tables where there are none."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """An exclusive transaction: committed durably when the block ends, rolled back if it raises.

        Raises `CommitUnknown` if it is unknown whether it was committed.
        """

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that reads one committed state."""

    def try_lock(self, name: int) -> bool:
        """Take the lock `name` if it is free. It is freed by `unlock`, or when this process ends."""

    def unlock(self, name: int) -> None:
        """Free the lock `name`."""

    def close(self) -> None:
        """Close the connection; the next transaction opens another one."""
