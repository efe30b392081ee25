"""DuckDB as an engine, locked down: it reads the owner's tables and nothing else."""

import glob
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from sfumato.engines.csv import column_names, load_csv
from sfumato.engines.interruptible import run_interruptible
from sfumato.errors import EngineUnavailable, PolicyError

FILES = (".parquet", ".csv")
OTHERS = (".tsv", ".txt", ".gz", ".zst", ".zip", ".json", ".jsonl", ".ndjson", ".xls", ".xlsx", ".arrow", ".feather")
PARQUET = "read_parquet(?, hive_partitioning = false)"  # no columns made from folder names
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
    """A DuckDB file, a Parquet or CSV file, or a folder of these; opened read-only."""

    path: Path
    dialect: str = "duckdb"
    timeout: float | None = None  # seconds for one statement
    memory: int = 0  # MiB for all statements; 0: DuckDB's default
    spill: str = ""  # folder for data that do not fit in memory; "": DuckDB's default, beside the file
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)
    _opening: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _schema: dict[str, dict[str, str]] | None = field(default=None, init=False, repr=False)  # while it is open
    _kept: "weakref.WeakSet[KeptTable]" = field(default_factory=weakref.WeakSet, init=False, repr=False)

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of one statement. Each has its own cursor: on a shared one, threads fetch each other's rows."""
        cursor = self.connection().cursor()

        def fetch() -> list[tuple[object, ...]]:
            with cursor:
                return cursor.execute(sql).fetchall()

        return run_interruptible(fetch, cursor.interrupt, self.timeout)

    def keep(self, sql: str, name: str) -> "KeptTable":
        """The result of one statement as a temporary table of this name, which lasts until it is closed."""
        cursor = self.connection().cursor()
        try:
            create = f"CREATE TEMP TABLE {name} AS {sql}"
            run_interruptible(lambda: cursor.execute(create), cursor.interrupt, self.timeout)
        except BaseException:
            cursor.close()
            raise
        table = KeptTable(cursor, self.timeout)
        self._kept.add(table)
        return table

    def connection(self) -> duckdb.DuckDBPyConnection:
        with self._opening:
            if self._connection is None:
                self._connection = open_locked_down(self.path, limit_settings(self.memory, self.spill))
            return self._connection

    def snapshot(self) -> AbstractContextManager[None]:
        """Nothing to do: nobody can write to the open database."""
        return nullcontext()

    def schema(self) -> dict[str, dict[str, str]]:
        """The schema of the open database, even if its file was replaced meanwhile. Does not load files."""
        require_version(duckdb.__version__)
        if self._connection is None and files(self.path):
            return schema(self.path)
        if self._schema is None:  # it cannot change while it is open
            self._schema = schema_from_rows(self.run(COLUMNS))
        return self._schema

    def check(self, sql: str) -> None:
        """DESCRIBE binds a statement; it neither plans nor runs it."""
        self.run(f"DESCRIBE {sql}")

    def untyped(self) -> frozenset[str]:
        """The tables whose columns are all text because they come from CSV files."""
        return untyped(self.path)

    def close(self) -> None:
        for table in list(self._kept):
            table.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = self._schema = None


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
            return run_interruptible(lambda: self.cursor.execute(sql).fetchall(), self.cursor.interrupt, self.timeout)

    def close(self) -> None:
        with self._lock:
            self.cursor.close()


def require_version(found: str) -> None:
    """Raises EngineUnavailable unless the tests were run with this version of DuckDB."""
    parts = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if not OLDEST <= parts < BEYOND:
        raise EngineUnavailable(
            "this version of DuckDB is not supported.\n"
            f"  found:  {found}\n"
            f"  do:     pip install 'duckdb>={'.'.join(map(str, OLDEST))},<{BEYOND[0]}'"
        )


def open_locked_down(path: Path, limits: tuple[str, ...] = ()) -> duckdb.DuckDBPyConnection:
    """A connection to the owner's tables from which nothing else can be reached."""
    require_version(duckdb.__version__)
    plain = files(path)
    connection = duckdb.connect(":memory:") if plain else open_database(path)
    try:
        for file in plain:
            load_file(connection, file)
        if not plain:
            refuse_shadowed_functions(connection)
        if connection.execute(LOCKED).fetchone() != (True, False, OPTIMIZER):  # unless this process has it open already
            for setting in (*limits, *SETTINGS):
                connection.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection


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
    """The names of the tables at this place that come from CSV files."""
    return frozenset(
        file.stem.lower() for file in (files(path) if path.exists() else []) if file.suffix.lower() == ".csv"
    )


def schema(path: Path) -> dict[str, dict[str, str]]:
    """table → column → type, from metadata only: the footer of a Parquet file, the first line of a CSV file."""
    tables: dict[str, dict[str, str]] = {}
    plain = files(path)
    connection = duckdb.connect(":memory:") if plain else open_database(path)
    try:
        for file in plain:
            tables[file.stem.lower()] = {fold_case(name): kind for name, kind in columns_of(connection, file)}
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


def files(path: Path) -> list[Path]:
    """The Parquet and CSV files at this place, one for each table; none if the place is a DuckDB file."""
    if not path.exists():
        raise PolicyError(
            f"there is no database.\n  found:  no {path.name}\n  do:     give a DuckDB, Parquet or CSV file"
        )
    inside = (file for file in path.iterdir() if not file.name.startswith(".")) if path.is_dir() else [path]
    found = sorted(file for file in inside if file.suffix.lower() in FILES)
    if path.is_dir() and not found:
        raise PolicyError(f"this folder holds no data.\n  found:  no {' or '.join(FILES)} file in {path.name}")
    if path.is_file() and not found and path.suffix.lower() in OTHERS:
        raise PolicyError(
            f"this kind of file is not supported.\n  found:  {path.name}\n"
            "  do:     convert it to Parquet, or to CSV in UTF-8 with commas between fields"
        )
    tables: dict[str, Path] = {}
    for file in found:
        if not file.is_file():
            raise PolicyError(f"a table must be one file.\n  found:  {file.name}, which is a folder or a broken link")
        other = tables.setdefault(file.stem.lower(), file)
        if other != file:
            raise PolicyError(
                f"two files have the same table name, {file.stem.lower()}.\n  found:  {other.name} and {file.name}\n"
                "  do:     keep one of them in the folder"
            )
    return found


def load_file(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Load a file as a table. Types are not guessed: every column of a CSV file is text.

    Otherwise one person's value could change the type of a column, and with it everybody else's values.
    """
    table = quote_name(file.stem.lower())
    if file.suffix.lower() == ".csv":
        load_csv(connection, table, file)
        return
    try:
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {PARQUET}", [glob.escape(str(file))])
    except duckdb.Error as problem:
        raise bad_parquet(file) from problem


def columns_of(connection: duckdb.DuckDBPyConnection, file: Path) -> list[tuple[str, str]]:
    """(name, type) of each column of the table that `load_file` creates."""
    if file.suffix.lower() == ".csv":
        return [(name, "VARCHAR") for name in column_names(file)]
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {PARQUET}", [glob.escape(str(file))]).fetchall()
    except duckdb.Error as problem:
        raise bad_parquet(file) from problem
    return [(str(row[0]), str(row[1])) for row in rows]


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
