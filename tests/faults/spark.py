"""Faults of Spark in the middle of a question: executors that are killed, files that change, a server that dies.

    python -m tests.faults.spark executors 20 FOLDER
    python -m tests.faults.spark files 6 FOLDER
    python -m tests.faults.spark server 3 FOLDER

Each time a curator asks a question of its own copy of one ledger, so that the salt, and with it what is cut, is the
same. What must be true: one answer and one charge, made of the integers of one state of the data; or a clean failure.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import duckdb

from sfumato import Curator
from sfumato.engines import spark as engine_module
from sfumato.engines.spark import KeptTable, Spark
from sfumato.errors import AnswerFailed
from sfumato.ledger import Budget, Ledger
from sfumato.sql.policy import Policy

POLICY = Policy.read("""
version = 1
[budget]
epsilon = 90
delta = 1e-6
[tables.visits]
unit = "person"
groups = 3
rows = 2
[tables.visits.columns]
ward = {type = "text"}
cost = {low = 0, high = 100, step = 1}
""")
QUESTION = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"
FILES, PEOPLE = 6, 50_000
SERVER = """
import sys, time
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]")
for name, value in {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.driver.memory": "1g",
                    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
                    "spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": sys.argv[2],
                    "spark.connect.grpc.binding.address": "127.0.0.1",
                    "spark.connect.grpc.binding.port": sys.argv[1]}.items():
    builder = builder.config(name, value)
