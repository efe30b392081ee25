"""DuckDB, locked down: reads the owner's tables, and nothing else."""

import csv
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from sfumato.engines.attended import attended
from sfumato.errors import PolicyError

FILES = (".parquet", ".csv")
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
    _kept: "weakref.WeakSet[Kept]" = field(default_factory=weakref.WeakSet, init=False, repr=False)

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of one statement. Each has a cursor of its own: on a shared one, threads fetch each other's rows."""
        cursor = self.connection().cursor()

        def fetched() -> list[tuple[object, ...]]:
            with cursor:
                return cursor.execute(sql).fetchall()

        return attended(fetched, cursor.interrupt, self.timeout)

    def keep(self, sql: str) -> "Kept":
        """What one statement gives, as a table that stays until it is closed."""
        cursor = self.connection().cursor()
        try:
            attended(lambda: cursor.execute(f"CREATE TEMP TABLE kept AS {sql}"), cursor.interrupt, self.timeout)
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
        """Of what is open, also should another file lie in its place by now."""
        return listed(self.run(COLUMNS))

    def close(self) -> None:
        for table in list(self._kept):
            table.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


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
        """The rows of a statement about the table `kept`; one at a time, as they share a cursor."""
        with self._turn:
            return attended(lambda: self.cursor.execute(sql).fetchall(), self.cursor.interrupt, self.timeout)

    def close(self) -> None:
        with self._turn:
            self.cursor.close()


def opened(path: Path, limits: tuple[str, ...] = ()) -> duckdb.DuckDBPyConnection:
    plain = files(path)
    if plain:
        connection = duckdb.connect(":memory:")
        for file in plain:
            source, values = scan(file)
            connection.execute(f"CREATE TABLE {quoted(file.stem.lower())} AS SELECT * FROM {source}", values)
    else:
        connection = duckdb.connect(str(path), read_only=True)
    if connection.execute(LOCKED).fetchone() != (True, False, OPTIMIZER):  # this process may have it open already
        for setting in (*limits, *SETTINGS):
            connection.execute(setting)
    return connection


def schema(path: Path) -> dict[str, dict[str, str]]:
    """table → column → type: metadata alone. Of Parquet the footer is read, of CSV the first line."""
    found: dict[str, dict[str, str]] = {}
    plain = files(path)
    connection = duckdb.connect(":memory:") if plain else duckdb.connect(str(path), read_only=True)
    try:
        for file in plain:
            source, values = scan(file)
            rows = connection.execute(f"DESCRIBE SELECT * FROM {source}", values).fetchall()
            found[file.stem.lower()] = {str(row[0]).lower(): str(row[1]) for row in rows}
        if not plain:
            found = listed(connection.execute(COLUMNS).fetchall())
    finally:
        connection.close()
    return found


def listed(rows: list[tuple[object, ...]]) -> dict[str, dict[str, str]]:
    """table → column → type."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        found.setdefault(str(table).lower(), {})[str(column).lower()] = str(kind)
    return found


def files(path: Path) -> list[Path]:
    """The Parquet and CSV files at this place; none if it is a database."""
    if not path.exists():
        raise PolicyError(
            f"there is no database.\n  found:  no {path.name}\n  do:     give a DuckDB, Parquet or CSV file"
        )
    found = sorted(file for file in (path.iterdir() if path.is_dir() else [path]) if file.suffix in FILES)
    if path.is_dir() and not found:
        raise PolicyError(f"this folder holds no data.\n  found:  no {' or '.join(FILES)} file in {path.name}")
    return found


def scan(file: Path) -> tuple[str, list[str]]:
    """How a file is read. Nothing is sniffed: a column of a CSV file is text, whatever is in it, since one person's
    value could otherwise change the type, and with it the values, of everybody else's. And a line that is not as wide
    as the first, or no text, is padded or left out by itself: an error would tell of it, and stop all answers."""
    if file.suffix == ".parquet":
        return "read_parquet(?)", [str(file)]
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        names = next(csv.reader(lines), [])
    if not names or len({name.lower() for name in names}) < len(names):
        raise PolicyError(
            f"a CSV file begins with the names of its columns.\n  found:  {file.name}: none, or one twice"
        )
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    layout = "auto_detect=false, header=true, delim=',', quote='\"', escape='\"'"
    return f"read_csv(?, {layout}, null_padding=true, ignore_errors=true, columns={{{columns}}})", [str(file)]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
