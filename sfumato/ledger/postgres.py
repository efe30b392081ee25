"""A ledger in a PostgreSQL database, for several curators on one budget. Needs the extra `postgres`.

One ledger per schema. An advisory lock, held for the length of a transaction, serialises writers, so the order of lines
is the order of commits. A writer that crashes, or is silent for a minute, loses the lock and its transaction.
"""

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

try:
    import psycopg
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError("a ledger in PostgreSQL needs psycopg: pip install 'sfumato[postgres]'") from missing

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier, Literal

from sfumato.errors import CommitUnknown, InvalidParameter, LedgerUnavailable
from sfumato.ledger import question_lock, tables
from sfumato.ledger.store import Row, Transaction

Connection = psycopg.Connection[tuple[object, ...]]

PATIENCE = 60_000  # milliseconds to wait for another curator or the network
DEFAULTS = {"connect_timeout": 10, "tcp_user_timeout": PATIENCE, "application_name": "sfumato ledger"}
BEGIN_WRITING = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"  # each statement sees all commits before our lock
    " SET LOCAL search_path TO {schema}, pg_temp; SET LOCAL synchronous_commit TO on;"
    " SET LOCAL lock_timeout TO {patience}; SET LOCAL idle_in_transaction_session_timeout TO {patience};"
    " SELECT pg_advisory_xact_lock({lock})"
)
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO {schema}, pg_temp"


@dataclass(eq=False)
class PostgresStore:
    """The ledger in one schema of the database at `dsn`, which may hold a password and is never shown."""

    dsn: str = field(repr=False)
    schema: str = "sfumato"
    _connection: Connection | None = field(default=None, init=False, repr=False)
    _inherited: list[Connection] = field(default_factory=list, init=False, repr=False)
    _process: int = field(default_factory=os.getpid, init=False, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    @staticmethod
    def at(address: str) -> "PostgresStore":
        """The store at postgresql://host/database?schema=clinic.

        The schema is required. Each data set has one of its own: two data sets on one ledger would share answers.
        """
        parts = urlsplit(address)
        settings = parse_qsl(parts.query, keep_blank_values=True)
        schemas = [value for name, value in settings if name == "schema"]
        if len(schemas) != 1 or not schemas[0]:
            raise InvalidParameter(
                "the address of a ledger must name its schema.\n  found:  none, or several\n"
                "  do:     add one, such as postgresql://db.example/privacy?schema=clinic"
            )
        rest = urlencode([pair for pair in settings if pair[0] != "schema"], quote_via=quote)
        return PostgresStore(urlunsplit(parts._replace(query=rest)), schemas[0])

    def exists(self) -> bool:
        with self.reading() as transaction:
            place = SQL("{}.head").format(Identifier(self.schema)).as_string(None)
            return transaction.run("SELECT to_regclass(?)", place)[0][0] is not None

    def create(self, transaction: Transaction) -> None:
        transaction.run(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(self.schema)).as_string(None))
        tables.create(transaction, whole="BIGINT", blob="BYTEA")

    @contextmanager
    def writing(self) -> Iterator["PostgresTransaction"]:
        with self._transaction(BEGIN_WRITING) as connection:
            transaction = PostgresTransaction(connection)
            yield transaction
            self._commit(connection, transaction.waiting)

    @contextmanager
    def reading(self) -> Iterator["PostgresTransaction"]:
        with self._transaction(BEGIN_READING) as connection:
            yield PostgresTransaction(connection)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        """A transaction, rolled back at the end unless it was committed."""
        self._after_fork()
        with self._lock, translate_errors():
            connection = self._start(fill_in(begin, self.schema, PATIENCE))
            try:
                yield connection
            finally:
                self._end(connection)

    def _start(self, begin: str) -> Connection:
        """A connection inside a transaction; a new connection if the old one was lost."""
        before, self._connection = self._connection, self._connection or connect(self.dsn)
        try:
            self._connection.execute(begin)
        except psycopg.OperationalError:
            if before is None or not before.closed:
                self._end(self._connection)
                raise
            self._connection = connect(self.dsn)
            self._connection.execute(begin)
        return self._connection

    def _commit(self, connection: Connection, waiting: list[tuple[str, tuple[object, ...]]]) -> None:
        """Raises `CommitUnknown` if the connection is lost before the server replies."""
        if self._process != os.getpid():
            raise LedgerUnavailable(
                "this ledger cannot be used in a forked process.\n  found:  a fork during a transaction\n"
                "  do:     fork between questions; nothing was charged or released"
            )
        try:
            with connection.pipeline():  # after an error the server skips the rest, also the COMMIT
                for sql, values in waiting:
                    connection.execute(sql, values)
                done = connection.execute("COMMIT", prepare=False)
        except psycopg.Error as problem:
            if connection.closed or problem.sqlstate is None:
                raise CommitUnknown(
                    "the connection to the ledger broke during a commit.\n"
                    "  found:  no reply from the server\n"
                    "  do:     ask again with the same key; until then it counts as charged, and nothing was released"
                ) from problem
            raise
        if done.statusmessage != "COMMIT":  # a transaction that had failed replies ROLLBACK
            raise LedgerUnavailable(
                f"the ledger's server did not commit.\n  found:  {done.statusmessage}\n"
                "  do:     ask again; nothing was charged or released"
            )

    def _end(self, connection: Connection) -> None:
        """Roll back an open transaction; close the connection if that fails."""
        if self._process != os.getpid():
            return
        try:
            if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        if connection.closed:
            self._connection = None

    def _after_fork(self) -> None:
        """A forked child neither uses nor closes its parent's connection."""
        if self._process != os.getpid():
            if self._connection is not None:
                self._inherited.append(self._connection)
            self._lock, self._connection, self._process = threading.RLock(), None, os.getpid()

    def try_lock(self, name: int) -> bool:
        """A lock of our session at the server, which frees it when the connection ends.

        Threads share that session, so a lock of this process comes first.
        """
        if not question_lock.try_lock(None, self, name):
            return False
        try:
            with self.reading() as transaction:
                ((locked,),) = transaction.run("SELECT pg_try_advisory_lock(?)", self._lock_number(name))
        except BaseException:
            question_lock.unlock(None, self, name)
            raise
        if not locked:
            question_lock.unlock(None, self, name)
        return bool(locked)

    def unlock(self, name: int) -> None:
        try:
            with self.reading() as transaction:
                transaction.run("SELECT pg_advisory_unlock(?)", self._lock_number(name))
        finally:
            question_lock.unlock(None, self, name)

    def _lock_number(self, name: int) -> int:
        """The schema is part of it, since all ledgers of a server share its advisory locks."""
        digest = hashlib.sha256(f"sfumato turn {self.schema} {name}".encode()).digest()
        return int.from_bytes(digest[:8], signed=True)

    def close(self) -> None:
        self._after_fork()
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()


