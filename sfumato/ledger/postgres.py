"""A ledger in a PostgreSQL database, for several curators on one budget. Needs the extra `postgres`.

One ledger per schema. Writers take turns by an advisory lock that the server holds for the length of a transaction, so
the order of lines is the order of commits; whoever dies, or is silent for a minute, loses his turn and his transaction.
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
from sfumato.ledger import question_lock as turns
from sfumato.ledger import tables
from sfumato.ledger.store import Row, Transaction

Connection = psycopg.Connection[tuple[object, ...]]

PATIENCE = 60_000  # milliseconds for another curator, or the network, to come round
USUAL = {"connect_timeout": 10, "tcp_user_timeout": PATIENCE, "application_name": "sfumato ledger"}
ALONE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"  # each statement sees all that was committed before our turn
    " SET LOCAL search_path TO {schema}, pg_temp; SET LOCAL synchronous_commit TO on;"
    " SET LOCAL lock_timeout TO {patience}; SET LOCAL idle_in_transaction_session_timeout TO {patience};"
    " SELECT pg_advisory_xact_lock({turn})"
)
LOOKING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO {schema}, pg_temp"


@dataclass(eq=False)
class PostgresStore:
    """The ledger in one schema of the database that `dsn` leads to, which may hold a password and is never shown."""

    dsn: str = field(repr=False)
    schema: str = "sfumato"
    _connection: Connection | None = field(default=None, init=False, repr=False)
    _inherited: list[Connection] = field(default_factory=list, init=False, repr=False)
    _process: int = field(default_factory=os.getpid, init=False, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    @staticmethod
    def at(address: str) -> "PostgresStore":
        """The store that postgresql://host/database?schema=clinic leads to. Each data set has a schema of its own: two
        on one ledger would share answers, so the schema must be said."""
        parts = urlsplit(address)
        settings = parse_qsl(parts.query, keep_blank_values=True)
        schemas = [value for name, value in settings if name == "schema"]
        if len(schemas) != 1 or not schemas[0]:
            raise InvalidParameter(
                "the address of a ledger names a schema for it.\n  found:  none, or several\n"
                "  do:     add one, such as postgresql://db.example/privacy?schema=clinic"
            )
        rest = urlencode([pair for pair in settings if pair[0] != "schema"], quote_via=quote)
        return PostgresStore(urlunsplit(parts._replace(query=rest)), schemas[0])

    def exists(self) -> bool:
        with self.reading() as now:
            place = SQL("{}.head").format(Identifier(self.schema)).as_string(None)
            return now.run("SELECT to_regclass(?)", place)[0][0] is not None

    def create(self, at: Transaction) -> None:
        at.run(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(self.schema)).as_string(None))
        tables.create(at, whole="BIGINT", blob="BYTEA")

    @contextmanager
    def writing(self) -> Iterator["PostgresTransaction"]:
        with self._begun(ALONE) as connection:
            now = PostgresTransaction(connection)
            yield now
            self._commit(connection, now.waiting)

    @contextmanager
    def reading(self) -> Iterator["PostgresTransaction"]:
        with self._begun(LOOKING) as connection:
            yield PostgresTransaction(connection)

    @contextmanager
    def _begun(self, begin: str) -> Iterator[Connection]:
        """A transaction, undone when this is left unless it was committed."""
        self._after_fork()
        with self._lock, told():
            connection = self._started(written_out(begin, self.schema, PATIENCE))
            try:
                yield connection
            finally:
                self._end(connection)

    def _started(self, begin: str) -> Connection:
        """A connection inside a transaction; a new one, if the one that we had turns out to be dead."""
        kept, self._connection = self._connection, self._connection or connected(self.dsn)
        try:
            self._connection.execute(begin)
        except psycopg.OperationalError:
            if kept is None or not kept.closed:
                self._end(self._connection)
                raise
            self._connection = connected(self.dsn)
            self._connection.execute(begin)
        return self._connection

    def _commit(self, connection: Connection, waiting: list[tuple[str, tuple[object, ...]]]) -> None:
        """Raises `CommitUnknown` if the connection is lost before the server has answered."""
        if self._process != os.getpid():
            raise LedgerUnavailable("a ledger does not reach into a process forked in the middle of a transaction")
        try:
            with connection.pipeline():  # after an error the server skips the rest, and so the COMMIT
                for sql, values in waiting:
                    connection.execute(sql, values)
                done = connection.execute("COMMIT", prepare=False)
        except psycopg.Error as problem:
            if connection.closed or problem.sqlstate is None:
                raise CommitUnknown(
                    "the connection to the ledger broke while a line was being committed.\n"
                    "  found:  no answer from the server\n"
                    "  do:     ask again with the same key; until then it counts as charged, and nothing was released"
                ) from problem
            raise
        if done.statusmessage != "COMMIT":  # the server's word for a transaction that had failed before
            raise LedgerUnavailable("the ledger's server did not commit; nothing was charged or released")

    def _end(self, connection: Connection) -> None:
        """Leave no transaction open, or else the connection."""
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
        """A child leaves its parent's connection alone: it neither speaks on it nor closes it."""
        if self._process != os.getpid():
            if self._connection is not None:
                self._inherited.append(self._connection)
            self._lock, self._connection, self._process = threading.RLock(), None, os.getpid()

    def take_turn(self, name: int) -> bool:
        """A lock of our session at the server, which frees it when the connection ends; threads share that session."""
        if not turns.take(None, self, name):
            return False
        try:
            with self.reading() as now:
                ((mine,),) = now.run("SELECT pg_try_advisory_lock(?)", self._turn(name))
        except BaseException:
            turns.give_back(None, self, name)
            raise
        if not mine:
            turns.give_back(None, self, name)
        return bool(mine)

    def end_turn(self, name: int) -> None:
        try:
            with self.reading() as now:
                now.run("SELECT pg_advisory_unlock(?)", self._turn(name))
        finally:
            turns.give_back(None, self, name)

    def _turn(self, name: int) -> int:
        """Ledgers of one server are told apart by their schemas."""
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
    """Statements that nobody waits for are sent together with the next one: a round trip each would be dear."""

    connection: Connection
    waiting: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)

    def run(self, sql: str, *values: object) -> list[Row]:
        done = self._executed(sql, values)
        return list(done.fetchall()) if done.description else []

    def write(self, sql: str, *values: object) -> None:
        self.waiting.append((translated(sql), values))

    def changed(self, sql: str, *values: object) -> int:
        return self._executed(sql, values).rowcount

    def _executed(self, sql: str, values: tuple[object, ...]) -> psycopg.Cursor[tuple[object, ...]]:
        while self.waiting:
            self.connection.execute(*self.waiting.pop(0))
        return self.connection.execute(translated(sql), values) if values else self.connection.execute(sql)


