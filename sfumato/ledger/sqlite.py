"""A ledger in one SQLite file: write-ahead log, every commit flushed to the disk, one writer at a time."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.store import Row

PATIENCE = 60.0  # seconds to wait for another process
SCHEMA = {"bytes": "BLOB", "whole": "INTEGER"}


@dataclass
class SqliteStore:
    """One connection, used by one thread at a time; a forked child opens its own."""

    path: Path
    _connection: sqlite3.Connection | None = field(default=None, init=False, repr=False)
    _process: int = field(default=0, init=False, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def types(self) -> dict[str, str]:
        return SCHEMA

    @contextmanager
    def writing(self) -> Iterator["SqliteTransaction"]:
        with self._turn() as connection, told(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator["SqliteTransaction"]:
        with self._turn() as connection, told(self.path):
            connection.execute("BEGIN")
            try:
                yield SqliteTransaction(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _turn(self) -> Iterator[sqlite3.Connection]:
        if self._process != os.getpid():  # a connection must not be used on both sides of a fork
            self._lock, self._connection, self._process = threading.RLock(), None, os.getpid()
        with self._lock:
            if self._connection is None:
                with told(self.path):
                    self._connection = connected(self.path)
            yield self._connection

    def close(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()
        self._connection = None


@dataclass(frozen=True)
class SqliteTransaction:
    connection: sqlite3.Connection

    def run(self, sql: str, *values: object) -> list[Row]:
        return self.connection.execute(sql, values).fetchall()

    def changed(self, sql: str, *values: object) -> int:
        return self.connection.execute(sql, values).rowcount


def connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")  # NORMAL would forget charges of answers already given
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


@contextmanager
def told(path: Path) -> Iterator[None]:
    """SQLite's errors in our words. None of them says anything about data."""
    try:
        yield
    except sqlite3.Error as problem:
        raise LedgerUnavailable(
            f"the ledger cannot be used.\n  found:  {path.name}: {problem}\n"
            "  do:     see that the file is there, is a ledger, can be written, and that the disk has room; nothing was"
            " released, and what was charged stays charged"
        ) from problem