@dataclass(frozen=True)
class PostgresTransaction:
    """A transaction that sends statements without results together with the next one, to save round trips."""

    connection: Connection
    waiting: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)

    def run(self, sql: str, *values: object) -> list[Row]:
        done = self._execute(sql, values)
        return list(done.fetchall()) if done.description else []

    def write(self, sql: str, *values: object) -> None:
        self.waiting.append((to_psycopg(sql), values))

    def update(self, sql: str, *values: object) -> int:
        return self._execute(sql, values).rowcount

    def _execute(self, sql: str, values: tuple[object, ...]) -> psycopg.Cursor[tuple[object, ...]]:
        while self.waiting:
            self.connection.execute(*self.waiting.pop(0))
        return self.connection.execute(to_psycopg(sql), values) if values else self.connection.execute(sql)


@lru_cache(maxsize=64)
def fill_in(begin: str, schema: str, patience: int) -> str:
    """A BEGIN text with the names and numbers of one ledger."""
    lock = int.from_bytes(hashlib.sha256(f"sfumato ledger {schema}".encode()).digest()[:8], signed=True)
    return SQL(begin).format(schema=Identifier(schema), lock=Literal(lock), patience=Literal(patience)).as_string(None)


@lru_cache(maxsize=64)
def to_psycopg(sql: str) -> str:
    """A statement with %s in place of ?. Ours hold a ? for each value, and neither ? nor % otherwise."""
    return sql.replace("?", "%s")


def connect(dsn: str) -> Connection:
    settings = {**DEFAULTS, **conninfo_to_dict(dsn), "client_encoding": "UTF8"}
    connection = psycopg.connect(make_conninfo("", **settings), autocommit=True)  # type: ignore[arg-type]
    try:
        fsync = connection.execute("SHOW fsync").fetchone()
        if fsync != ("on",):
            raise LedgerUnavailable(
                "this server may lose committed charges in a power cut.\n  found:  fsync is off\n"
                "  do:     turn fsync on in the server's settings"
            )
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors of the database into errors of the ledger. None of them depends on data."""
    try:
        yield
    except psycopg.Error as problem:
        reason = problem.diag.message_primary or str(problem).partition("\n")[0] or type(problem).__name__
        raise LedgerUnavailable(
            f"the ledger cannot be used.\n  found:  {reason}\n"
            "  do:     check that the server can be reached, holds this ledger, and can be written to; nothing was"
            " released, and what was charged stays charged"
        ) from problem
