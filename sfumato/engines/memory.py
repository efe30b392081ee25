"""Data that are in memory already: data frames by name, or an open connection of DuckDB. They are copied when opened.

A copy is one state of the data, which nobody can change while questions are asked. Types come from the frame's own
types. A pandas column of Python objects has none: DuckDB would guess one from values, and one person's value could
change everybody's. Such a column is refused.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

import duckdb

from sfumato.engines.duckdb import COLUMNS, DuckDB, quote_name, quote_text, schema_from_rows
from sfumato.errors import PolicyError

Frames = Mapping[str, object] | duckdb.DuckDBPyConnection
MEMORY = Path(":memory:")
FRAME = "_sf_frame"  # the name of a frame while it is copied


def is_connection(data: object) -> TypeGuard[duckdb.DuckDBPyConnection]:
    return isinstance(data, duckdb.DuckDBPyConnection)


def in_memory(data: Frames, *, timeout: float | None = None, memory: int = 0, spill: str = "") -> DuckDB:
    """An engine with a copy of these tables."""
    engine = DuckDB(MEMORY, timeout=timeout, memory=memory, spill=spill)
    connection = duckdb.connect(":memory:")
    try:
        if isinstance(data, duckdb.DuckDBPyConnection):
            copy_connection(data, connection)
        else:
            for name, frame in data.items():
                copy_frame(name, frame, connection)
        engine.adopt(connection)
    except BaseException:
        connection.close()
        raise
    return engine


def copy_frame(name: str, frame: object, connection: duckdb.DuckDBPyConnection) -> None:
    """A pandas or polars data frame, an Arrow table, or anything else that DuckDB can register."""
    for column, kind in getattr(getattr(frame, "dtypes", None), "items", dict[str, object]().items)():
        if str(kind) == "object":
            raise PolicyError(
                f"a column has no type of its own.\n  found:  {name}.{column}: Python objects\n"
                f'  do:     give it one: frame["{column}"].astype("string"), or a number, a date or a truth value'
            )
    try:
        connection.register(FRAME, frame)
        connection.execute(f"CREATE TABLE {quote_name(name.lower())} AS SELECT * FROM {FRAME}")
        connection.unregister(FRAME)
    except duckdb.Error as problem:
        raise PolicyError(
            f"this cannot be read as a table.\n  found:  {name}: a {type(frame).__name__}\n"
            "  do:     give a pandas or polars data frame, or an Arrow table"
        ) from problem


def copy_connection(source: duckdb.DuckDBPyConnection, connection: duckdb.DuckDBPyConnection) -> None:
    """All tables of the main schema, as this connection sees them now, by way of a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder, source.cursor() as cursor:
        tables = schema_from_rows(cursor.execute(COLUMNS).fetchall())
        if not tables:
            raise PolicyError("this connection has no tables.\n  do:     create them in the schema main")
        cursor.execute("BEGIN")
        for number, name in enumerate(tables):
            place = quote_text(str(Path(folder) / f"{number}.parquet"))
            cursor.execute(f"COPY (SELECT * FROM main.{quote_name(name)}) TO {place} (FORMAT parquet)")
            connection.execute(f"CREATE TABLE {quote_name(name)} AS SELECT * FROM read_parquet({place})")
        cursor.execute("ROLLBACK")
