"""DuckDB as an engine, locked down: it reads the owner's tables and nothing else."""

import glob
import math
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import duckdb

from sfumato.engines.csv import column_names, likely_separator, load_csv
from sfumato.engines.files import FILES, Delimiters, Source, is_pattern, sources
from sfumato.engines.views import load_views, state_of, view_folder
from sfumato.errors import EngineUnavailable, PolicyError

T = TypeVar("T")
RETRY = 0.05  # seconds until a request to stop is repeated: the first may have come before the work began


def run_interruptible(
    work: Callable[[], T], stop: Callable[[], None], seconds: float | None = None, patience: float = math.inf
) -> T:
    """The result of `work`, run in a thread of its own; `stop` ends it early on Ctrl-C or after `seconds`. Nobody waits
    longer than `patience` for it to end then.

    An engine that handles Ctrl-C in the thread that called it waits for its other threads, which do not know of it. So
    the main thread, which gets Ctrl-C, only waits, and tells the engine to stop.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    cancelled, done = threading.Event(), threading.Event()

    def go() -> None:
        try:
            if not cancelled.is_set():
                results.append(work())
        except BaseException as problem:
            errors.append(problem)
        finally:
            done.set()

    worker = threading.Thread(target=go, name="sfumato engine", daemon=True)
    try:
        worker.start()
        late = not done.wait(seconds)
    except BaseException:  # Ctrl-C
        cancelled.set()
        stop_worker(worker, done, stop, patience)
        raise
    if late:
        stop_worker(worker, done, stop, patience)
        raise TimeoutError(f"stopped after {seconds:g} s")
    if errors:
        raise errors[0]
    return results[0]


def stop_worker(
    worker: threading.Thread, done: threading.Event, stop: Callable[[], None], patience: float = math.inf
) -> None:
    """Ask the work to stop until it has ended, or for so many seconds."""
    end = time.monotonic() + patience
    while worker.is_alive() and not done.is_set() and time.monotonic() < end:
        with suppress(Exception):  # the work may have just ended by itself
            stop()
        done.wait(RETRY)


PARQUET = "read_parquet(?, hive_partitioning = {partitioned}, hive_types_autocast = false)"
OLDEST, BEYOND = (2, 0), (3,)  # versions of DuckDB, as in pyproject.toml
COLUMNS = (
    "SELECT table_name, column_name, data_type FROM duckdb_columns()"
    " WHERE NOT internal AND schema_name = 'main' AND database_name = current_database()"
    " ORDER BY table_name, column_index"
)
OPTIMIZER = "top_n_window_elimination"
FUNCTIONS = (
    "SELECT function_name, internal FROM system.main.duckdb_functions()"
    " WHERE internal OR (database_name = current_database() AND schema_name = 'main')"
)
LOCKED = "SELECT " + ", ".join(
    f"current_setting('{name}')" for name in ("lock_configuration", "enable_external_access", "disabled_optimizers")
)
SETTINGS = (
    "SET python_enable_replacements = false",
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    f"SET disabled_optimizers = '{OPTIMIZER}'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


@dataclass
class DuckDB:
    """A DuckDB file, a Parquet or CSV file, a folder of these, or a pattern of Parquet files; opened read-only."""

    path: Path
    dialect: str = "duckdb"
    timeout: float | None = None  # seconds for one statement
    memory: int = 0  # MiB for all statements; 0: DuckDB's default
    spill: str = ""  # folder for data that do not fit in memory; "": DuckDB's default, beside the file
    delimiters: Delimiters = ()  # (table, character) of CSV files without commas
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)
    _opening: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _schema: dict[str, dict[str, str]] | None = field(default=None, init=False, repr=False)  # while it is open
    _untyped: frozenset[str] | None = field(default=None, init=False, repr=False)  # likewise
    _lasting: tuple[str, ...] = field(default=(), init=False, repr=False)  # likewise: views that were loaded
    _adopted: bool = field(default=False, init=False, repr=False)  # nothing could open it again
    _kept: "weakref.WeakSet[KeptTable]" = field(default_factory=weakref.WeakSet, init=False, repr=False)

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of one statement. Each has its own cursor: on a shared one, threads fetch each other's rows."""
        with self.connection().cursor() as cursor:
            return fetch(cursor, sql, self.timeout)

    def keep(self, sql: str, name: str) -> "KeptTable":
        """The result of one statement as a temporary table of this name, which lasts until it is closed."""
        cursor = self.connection().cursor()
        try:
            fetch(cursor, f"CREATE TEMP TABLE {name} AS {sql}", self.timeout)
        except BaseException:
            cursor.close()
            raise
        table = KeptTable(cursor, self.timeout)
        self._kept.add(table)
        return table

    def connection(self) -> duckdb.DuckDBPyConnection:
        with self._opening:
            if self._connection is None:
                self._connection, self._lasting = open_with_views(
                    self.path, limit_settings(self.memory, self.spill), self.delimiters
                )
            return self._connection

    def adopt(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Use this connection, in memory, whose tables are there already; it is locked down first."""
        require_version(duckdb.__version__)
        for setting in (*limit_settings(self.memory, self.spill), *SETTINGS):
            connection.execute(setting)
        self._connection, self._adopted = connection, True

    def snapshot(self) -> AbstractContextManager[None]:
        """Nothing to do: nobody can write to the open database."""
        return nullcontext()

    def schema(self) -> dict[str, dict[str, str]]:
        """The schema of the open database, even if its file was replaced meanwhile. Does not load files."""
        if self._connection is None:
            require_version(duckdb.__version__)
            if sources(self.path, self.delimiters):
                return schema(self.path, self.delimiters)
        if self._schema is None:  # it cannot change while it is open
            self._schema = schema_from_rows(self.run(COLUMNS))
        return self._schema

    def check(self, sql: str) -> None:
        """DESCRIBE binds a statement; it neither plans nor runs it."""
        self.run(f"DESCRIBE {sql}")

    def lasting(self) -> tuple[str, ...]:
        """Descriptions of the views beside the data, if they are of these data (engines/views.py)."""
        self.connection()
        return self._lasting

    def untyped(self) -> frozenset[str]:
        """The tables whose columns are all text because they come from CSV files."""
        if self._adopted:
            return frozenset()
        if self._connection is None:
            return untyped(self.path)
        if self._untyped is None:  # the tables of an open database stay as they were loaded
            self._untyped = untyped(self.path)
        return self._untyped

    def close(self) -> None:
        for table in list(self._kept):
            table.close()
        if self._connection is not None and not self._adopted:
            self._connection.close()
            self._connection = self._schema = self._untyped = None
            self._lasting = ()


def fetch(cursor: duckdb.DuckDBPyConnection, sql: str, timeout: float | None) -> list[tuple[object, ...]]:
    """The rows of a statement, which Ctrl-C and the time limit interrupt."""
    return run_interruptible(lambda: cursor.execute(sql).fetchall(), cursor.interrupt, timeout)


def limit_settings(memory: int, spill: str) -> tuple[str, ...]:
    """The settings for these limits."""
    settings = (f"SET memory_limit = '{memory}MiB'",) if memory else ()
    return (*settings, f"SET temp_directory = {quote_text(spill)}") if spill else settings


@dataclass(eq=False)
class KeptTable:
    """A temporary table in memory. It belongs to one cursor, so no other statement can see it."""

    cursor: duckdb.DuckDBPyConnection = field(repr=False)
    timeout: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a statement on the table; one statement at a time, since they share a cursor."""
        with self._lock:
            return fetch(self.cursor, sql, self.timeout)

    def close(self) -> None:
        with self._lock:
            self.cursor.close()

    def add(self, sql: str, name: str) -> None:
        """Another table beside it, made from it."""
        self.run(f"CREATE TEMP TABLE {name} AS {sql}")


def require_version(found: str) -> None:
    """Raises EngineUnavailable unless the tests were run with this version of DuckDB."""
    parts = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if not OLDEST <= parts < BEYOND:
        raise EngineUnavailable(
            "this version of DuckDB is not supported.\n"
            f"  found:  {found}\n"
            f"  do:     pip install 'duckdb>={'.'.join(map(str, OLDEST))},<{BEYOND[0]}'"
        )


def open_locked_down(
    path: Path, limits: tuple[str, ...] = (), delimiters: Delimiters = ()
) -> duckdb.DuckDBPyConnection:
    """A connection to the owner's tables from which nothing else can be reached."""
    return open_with_views(path, limits, delimiters)[0]


def open_with_views(
    path: Path, limits: tuple[str, ...] = (), delimiters: Delimiters = ()
) -> tuple[duckdb.DuckDBPyConnection, tuple[str, ...]]:
    """A locked-down connection, and descriptions of the views beside the data, which it can read too."""
    require_version(duckdb.__version__)
    state = state_of(path, delimiters) if view_folder(path).exists() else ""
    plain = sources(path, delimiters)
    views: tuple[str, ...] = ()
    connection = duckdb.connect(":memory:") if plain else open_database(path)
    try:
        for source in plain:
            load_source(connection, source)
        if not plain:
            refuse_shadowed_functions(connection)
        if connection.execute(LOCKED).fetchone() != (True, False, OPTIMIZER):  # unless this process has it open already
            views = load_views(connection, path, state) if state else ()
            if state and state_of(path, delimiters) != state:
                raise EngineUnavailable("the data were changed while they were opened.\n  do:     open them again")
            for setting in (*limits, *SETTINGS):
                connection.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection, views


def open_database(path: Path) -> duckdb.DuckDBPyConnection:
    try:
        return duckdb.connect(str(path), read_only=True)
    except duckdb.Error as problem:
        raise PolicyError(
            f"DuckDB cannot open this database for reading.\n  found:  {path.name}\n"
            f"  do:     give a DuckDB file that nobody writes to, or files that end in {' or '.join(FILES)}"
        ) from problem


def refuse_shadowed_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Raises PolicyError if the owner's database has a macro named like a function of DuckDB. Reads names only.

    DuckDB looks up a function among the owner's macros first, even `count`, `least` and `+`. A statement would then
    mean whatever the macro says, and no promise about it would hold.
    """
    names = {True: set[str](), False: set[str]()}
    for name, internal in connection.execute(FUNCTIONS).fetchall():
        names[internal].add(str(name).lower())
    if both := sorted(names[True] & names[False]):
        connection.close()
        raise PolicyError(
            "the database has macros named like DuckDB's own functions, and statements would call the macros instead.\n"
            f"  found:  {', '.join(both[:5])}\n"
            f"  do:     DROP MACRO {both[0]}, or rename it"
        )


def untyped(path: Path) -> frozenset[str]:
    """The names of the tables at this place whose columns may be texts of any kind: of CSV files, and partitions."""
    listed = sources(path) if is_pattern(path) or path.exists() else []
    return frozenset(source.name for source in listed if not source.is_parquet or source.partitioned)


def likely_delimiters(path: Path) -> Delimiters:
    """For a draft of a policy: the tables of CSV files whose first line has other signs between names than is usual."""
    listed = [one for one in sources(path) if not one.is_parquet]
    found = [(one, likely_separator(one.files[0], one.separator)) for one in listed]
    return tuple((one.name, sign) for one, sign in found if sign != one.separator)


def schema(path: Path, delimiters: Delimiters = ()) -> dict[str, dict[str, str]]:
    """table → column → type, from metadata only: the footer of a Parquet file, the first line of a CSV file."""
    tables: dict[str, dict[str, str]] = {}
    plain = sources(path, delimiters)
    connection = duckdb.connect(":memory:") if plain else open_database(path)
    try:
        for source in plain:
            tables[source.name] = {fold_case(name): kind for name, kind in columns_of(connection, source)}
        if not plain:
            tables = schema_from_rows(connection.execute(COLUMNS).fetchall())
    finally:
        connection.close()
    return tables


def schema_from_rows(rows: list[tuple[object, ...]]) -> dict[str, dict[str, str]]:
    """table → column → type, from rows of (table, column, type)."""
    tables: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        tables.setdefault(fold_case(str(table)), {})[fold_case(str(column))] = str(kind)
    return tables


def load_source(connection: duckdb.DuckDBPyConnection, source: Source) -> None:
    """Load files as a table. Types are not guessed: every column of a CSV file is text, and so are partitions.

    Otherwise one person's value could change the type of a column, and with it everybody else's values.
    """
    table = quote_name(source.name)
    if not source.is_parquet:
        load_csv(connection, table, source.files[0], source.separator)
        return
    try:
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {parquet(source)}", [escaped_paths(source)])
    except duckdb.Error as problem:
        raise bad_parquet(source.files[0]) from problem


def columns_of(connection: duckdb.DuckDBPyConnection, source: Source) -> list[tuple[str, str]]:
    """(name, type) of each column of the table that `load_source` creates."""
    if not source.is_parquet:
        return [(name, "VARCHAR") for name in column_names(source.files[0], source.separator)]
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {parquet(source)}", [escaped_paths(source)]).fetchall()
    except duckdb.Error as problem:
        raise bad_parquet(source.files[0]) from problem
    return [(str(row[0]), str(row[1])) for row in rows]


def parquet(source: Source) -> str:
    """Columns are made from the names of folders only where these are partitions."""
    return PARQUET.format(partitioned=str(source.partitioned).lower())


def escaped_paths(source: Source) -> list[str]:
    return [glob.escape(str(file)) for file in source.files]


def bad_parquet(file: Path) -> PolicyError:
    return PolicyError(
        f"a file cannot be read as Parquet.\n  found:  {file.name}: damaged, or of another kind\n"
        "  do:     export it again"
    )


def fold_case(name: str) -> str:
    """A name with its ASCII letters in lower case, as DuckDB compares names: "Ä" and "ä" are two names."""
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
