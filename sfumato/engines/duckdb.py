"""DuckDB, locked down: reads the owner's tables, and nothing else."""

import glob
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from sfumato.engines.csv import column_names, load_csv
from sfumato.engines.duckdb_macros import refuse_shadowed_functions
from sfumato.engines.interruptible import attended
from sfumato.errors import EngineUnavailable, PolicyError

FILES = (".parquet", ".csv")
OTHERS = (".tsv", ".txt", ".gz", ".zst", ".zip", ".json", ".jsonl", ".ndjson", ".xls", ".xlsx", ".arrow", ".feather")
PARQUET = "read_parquet(?, hive_partitioning = false)"  # no columns from names of folders
OLDEST, BEYOND = (2, 0), (3,)  # versions of DuckDB: as in pyproject.toml
COLUMNS = (
    "SELECT table_name, column_name, data_type FROM duckdb_columns()"
    " WHERE NOT internal AND schema_name = 'main' AND database_name = current_database()"
    " ORDER BY table_name, column_index"
)
OPTIMIZER = "top_n_window_elimination"
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
    """A database file, or a folder or file of Parquet or CSV; opened read-only."""

    path: Path
    dialect: str = "duckdb"
    timeout: float | None = None  # seconds for one statement
    memory: int = 0  # MiB for all of them; 0: what DuckDB takes by itself
    spill: str = ""  # folder for what does not fit; "": DuckDB's own choice, beside the file
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)
    _opening: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _listed: dict[str, dict[str, str]] | None = field(default=None, init=False, repr=False)  # of what is open
    _kept: "weakref.WeakSet[Kept]" = field(default_factory=weakref.WeakSet, init=False, repr=False)

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of one statement. Each has a cursor of its own: on a shared one, threads fetch each other's rows."""
        cursor = self.connection().cursor()

        def fetched() -> list[tuple[object, ...]]:
            with cursor:
                return cursor.execute(sql).fetchall()

        return attended(fetched, cursor.interrupt, self.timeout)

    def keep(self, sql: str, name: str) -> "Kept":
        """What one statement gives, as a table of this name that stays until it is closed."""
        cursor = self.connection().cursor()
        try:
            attended(lambda: cursor.execute(f"CREATE TEMP TABLE {name} AS {sql}"), cursor.interrupt, self.timeout)
        except BaseException:
            cursor.close()
            raise
        table = Kept(cursor, self.timeout)
        self._kept.add(table)
        return table

    def connection(self) -> duckdb.DuckDBPyConnection:
        with self._opening:
            if self._connection is None:
                self._connection = opened(self.path, bounded(self.memory, self.spill))
            return self._connection

    def snapshot(self) -> AbstractContextManager[None]:
        """Nobody can write to what is open here."""
        return nullcontext()

    def schema(self) -> dict[str, dict[str, str]]:
        """Of what is open, also should another file lie in its place by now. Files that are not yet loaded are not
        loaded for it."""
        require_version(duckdb.__version__)
        if self._connection is None and files(self.path):
            return schema(self.path)
        if self._listed is None:  # nobody can change what is open
            self._listed = listed(self.run(COLUMNS))
        return self._listed

    def check(self, sql: str) -> None:
        """DESCRIBE binds a statement; it neither plans nor runs it."""
        self.run(f"DESCRIBE {sql}")

    def untyped(self) -> frozenset[str]:
        """Tables whose columns are texts because they come from CSV files."""
        return untyped(self.path)

    def close(self) -> None:
        for table in list(self._kept):
            table.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = self._listed = None


def bounded(memory: int, spill: str) -> tuple[str, ...]:
    """The settings that keep it within these limits."""
    found = (f"SET memory_limit = '{memory}MiB'",) if memory else ()
    return (*found, f"SET temp_directory = {literal(spill)}") if spill else found


