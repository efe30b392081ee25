"""Spark for tests: one JVM for each process, with a classic session and a server of Spark Connect, on loopback only."""

import importlib.util
import os
import shutil
import socket
import tempfile
import warnings
from functools import cache
from pathlib import Path

import duckdb
import pytest

ALL = "SFUMATO_SPARK"  # with this variable, all that is asked of engines is asked of Spark


def require_spark():
    """Skips the test, and says why, where there is no Spark."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install 'sfumato[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java here, which Spark needs: install Java 17")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


# For thousands of small statements: expressions are interpreted, as compiling them takes longer than running them.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1",
}  # fmt: skip
# Executors as processes of their own, which can be killed; SPARK_HOME must lead to the package.
EXECUTORS = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
}


def executors(pid):
    """The processes of the executors of a JVM."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes()
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        if parent == pid and b"CoarseGrainedExecutorBackend" in words:
            found.append(int(place.name))
    return sorted(found)


@cache
def started(*more):
    """(a classic session, the address of a server in the same JVM). It ends with the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas 3
        import pyspark.testing.utils  # which warns, too; without it there is no Spark Connect
        from pyspark.sql import SparkSession
    port = free_port()
    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": tempfile.mkdtemp(prefix="sfumato-spark-"),
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # most statements run once
        "spark.master": "local[2]",
    }  # fmt: skip
    builder = SparkSession.builder
    for name, value in {**settings, **dict(more)}.items():
        builder = builder.config(name, value)
    assert pyspark.testing.utils.should_test_connect, pyspark.testing.utils.connect_requirement_message
    return builder.getOrCreate(), f"sc://127.0.0.1:{port}"


def written(place, folder):
    """The tables of a DuckDB file as Parquet files in a folder."""
    folder.mkdir(exist_ok=True)
    with duckdb.connect(str(place), read_only=True) as connection:
        for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            connection.execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")
    return folder
