"""Dialects: one file for each engine's SQL."""

from collections.abc import Mapping

from sfumato.errors import InvalidParameter
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.dialects.duckdb import DuckDB
from sfumato.sql.dialects.postgres import Postgres
from sfumato.sql.dialects.spark import Spark

DIALECTS: Mapping[str, Dialect] = {one.name: one for one in (DuckDB(), Postgres(), Spark())}


def dialect_of(name: str | Dialect) -> Dialect:
    """The dialect of this name."""
    if isinstance(name, Dialect):
        return name
    if name not in DIALECTS:
        raise InvalidParameter(f"there is no dialect {name!r}.\n  do:     use one of {', '.join(DIALECTS)}")
    return DIALECTS[name]
