"""A ledger in one SQLite file: write-ahead log, every commit flushed to the disk, one writer at a time.

SQLite must not be carried across a fork: a child would believe that it holds the locks of its parent, and the parent,
leaving first, would delete the log that the child still writes to. So connections are closed just before every fork;
parent and child open their own when they next need one.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.errors import CommitUnknown, LedgerDamaged, LedgerUnavailable
from sfumato.ledger import question_lock as turns
from sfumato.ledger import tables
from sfumato.ledger.store import Row, Transaction

PATIENCE = 60.0  # seconds to wait for another process
MEMORY = Path(":memory:")
ROOMY = "page_size=16384"  # in memory a commit takes time for every page there is: fewer, larger ones
# synchronous=NORMAL would forget charges of answers already given
DURABLE = ("journal_mode=WAL", "synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON", "trusted_schema=OFF")


@dataclass(eq=False)
class SqliteStore:
    """One connection, used by one thread at a time."""

    path: Path
    _connection: sqlite3.Connection | None = field(default=None, init=False, repr=False)
    _inherited: sqlite3.Connection | None = field(default=None, init=False, repr=False)  # kept, so that it stays open
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def __post_init__(self) -> None:
        STORES.add(self)

    def exists(self) -> bool:
        return self.path != MEMORY and self.path.exists()

    def create(self, at: Transaction) -> None:
        tables.create(at, whole="INTEGER", blob="BLOB")

    @contextmanager
    def writing(self) -> Iterator["SqliteTransaction"]:
        with self._begun("BEGIN IMMEDIATE") as connection:
            yield SqliteTransaction(connection)
            with told(self.path, LedgerUnavailable if self._inherited else CommitUnknown):
                self._checked().execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator["SqliteTransaction"]:
        with self._begun("BEGIN") as connection:
            yield SqliteTransaction(connection)

    @contextmanager
    def _begun(self, begin: str) -> Iterator[sqlite3.Connection]:
        """A transaction, undone when this is left unless it was committed."""
        with self._lock, told(self.path):
            connection = self._checked()
            connection.execute(begin)
            try:
                yield connection
            finally:
                if self._inherited is None and connection.in_transaction:
                    self._undo(connection)

    def _undo(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()  # closing undoes as well, and what comes next starts afresh

    def _checked(self) -> sqlite3.Connection:
        if self._inherited is not None:
            raise LedgerUnavailable(
                "this ledger does not reach into a forked process.\n  found:  one in memory, or in the middle of a"
                " transaction\n  do:     keep it in a file; fork between questions"
            )
        if self._connection is None:
            self._connection = connected(self.path)
        return self._connection

    def take_turn(self, name: int) -> bool:
        return turns.take(self._turns, self, name)

    def end_turn(self, name: int) -> None:
        turns.give_back(self._turns, self, name)

    @property
    def _turns(self) -> Path | None:
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

    def changed(self, sql: str, *values: object) -> int:
        return self.connection.execute(sql, values).rowcount


def connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if there and "head" not in there:
            raise sqlite3.DatabaseError("this is a database, but not a ledger")
        for setting in (ROOMY, *DURABLE) if path == MEMORY else DURABLE:
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def told(path: Path, broken: type[LedgerUnavailable] = LedgerUnavailable) -> Iterator[None]:
    """SQLite's errors in our words. None of them says anything about data.

    A write or flush that fails while committing leaves it open whether the log holds the commit: that is `broken`.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        code = getattr(problem, "sqlite_errorcode", -1) & 0xFF
        if code == sqlite3.SQLITE_CORRUPT or "decode" in str(problem):  # texts that are none
            raise LedgerDamaged(
                f"the file of this ledger is damaged.\n  found:  {path.name}\n"
                "  do:     restore the newest copy that verifies; do not answer from this one"
            ) from problem
        raise (broken if code == sqlite3.SQLITE_IOERR else LedgerUnavailable)(
            f"the ledger cannot be used.\n  found:  {path.name}: {problem}\n"
            "  do:     see that the file is there, is a ledger, can be written, and that the disk has room; nothing was"
            " released, and what was charged stays charged"
        ) from problem
