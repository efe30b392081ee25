"""Statements that are interrupted by Ctrl-C or a time limit, and statements that write, which are refused."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from sfumato.engines.duckdb import DuckDB, open_locked_down, run_interruptible

ROOT = Path(__file__).parents[2]


def test_work_gives_what_it_gives_or_raises_what_it_raises():
    assert run_interruptible(lambda: 42, lambda: None, 60) == 42
    with pytest.raises(KeyError, match="a"):
        run_interruptible(lambda: {}["a"], lambda: None)


def test_ctrl_c_while_working_stops_the_work_and_is_ctrl_c():
    """The work itself sends the signal; it ends when it is told to, and only then does the caller go on."""
    told, ended = threading.Event(), threading.Event()

    def work():
        os.kill(os.getpid(), signal.SIGINT)
        assert told.wait(60)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(work, told.set)
    assert ended.is_set()


def test_a_request_to_stop_that_comes_too_early_is_repeated():
    calls, told = [], threading.Event()

    def stop():
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError("there is nothing to stop yet")
        told.set()

    with pytest.raises(TimeoutError):
        run_interruptible(lambda: told.wait(60), stop, 0)
    assert len(calls) >= 3


LONG = "SELECT SUM(a.i * b.i % 7) FROM t a JOIN t b ON a.i % 10 = b.i % 10 JOIN t c ON b.i % 10 = c.i % 10"
PROGRAM = f"""
import sys
from pathlib import Path
from sfumato.engines.duckdb import DuckDB, open_locked_down
engine = DuckDB(Path(sys.argv[1]))
engine.run("SELECT 1")
try:
    print("ready", flush=True)
    engine.run({LONG!r})
except KeyboardInterrupt:
    print(engine.run("SELECT 42"))
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    place = tmp_path_factory.mktemp("long") / "t.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i FROM range(100_000) t(i)")  # LONG then has 10^13 rows
    return place


def test_ctrl_c_ends_a_statement_of_hours(table):
    with subprocess.Popen([sys.executable, "-c", PROGRAM, table], cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGINT)
            assert child.communicate(timeout=120)[0] == "[(42,)]\n"
        finally:
            child.kill()


def test_a_statement_that_takes_too_long_is_stopped_and_the_next_one_runs(table):
    engine = DuckDB(table, timeout=0.2)
    with pytest.raises(TimeoutError):
        engine.run(LONG)
    engine.timeout = None
    assert engine.run("SELECT 42") == [(42,)]


def test_an_engine_cannot_write_into_its_database(tmp_path):
    """Whatever a statement says: the file was opened for reading."""
    place = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS stay")
    with open_locked_down(place) as connection:
        assert connection.execute("SELECT stay FROM visits").fetchall() == [(1,)]
        for change in ("CREATE TABLE more (x INT)", "INSERT INTO visits VALUES (2)", "DROP TABLE visits"):
            with pytest.raises(duckdb.Error, match="read-only"):
                connection.execute(change)
