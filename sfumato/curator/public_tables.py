"""Public tables, read from the engine for queries over released values."""

import datetime
from dataclasses import replace

from sfumato.curator.precheck import fixed_error
from sfumato.engines.base import Engine
from sfumato.engines.postprocessing import SmallTable
from sfumato.errors import QueryRefused
from sfumato.sql.dialects import dialect_of
from sfumato.sql.emit.public_rows import MOST_PUBLIC, public_columns, public_rows
from sfumato.sql.plan import Table

Cell = float | str | bool | None


def read_public(engine: Engine, table: Table) -> SmallTable:
    """All rows of a public table, sorted; refused if there are too many."""
    with fixed_error():
        schema = engine.schema()
        dialect = replace(dialect_of(engine.dialect), schema=schema)
        rows = engine.run(public_rows(table, dialect))
    if len(rows) > MOST_PUBLIC:
        raise QueryRefused(
            f"{table.name} is too large for a query over released values.\n  found:  more than {MOST_PUBLIC:,} rows\n"
            "  do:     join it to the private table instead"
        )
    cells = sorted((tuple(map(plain, row)) for row in rows), key=repr)
    return SmallTable(public_columns(table), tuple(cells))


def plain(value: object) -> Cell:
    if isinstance(value, bool | str | None):
        return value
    return str(value) if isinstance(value, datetime.date) else float(value)  # type: ignore[arg-type]
