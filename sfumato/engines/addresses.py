"""Engines that are reached by an address: a PostgreSQL server, or a Spark server. Each needs an extra."""

from sfumato.engines.base import Engine
from sfumato.engines.spark_session import ADDRESS as SPARK

POSTGRES = ("postgresql://", "postgres://")
ADDRESSES = (*POSTGRES, SPARK)


def engine_at(address: str, timeout: float = 3600.0) -> Engine:
    """The engine at an address that begins with one of ADDRESSES."""
    if address.startswith(SPARK):
        from sfumato.engines.spark import Spark

        return Spark.at(address, timeout)
    from sfumato.engines.postgres import Postgres

    return Postgres(address, timeout=timeout)
