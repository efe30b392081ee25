"""A session on Spark with fixed settings, and statements on it that end when they are told to.

What a text means depends on the settings of its session: `${env:HOME}` in a question would be replaced by a variable of
the server, sums would wrap around, and files that are missing would be passed over. So all that matters is set here,
and read back before each question.
"""

import logging
import uuid
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.engines.duckdb import run_interruptible
from sfumato.errors import EngineUnavailable, SfumatoError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
ADDRESS = "sc://"
OLDEST, BEYOND = 4, 5  # versions of Spark, as in pyproject.toml
PATIENCE = 10.0  # seconds for a statement to end after it was stopped; then nobody waits for it any longer
LEGACY = "spark.sql.legacy."  # what is set of these is unset: nothing was tested with them
SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # an overflow is an error, and not a wrong number
    "spark.sql.variable.substitute": "false",  # texts of a question are not looked up in the server's environment
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.files.ignoreMissingFiles": "false",  # a file that is missing is an error, and not a smaller answer
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # one person's value would decide a type
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # no old date raises, or moves by ten days
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}
LISTING = {  # of a session that lists files: one task for many files, however long they are
    "spark.sql.files.maxPartitionBytes": str(2**62),
}


class StatementFailed(RuntimeError):
    """A statement failed on Spark. The message names the kind of error and nothing else: Spark's own quotes values."""


def is_session(data: object) -> bool:
    """Is this a SparkSession, of either kind? Spark is not imported to find out."""
    kind = type(data)
    return kind.__name__ == "SparkSession" and kind.__module__.startswith("pyspark.sql")


def is_remote(session: "SparkSession") -> bool:
    """Does it speak to a server (Spark Connect), rather than to a JVM of this process?"""
    return type(session).__module__.startswith("pyspark.sql.connect")


def connect(address: str) -> "SparkSession":
    """A session of its own on the server at this address, sc://…"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, which is not used here
        try:
            from pyspark.sql.connect.session import SparkSession
        except ImportError as missing:
            raise ModuleNotFoundError("an engine on Spark needs pyspark: pip install 'sfumato[spark]'") from missing
        return SparkSession.builder.remote(address).create()


def new_session(owner: "SparkSession | str", more: Mapping[str, str] = {}) -> "SparkSession":
    """A session that nobody else has, with our settings: none of the owner's temporary views, functions or settings."""

    def opened() -> "SparkSession":
        session = connect(owner) if isinstance(owner, str) else owner.newSession()
        give_up_soon(session)
        for name in [name for name in session.conf.getAll if name.startswith(LEGACY)]:
            session.conf.unset(name)
        for name, value in {**SETTINGS, **more}.items():
            session.conf.set(name, value)
        require_settings(session)
        return session

    return silent(opened, None, None)


def give_up_soon(session: "SparkSession") -> None:
    """A client tries ten minutes to reach a server that has ended, also to stop a statement there: ours, 8 seconds."""
    if is_remote(session):
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session.client.set_retry_policies([DefaultPolicy(max_retries=7, max_backoff=1500)])


def require_settings(session: "SparkSession") -> None:
    """Raises unless the session has the settings by which our texts have their meaning."""
    version, found = str(session.version), session.conf.getAll
    wrong = [name for name, value in SETTINGS.items() if found.get(name) != value]
    wrong += [name for name in found if name.startswith(LEGACY)]
    if not OLDEST <= int(version.split(".")[0]) < BEYOND:
        raise EngineUnavailable(f"this version of Spark is not supported.\n  found:  {version}\n  do:     use Spark 4")
    if wrong:
        raise EngineUnavailable(
            "a session on Spark does not have the settings that were set.\n"
            f"  found:  other values of {', '.join(wrong)}\n"
            "  do:     do not fix these settings on the server"
        )


def release(session: "SparkSession") -> None:
    """Give up a session of ours. A classic one lives in the owner's JVM, and has nothing that must be closed."""
    if is_remote(session):
        with suppress(Exception):  # the server may be gone
            silent(session.client.release_session, None, PATIENCE)
        with suppress(Exception):
            silent(session.client.close, None, PATIENCE)


def stop_logging(session: "SparkSession") -> None:
    """Spark writes messages that quote values to standard error, in this process and in a JVM that belongs to it."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").addFilter(is_of_others)
    if not is_remote(session):
        session.sparkContext.setLogLevel("OFF")


def is_of_others(record: logging.LogRecord) -> bool:
    """Was this not logged by a statement of ours?"""
    return record.threadName != WORKING


WORKING = "sfumato engine"  # the name of the threads in which statements run


def silent(work: Callable[[], T], stop: Callable[[], None] | None, seconds: float | None) -> T:
    """The result of work that Spark does, ended by `stop`. What it raises quotes no value of any row."""

    def safely() -> T:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return work()
        except Exception as problem:
            failure = describe(problem)
        raise failure

    return run_interruptible(safely, stop or (lambda: None), seconds, PATIENCE if stop else 0.0)


def describe(problem: Exception) -> Exception:
    """The failure without its text: only the names of its class and of its condition."""
    if isinstance(problem, SfumatoError | StatementFailed | TimeoutError):
        return problem
    condition: Any = getattr(problem, "getCondition", lambda: None)
    try:
        name = condition()
    except Exception:
        name = None
    return StatementFailed(f"Spark: {type(problem).__name__}{f' ({name})' if name else ''}")


def collect(session: "SparkSession", work: Callable[[], T], seconds: float | None) -> T:
    """The result of work on a session that starts jobs there; a time limit or Ctrl-C ends them.

    A classic session stops a job group, which is set in the thread that runs the work; Connect stops the operations
    that have a tag. Either is repeated until the work has ended: a query starts jobs one after another.
    """
    name = f"sfumato-{uuid.uuid4()}"

    def remotely() -> T:
        session.addTag(name)
        return work()

    def here() -> T:
        session.sparkContext.setJobGroup(name, "sfumato", interruptOnCancel=True)
        return work()

    if is_remote(session):
        return silent(remotely, lambda: ignore(session.interruptTag(name)), seconds)
    return silent(here, lambda: session.sparkContext.cancelJobGroup(name), seconds)


def ignore(result: object) -> None:
    """Where only the act matters."""
