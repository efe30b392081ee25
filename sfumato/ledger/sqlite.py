"""A ledger in one SQLite file: write-ahead log, every commit flushed to the disk, one writer at a time.

A SQLite connection must not be used after a fork: a child would believe that it holds the locks of its parent, and a
parent that ends first would delete the log that the child still writes to. So connections are closed just before every
fork; parent and child open their own when they next need one.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sfumato.errors import CommitUnknown, LedgerDamaged, LedgerUnavailable
from sfumato.ledger import question_lock, tables
from sfumato.ledger.store import Row, Transaction

PATIENCE = 60.0  # seconds to wait for another process
MEMORY = Path(":memory:")
ROOMY = "page_size=16384"  # in memory a commit takes time for every page: use fewer, larger ones
# synchronous=NORMAL could lose the charge of an answer that was already sent
DURABLE = ("journal_mode=WAL", "synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON", "trusted_schema=OFF")


@dataclass(eq=False)
class SqliteStore:
    """One connection, used by one thread at a time."""

    path: Path
    _connection: sqlite3.Connection | None = field(default=None, init=False, repr=False)
    _inherited: sqlite3.Connection | None = field(
        default=None, init=False, repr=False
    )  # kept, since closing it would free locks
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def __post_init__(self) -> None:
        STORES.add(self)

    def exists(self) -> bool:
        return self.path != MEMORY and self.path.exists()

    def create(self, transaction: Transaction) -> None:
        tables.create(transaction, whole="INTEGER", blob="BLOB")

    @contextmanager
    def writing(self) -> Iterator["SqliteTransaction"]:
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield SqliteTransaction(connection)
            with translate_errors(self.path, LedgerUnavailable if self._inherited else CommitUnknown):
                self._open().execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator["SqliteTransaction"]:
        with self._transaction("BEGIN") as connection:
            yield SqliteTransaction(connection)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """A transaction, rolled back at the end unless it was committed."""
        with self._lock, translate_errors(self.path):
            connection = self._open()
            connection.execute(begin)
            try:
                yield connection
            finally:
                if self._inherited is None and connection.in_transaction:
                    try:
                        connection.execute("ROLLBACK")
                    except sqlite3.Error:
                        self.close()  # closing rolls back as well; the next transaction opens a new connection

    def _open(self) -> sqlite3.Connection:
        """The open connection, or a new one."""
        if self._inherited is not None:
            raise LedgerUnavailable(
                "this ledger cannot be used in a forked process.\n  found:  a ledger in memory, or a fork during a"
                " transaction\n  do:     keep the ledger in a file, and fork between questions"
            )
        if self._connection is None:
            self._connection = connect(self.path)
        return self._connection

    def try_lock(self, name: int) -> bool:
        return question_lock.try_lock(self._lock_file, self, name)

    def unlock(self, name: int) -> None:
        question_lock.unlock(self._lock_file, self, name)

    @cached_property
    def _lock_file(self) -> Path | None:
        return None if self.path == MEMORY else self.path.absolute().with_name(f"{self.path.name}.turns")

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.close()

    # ---- around a fork ----------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        self._lock.acquire()
        if self._connection is not None and self.path != MEMORY and not self._connection.in_transaction:
            self.close()

    def after_fork(self) -> None:
        self._lock.release()

    def in_child(self) -> None:
        self._lock = threading.RLock()
        self._connection, self._inherited = None, self._connection


STORES: "weakref.WeakSet[SqliteStore]" = weakref.WeakSet()
PAUSED: list[SqliteStore] = []


def before_fork() -> None:
    PAUSED[:] = list(STORES)
    for store in PAUSED:
        store.before_fork()


def after_fork() -> None:
    while PAUSED:
        PAUSED.pop().after_fork()


def in_child() -> None:
    while PAUSED:
        PAUSED.pop().in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=in_child)


@dataclass(frozen=True)
class SqliteTransaction:
    connection: sqlite3.Connection

    def run(self, sql: str, *values: object) -> list[Row]:
        return self.connection.execute(sql, values).fetchall()

    def write(self, sql: str, *values: object) -> None:
        self.connection.execute(sql, values)

    def update(self, sql: str, *values: object) -> int:
        return self.connection.execute(sql, values).rowcount


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if present and "head" not in present:
            raise sqlite3.DatabaseError("this is a database, but not a ledger")
        for setting in (ROOMY, *DURABLE) if path == MEMORY else DURABLE:
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def translate_errors(path: Path, broken: type[LedgerUnavailable] = LedgerUnavailable) -> Iterator[None]:
    """Turn errors of SQLite into errors of the ledger. None of them depends on data.

    `broken` is raised for a failed write or flush: during a commit, it is then unknown whether the log holds it.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        code = getattr(problem, "sqlite_errorcode", -1) & 0xFF
        if code == sqlite3.SQLITE_CORRUPT or "decode" in str(problem):  # a text that is not UTF-8
            raise LedgerDamaged(
                f"the file of this ledger is damaged.\n  found:  {path.name}\n"
                "  do:     restore the newest copy that verifies; do not answer from this one"
            ) from problem
        raise (broken if code == sqlite3.SQLITE_IOERR else LedgerUnavailable)(
            f"the ledger cannot be used.\n  found:  {path.name}: {problem}\n"
            "  do:     check that the file exists, is a ledger, can be written, and that the disk has space; nothing"
            " was released, and what was charged stays charged"
        ) from problem
