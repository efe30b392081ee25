"""PostgreSQL as an engine: it reads the owner's tables and nothing else. Needs the extra `postgres`.

Give the curator its own role, which may only read the tables of the policy:

    CREATE ROLE curator LOGIN; GRANT USAGE ON SCHEMA public TO curator; GRANT SELECT ON visits, wards TO curator;
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

try:
    import psycopg
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError("an engine on PostgreSQL needs psycopg: pip install 'sfumato[postgres]'") from missing

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Composable, Identifier, Literal

from sfumato.errors import PolicyError

Connection = psycopg.Connection[tuple[object, ...]]

OLDEST = 140_000  # version of the server
CHECKED = "_sf_checked"  # name of the prepared statement in `check`
DEFAULTS = {"connect_timeout": 10, "application_name": "sfumato curator"}
SETTINGS = {  # how a value is written as text must not depend on the server's configuration
    "datestyle": "ISO, YMD", "timezone": "UTC", "intervalstyle": "postgres", "extra_float_digits": "1",
    "bytea_output": "hex", "standard_conforming_strings": "on",
    "row_security": "off",  # a hidden row must be an error, not a smaller answer
    "jit": "off",  # our statements are long: compiling them takes longer than running them
}  # fmt: skip
COLUMNS = """
SELECT c.relname, a.attname, CASE t.typtype WHEN 'b' THEN format_type(t.oid, NULL)
    WHEN 'd' THEN 'domain over ' || format_type(t.typbasetype, NULL) ELSE 'other' END
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = %s AND c.relkind IN ('r', 'p', 'm', 'f', 'v') AND a.attnum > 0 AND NOT a.attisdropped
    AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
ORDER BY c.relname, a.attnum
"""


@dataclass(eq=False)
class Postgres:
    """The tables in one namespace of the database at `dsn`, which may hold a password and is never shown.

    Each question has its own connection with one read-only transaction, which no other thread or forked child uses.
    Data may change between questions, but not within one.
    """

    dsn: str = field(repr=False)
    namespace: str = "public"
    timeout: float = 3600.0  # seconds for one statement
    dialect: str = field(default="postgres", init=False)
    _local: threading.local = field(default_factory=threading.local, init=False, repr=False)

    def run(self, sql: str) -> list[tuple[object, ...]]:
        with self._transaction() as connection:
            try:
                return list(connection.execute(sql.encode()).fetchall())
            except BaseException:  # also Ctrl-C: nobody waits for the rest
                connection.cancel_safe(timeout=5.0)
                raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._transaction():
            yield

    def schema(self) -> dict[str, dict[str, str]]:
        """From the catalog, what the role may read. A domain is "domain over integer"; a composite type is "other"."""
        tables: dict[str, dict[str, str]] = {}
        with self._transaction() as connection:
            for table, column, kind in connection.execute(COLUMNS, [self.namespace]).fetchall():
                tables.setdefault(str(table), {})[str(column)] = str(kind)
        return tables

    def check(self, sql: str) -> None:
        """PREPARE binds a statement. It would be planned when it is run, and it never is."""
        with self._transaction() as connection:
            connection.execute(f"PREPARE {CHECKED} AS {sql}".encode())
            connection.execute(f"DEALLOCATE {CHECKED}")

    def close(self) -> None:
        """Nothing to do: no connection outlives its question."""

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """The transaction that this thread is in, or a new one."""
        outer: Connection | None = getattr(self._local, "connection", None)
        if outer is not None:
            yield outer
            return
        with connect(self.dsn) as connection:
            connection.execute(begin_reading(self.namespace, self.timeout))
            self._local.connection = connection
            try:
                yield connection
            finally:
                self._local.connection = None


@contextmanager
def connect(dsn: str) -> Iterator[Connection]:
    settings = {**DEFAULTS, **conninfo_to_dict(dsn), "client_encoding": "UTF8"}
    connection = psycopg.connect(make_conninfo("", **settings), autocommit=True)  # type: ignore[arg-type]
    try:
        encoding = connection.info.parameter_status("server_encoding")
        if connection.info.server_version < OLDEST or encoding != "UTF8":
            raise PolicyError(
                "this server is not supported as an engine.\n"
                f"  found:  version {connection.info.server_version // 10000}, encoding {encoding}\n"
                "  do:     use PostgreSQL 14 or newer, and a database with encoding UTF8"
            )
        yield connection
    finally:
        connection.close()  # rolls back a transaction that has only read


def begin_reading(namespace: str, timeout: float) -> str:
    """BEGIN, and settings for the length of the transaction."""
    chosen = {**SETTINGS, "statement_timeout": str(int(timeout * 1000)), "search_path": None}
    parts: list[Composable] = [SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")]
    for name, value in chosen.items():
        to = Literal(value) if value is not None else SQL("{}, pg_temp").format(Identifier(namespace))
        parts.append(SQL("SET LOCAL {} TO {}").format(Identifier(name), to))
    return SQL("; ").join(parts).as_string(None)