@lru_cache(maxsize=64)
def written_out(begin: str, schema: str, patience: int) -> str:
    turn = int.from_bytes(hashlib.sha256(f"sfumato ledger {schema}".encode()).digest()[:8], signed=True)
    return SQL(begin).format(schema=Identifier(schema), turn=Literal(turn), patience=Literal(patience)).as_string(None)


@lru_cache(maxsize=64)
def translated(sql: str) -> str:
    """Our statements with values hold a ? for each, and neither ? nor % otherwise."""
    return sql.replace("?", "%s")


def connected(dsn: str) -> Connection:
    settings = {**USUAL, **conninfo_to_dict(dsn), "client_encoding": "UTF8"}
    connection = psycopg.connect(make_conninfo("", **settings), autocommit=True)  # type: ignore[arg-type]
    try:
        flushed = connection.execute("SHOW fsync").fetchone()
        if flushed != ("on",):
            raise LedgerUnavailable(
                "this server may forget what it has committed.\n  found:  fsync is off\n"
                "  do:     turn it on; a charge must outlive a power cut"
            )
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def told() -> Iterator[None]:
    """The database's errors in our words. None of them says anything about data."""
    try:
        yield
    except psycopg.Error as problem:
        words = problem.diag.message_primary or str(problem).partition("\n")[0] or type(problem).__name__
        raise LedgerUnavailable(
            f"the ledger cannot be used.\n  found:  {words}\n"
            "  do:     see that the server can be reached, holds this ledger, and may be written to; nothing was"
            " released, and what was charged stays charged"
        ) from problem
