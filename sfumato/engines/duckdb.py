"""DuckDB, locked down: reads the owner's tables, and nothing else."""

from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from sfumato.errors import PolicyError

FILES = {".parquet": "read_parquet", ".csv": "read_csv"}
SETTINGS = (
    "SET disabled_optimizers = 'top_n_window_elimination'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


@dataclass
class DuckDB:
    """A database file, or a folder or file of Parquet or CSV; opened read-only."""

    path: Path
    dialect: str = "duckdb"
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of one statement."""
        return self.connection().execute(sql).fetchall()

    def schema(self) -> dict[str, dict[str, str]]:
        """table → column → type: public metadata, no values."""
        rows = self.run(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        )
        found: dict[str, dict[str, str]] = {}
        for table, column, kind in rows:
            found.setdefault(str(table).lower(), {})[str(column).lower()] = str(kind)
        return found

    def connection(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = opened(self.path)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def opened(path: Path) -> duckdb.DuckDBPyConnection:
    if not path.exists():
        raise PolicyError(
            f"there is no database.\n  found:  no {path.name}\n  do:     give a DuckDB, Parquet or CSV file"
        )
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    plain = [file for file in files if file.suffix in FILES]
    if plain:
        connection = duckdb.connect(":memory:")
        for file in plain:
            connection.execute(
                f'CREATE TABLE "{file.stem.lower()}" AS SELECT * FROM {FILES[file.suffix]}(?)', [str(file)]
            )
    else:
        connection = duckdb.connect(str(path), read_only=True)
    for setting in SETTINGS:
        connection.execute(setting)
    return connection