@dataclass(eq=False)
class Kept:
    """A table beside the data, in memory: temporary, of one cursor, so that no other statement can see it."""

    cursor: duckdb.DuckDBPyConnection = field(repr=False)
    timeout: float | None = None
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a statement about the table; one at a time, as they share a cursor."""
        with self._turn:
            return attended(lambda: self.cursor.execute(sql).fetchall(), self.cursor.interrupt, self.timeout)

    def close(self) -> None:
        with self._turn:
            self.cursor.close()


def require_version(found: str) -> None:
    """Raises EngineUnavailable unless this is a version of DuckDB that the tests were run with."""
    parts = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if not OLDEST <= parts < BEYOND:
        raise EngineUnavailable(
            "this version of DuckDB cannot be an engine.\n"
            f"  found:  {found}\n"
            f"  do:     pip install 'duckdb>={'.'.join(map(str, OLDEST))},<{BEYOND[0]}'"
        )


def opened(path: Path, limits: tuple[str, ...] = ()) -> duckdb.DuckDBPyConnection:
    require_version(duckdb.__version__)
    plain = files(path)
    connection = duckdb.connect(":memory:") if plain else open_database(path)
    try:
        for file in plain:
            load_file(connection, file)
        if not plain:
            refuse_shadowed_functions(connection)
        if connection.execute(LOCKED).fetchone() != (True, False, OPTIMIZER):  # this process may have it open already
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
            f"this is no database that DuckDB can open to read.\n  found:  {path.name}\n"
            f"  do:     give a DuckDB file that nobody writes to, or files that end in {' or '.join(FILES)}"
        ) from problem


def untyped(path: Path) -> frozenset[str]:
    """The tables at this place that come from CSV files."""
    return frozenset(
        file.stem.lower() for file in (files(path) if path.exists() else []) if file.suffix.lower() == ".csv"
    )


def schema(path: Path) -> dict[str, dict[str, str]]:
    """table → column → type: metadata alone. Of Parquet the footer is read, of CSV the first line."""
    found: dict[str, dict[str, str]] = {}
    plain = files(path)
    connection = duckdb.connect(":memory:") if plain else open_database(path)
    try:
        for file in plain:
            found[file.stem.lower()] = {folded(name): kind for name, kind in columns_of(connection, file)}
        if not plain:
            found = listed(connection.execute(COLUMNS).fetchall())
    finally:
        connection.close()
    return found


def listed(rows: list[tuple[object, ...]]) -> dict[str, dict[str, str]]:
    """table → column → type."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        found.setdefault(folded(str(table)), {})[folded(str(column))] = str(kind)
    return found


def files(path: Path) -> list[Path]:
    """The Parquet and CSV files at this place, one for each table; none if it is a database."""
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
            f"files of this kind are not read.\n  found:  {path.name}\n"
            "  do:     write it as Parquet, or as CSV with commas between fields, in UTF-8"
        )
    tables: dict[str, Path] = {}
    for file in found:
        if not file.is_file():
            raise PolicyError(f"a table is one file.\n  found:  {file.name}, which is a folder or leads nowhere")
        other = tables.setdefault(file.stem.lower(), file)
        if other != file:
            raise PolicyError(
                f"two files are one table, {file.stem.lower()}.\n  found:  {other.name} and {file.name}\n"
                "  do:     keep one of them in the folder"
            )
    return found


def load_file(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Make a table of a file. Nothing is sniffed: a column of a CSV file is text, whatever is in it, since one person's
    value could otherwise change the type, and with it the values, of everybody else's."""
    table = quoted(file.stem.lower())
    if file.suffix.lower() == ".csv":
        load_csv(connection, table, file)
        return
    try:
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {PARQUET}", [glob.escape(str(file))])
    except duckdb.Error as problem:
        raise bad_parquet(file) from problem


def columns_of(connection: duckdb.DuckDBPyConnection, file: Path) -> list[tuple[str, str]]:
    """(name, type) of each column that `load_file` makes."""
    if file.suffix.lower() == ".csv":
        return [(name, "VARCHAR") for name in column_names(file)]
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {PARQUET}", [glob.escape(str(file))]).fetchall()
    except duckdb.Error as problem:
        raise bad_parquet(file) from problem
    return [(str(row[0]), str(row[1])) for row in rows]


def bad_parquet(file: Path) -> PolicyError:
    return PolicyError(
        f"a file cannot be read as Parquet.\n  found:  {file.name}: damaged, or something else\n  do:     write it anew"
    )


def folded(name: str) -> str:
    """A name in lower case, as far as DuckDB takes upper and lower case for the same: "Ä" and "ä" are two names."""
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