print(int(builder.getOrCreate().sparkContext._jvm.java.lang.ProcessHandle.current().pid()), flush=True)
time.sleep(3600)
"""


def made(folder: Path, rows: int) -> Path:
    """A lake with one table of several files, and the ledger that all runs copy."""
    place = folder / "lake" / "visits"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for number in range(FILES):
        write(place / f"{number}.parquet", number * rows // FILES, (number + 1) * rows // FILES)
    if not (folder / "first.ledger").exists():
        Ledger.create(folder / "first.ledger", Budget(90.0, 1e-6)).close()
    return place.parent


def write(path: Path, first: int, last: int) -> None:
    duckdb.sql(
        f"COPY (SELECT HASH(i) % {PEOPLE} AS p, CAST(p AS BIGINT) AS person, 'w' || HASH(i + 7) % 40 AS ward,"
        f" CAST(HASH(i + 13) % 101 AS DOUBLE) AS cost FROM RANGE({first}, {last}) t(i))"
        f" TO '{path}.new' (FORMAT parquet)"
    )
    os.replace(f"{path}.new", path)


class Asked:
    """One question of a curator with a ledger of its own, and the exact rows of each statement."""

    def __init__(self, engine: Spark, folder: Path) -> None:
        self.ledger = folder / f"{time.monotonic_ns()}.ledger"
        shutil.copy(folder / "first.ledger", self.ledger)
        self.engine, self.rows, self.answer, self.failure = engine, {}, None, None

    def ask(self) -> "Asked":
        plain = engine_module.rows_of

        def noted(session, sql, timeout):
            found = plain(session, sql, timeout)
            self.rows[sql] = sorted(map(repr, found))
            return found

        engine_module.rows_of = noted
        curator = Curator.open(self.engine, POLICY, ledger=self.ledger)
        try:
            self.answer = curator.ask(QUESTION, epsilon=80)
        except AnswerFailed as failed:
            self.failure = failed
        finally:
            engine_module.rows_of = plain
            curator.bounded_tables.clear()
        self.spent = curator.budget.spent
        return self

    def require_one_charge(self) -> None:
        assert 0 < self.spent <= 80 * (1 + 1e-6), self.spent
        assert (self.answer is None) != (self.failure is None)


@contextmanager
def before(owner, name, act):
    """`act` once, before this method is called the first time."""
    plain, todo = getattr(owner, name), [act]

    def changed(self, *arguments):
        if todo:
            todo.pop()()
        return plain(self, *arguments)

    setattr(owner, name, changed)
    try:
        yield
    finally:
        setattr(owner, name, plain)


# ---- executors ------------------------------------------------------------------------------------------------------


def executors(count: str, folder: str) -> dict[str, object]:
    """Kill one of two executors: as it reads rows, when rows have been sent, and when a table has been kept."""
    import pyspark

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    from tests.engines.spark import EXECUTORS, started
    from tests.engines.spark import executors as alive

    session = started(*EXECUTORS.items())[0]
    pid = int(session.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    engine = Spark(session, str(made(Path(folder), 1_000_000)), timeout=600)
    quiet, tally = Asked(engine, Path(folder)).ask(), Counter()
    assert quiet.answer is not None
    tracker = session.sparkContext.statusTracker()

    def kill() -> None:
        victim = alive(pid)[-1]
        os.kill(victim, signal.SIGKILL)
        tally["killed"] += 1

    def stages() -> list[int]:
        return sorted(number for number in tracker.getActiveStageIds())

    def later(sent: bool) -> None:
        """Kill in a thread: when tasks run; or when a later stage of the same statement does."""

        def watch() -> None:
            until, first = time.monotonic() + 300, None
            while time.monotonic() < until:
                for number in stages():
                    first = number if first is None else first
                    info = tracker.getStageInfo(number)
                    if info and info.numActiveTasks and (number > first or not sent):
                        return kill()
                time.sleep(0.01)

        threading.Thread(target=watch, daemon=True).start()

    points = {
        "as rows are read": (KeptTable, "add", lambda: later(False)),
        "after rows were sent": (KeptTable, "add", lambda: later(True)),
        "after a table was kept": (KeptTable, "run", kill),
    }
    for number in range(int(count)):
        until = time.monotonic() + 120
        while len(alive(pid)) < 2 and time.monotonic() < until:
            time.sleep(0.2)
        point = list(points)[number % len(points)]
        owner, name, act = points[point]
        with before(owner, name, act):
            asked = Asked(engine, Path(folder)).ask()
        asked.require_one_charge()
        if asked.answer is None:
            tally["failures"] += 1
        else:
            assert asked.rows == quiet.rows, point
        tally[point] += 1
        print(number, point, "failed" if asked.failure else "same integers", file=sys.stderr, flush=True)
    return dict(tally)


# ---- files ----------------------------------------------------------------------------------------------------------


def files(count: str, folder: str) -> dict[str, object]:
    """Replace, add or delete a file after the question has begun."""
    from tests.engines.spark import started

    session, tally = started()[0], Counter()
    for number in range(int(count)):
        lake = made(Path(folder), 60_000)
        engine = Spark(session, str(lake), timeout=600)
        first = Asked(engine, Path(folder)).ask()
        path = lake / "visits" / "3.parquet"
        kind, act = [
            ("replaced", partial(write, path, 0, 5_000)), ("added", partial(write, path.with_name("x.parquet"), 0, 70)),
            ("deleted", path.unlink),
        ][number % 3]  # fmt: skip
        with before(KeptTable, ("add", "run")[number // 3 % 2], act):
            asked = Asked(engine, Path(folder)).ask()
        asked.require_one_charge()
        last = Asked(engine, Path(folder)).ask()
        assert first.rows != last.rows
        if asked.answer is not None:  # of an attempt that failed, rows were noted, too
            found = asked.rows
            assert found in (first.rows, last.rows), f"{kind}: a mixture"
            tally[f"{kind}: {'before' if found == first.rows else 'after'}"] += 1
        else:
            tally[f"{kind}: failed"] += 1
        engine.close()
    return dict(tally)


# ---- a server -------------------------------------------------------------------------------------------------------


@contextmanager
def server(port: int, folder: Path):
    """A server of Spark Connect in a process of its own; its process id."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port), str(folder / "warehouse")], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def servers(count: str, folder: str) -> dict[str, object]:
    """Kill the server in the middle of a question, start another one there, and ask the same curator again."""
    from tests.engines.spark import free_port

    port, lake, tally = free_port(), made(Path(folder), 60_000), Counter()
    engine = Spark(f"sc://127.0.0.1:{port}", str(lake), timeout=60)
    quiet = None
    for number in range(int(count)):
        with server(port, Path(folder)) as pid:
            again = Asked(engine, Path(folder)).ask()  # by an engine that has known another server
            again.require_one_charge()
            assert again.answer is not None, again.failure
            quiet = quiet or again
            assert again.rows == quiet.rows
            with before(KeptTable, ("add", "run")[number % 2], lambda pid=pid: os.kill(pid, signal.SIGKILL)):
                asked = Asked(engine, Path(folder)).ask()
        asked.require_one_charge()
        tally["failed, charged once" if asked.failure else "answered"] += 1
        print(number, asked.failure or asked.rows == quiet.rows, file=sys.stderr, flush=True)
    return dict(tally)


if __name__ == "__main__":
    kinds = {"executors": executors, "files": files, "server": servers}
    print(json.dumps(kinds[sys.argv[1]](*sys.argv[2:])))
