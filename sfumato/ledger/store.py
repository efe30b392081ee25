"""What a ledger asks of a database: serialised, durable transactions. The SQL is written once, in `tables.py`."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

Row = Sequence[object]


class Transaction(Protocol):
    """Inside a transaction that no other one runs beside."""

    def run(self, sql: str, *values: object) -> list[Row]:
        """Execute one statement (with ? for values); the rows it gives."""

    def write(self, sql: str, *values: object) -> None:
        """Execute one statement whose outcome nobody waits for, now or together with the next one or the commit."""

    def changed(self, sql: str, *values: object) -> int:
        """Execute one statement; how many rows it changed."""


class Store(Protocol):
    """A place that keeps one ledger."""

    def exists(self) -> bool:
        """Is there anything at this place?"""

    def create(self, at: Transaction) -> None:
        """Empty tables, where there are none."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction, alone; durable when the block is left, undone if it raises.

        Raises `CommitUnknown` if it cannot be said whether it was committed.
        """

    def reading(self) -> AbstractContextManager[Transaction]:
        """A look at one committed state."""

    def take_turn(self, name: int) -> bool:
        """Be the only one who does `name`, until it is given back or this process dies; False if another one is."""

    def end_turn(self, name: int) -> None:
        """Give it back."""

    def close(self) -> None:
        """Let go of the database."""
