"""The worker process: the same rows, a time limit that holds, and no process left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

import sfumato as sf
from sfumato.curator.bounded_cache import BoundedTables
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.worker import Worker, WorkerEnded
from sfumato.errors import PolicyError
from sfumato.sql.emit.request import TableRequest
from sfumato.sql.policy import Policy
from tests.curator import clinic

ROOT = Path(__file__).parents[2]
VALUES = (
    "SELECT i, 170141183460469231731687303715884105727::HUGEINT - i, i / 7, 'ß' || i, i % 2 = 0, NULL, [i, NULL, 3],"
    " DATE '2024-02-29', TIMESTAMP '0001-01-01 10:00:00', 'inf'::DOUBLE, -0.0::DOUBLE FROM t ORDER BY i"
)
# one LIKE that takes minutes, in which no interrupt is heard
STUBBORN = "SELECT COUNT(*) FROM t WHERE repeat('a', 1000000) || i LIKE '%_' || repeat('a', 100000) || 'b%'"


@pytest.fixture
def place(tmp_path):
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT i FROM range(100) r(i)")
    return tmp_path / "t.duckdb"


@pytest.fixture
def worker(place):
    found = Worker(DuckDB(place, timeout=60.0))
    yield found
    found.close()


def gone(pid):
    """Has the process ended? Waits for it; a zombie has."""
    for _ in range(400):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_rows_come_through_unchanged(place, worker):
    here, there = DuckDB(place), worker
    assert repr(there.run(VALUES)) == repr(here.run(VALUES))
    assert there.schema() == here.schema()
    assert there.dialect == here.dialect
    with there.snapshot():
        assert there.run("SELECT 1") == [(1,)]
    here.close()


def test_threads_share_a_process_and_get_their_own_rows(worker):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: worker.run(f"SELECT {i}, SUM(i) FROM t"), range(64)))
    assert found == [[(i, 4950)] for i in range(64)]


def test_a_kept_table_is_read_and_closed_and_lost_with_its_process(worker):
    table = worker.keep("SELECT 5 AS a", "kept")
    assert table.run("SELECT a FROM kept") == [(5,)]
    table.close()
    table = worker.keep("SELECT 6 AS a", "kept")
    worker.close()
    with pytest.raises(WorkerEnded):
        table.run("SELECT a FROM kept")
    table.close()
    assert worker.run("SELECT 1") == [(1,)]


def test_a_statement_that_ignores_interrupts_is_ended_with_its_process(place):
    worker = Worker(DuckDB(place, timeout=1.0))
    pid = worker.session().process.pid
    with pytest.raises(TimeoutError):
        worker.run(STUBBORN)
    assert gone(pid)
    assert worker.run("SELECT 1") == [(1,)]
    worker.close()


def test_a_statement_beside_one_that_is_ended_is_run_again(place):
    """It was no slower than it may be: it gets its rows from another process."""
    worker = Worker(DuckDB(place, timeout=30.0))
    busy = threading.Thread(target=lambda: worker.run("SELECT COUNT(*) FROM t a, t b, t c, t d WHERE a.i = b.i"))
    session = worker.session()
    busy.start()
    while not session._waiting:
        time.sleep(0.001)
    session.kill()  # as for another statement's sake
    busy.join(120)
    assert not busy.is_alive()
    assert worker.session() is not session
    worker.close()


def test_views_make_a_lost_table_again(worker):
    views, wanted = BoundedTables(4), TableRequest("SELECT 7 AS m0", (), ("x",), lambda places: "SELECT 7 AS _sf_m0")
    direct = TableRequest("SELECT 7")
    assert views.rows(worker, wanted) == views.rows(worker, direct) == [(7,)]
    worker.close()
    assert views.rows(worker, wanted) == [(7,)]  # by the direct statement
    assert views.rows(worker, wanted) == [(7,)]


def test_a_crash_is_a_failure_of_one_statement(worker):
    os.kill(worker.session().process.pid, signal.SIGKILL)
    with pytest.raises(Exception, match=r"process ended|^$"):
        for _ in range(50):
            worker.run("SELECT COUNT(*) FROM t a, t b, t c")
            os.kill(worker.session().process.pid, signal.SIGKILL)
    assert worker.run("SELECT 1") == [(1,)]


def test_errors_come_through_and_nothing_is_printed(tmp_path, worker, capfd):
    with pytest.raises(RuntimeError, match="Catalog"):
        worker.run("SELECT * FROM nothing")
    with pytest.raises(PolicyError, match="no database"):
        Worker(DuckDB(tmp_path / "gone.duckdb")).run("SELECT 1")
    assert capfd.readouterr() == ("", "")


PROGRAM = """
import os, sys
from pathlib import Path
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.worker import Worker, WorkerEnded
worker = Worker(DuckDB(Path(sys.argv[1])))
print(worker.session().process.pid, flush=True)
"""


def started(place, more):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + more, str(place)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_ends_with_whoever_started_it(place, end):
    with started(place, f"worker.run({STUBBORN!r})") as parent:
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, end)
        parent.wait(60)
    assert gone(pid)


def test_a_forked_process_has_a_worker_of_its_own(place):
    more = """
first = worker.session().process.pid
child = os.fork()
if not child:
    assert worker.run("SELECT 2") == [(2,)]
    os._exit(0 if worker.session().process.pid != first else 1)
assert os.waitpid(child, 0)[1] == 0
assert worker.run("SELECT 3") == [(3,)]
print(worker.session().process.pid)
"""
    with started(place, more) as parent:
        first = parent.stdout.readline()
        assert parent.stdout.readline() == first  # ours was neither used nor ended by the child
        assert parent.wait(60) == 0


def test_a_worker_imports_little():
    script = "import sfumato.engines.worker, sys; print({'scipy', 'numpy', 'sqlglot', 'flint'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                           env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert found.stdout == "set()\n"


def test_a_policy_chooses_a_worker(tmp_path):
    place = clinic.built(tmp_path / "clinic.duckdb")
    policy = Policy.read(clinic.POLICY + "[limits]\nworker = true\n")
    curator = sf.Curator.open(place, policy=policy)
    assert isinstance(curator.engine, Worker)
    assert len(curator.ask("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=1.0).rows) == 3
    assert len(curator.ask("SELECT ward, SUM(stay) FROM visits GROUP BY ward", epsilon=1.0).rows) == 3
    assert (tmp_path / "clinic.duckdb.ledger").exists()
    curator.engine.close()
    with pytest.raises(PolicyError, match="true or false"):
        Policy.read(clinic.POLICY + "[limits]\nworker = 1\n")


def test_a_time_limit_ends_the_most_expensive_statement_that_may_be_asked(tmp_path):
    """Without a worker too: one row takes little, so an interrupt is heard soon."""
    with duckdb.connect(str(tmp_path / "long.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT repeat('a', 1000) AS x, i FROM range(1000) r(i)")
    engine = DuckDB(tmp_path / "long.duckdb", timeout=0.5)
    pattern = f"%{'a' * 98}_b%"
    with pytest.raises(TimeoutError):
        engine.run(f"SELECT SUM(HASH(t.x || b.i LIKE '{pattern}')) FROM t, t AS b, t AS c")
    assert engine.run("SELECT 1") == [(1,)]
    engine.close()


def test_a_process_whose_worker_could_not_open_its_file_ends_without_a_word(tmp_path):
    program = """
import sys
from pathlib import Path
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.worker import Worker
from sfumato.errors import PolicyError
engine = Worker(DuckDB(Path(sys.argv[1])))
try:
    engine.run("SELECT 1")
except PolicyError:
    print("refused")
"""
    found = subprocess.run([sys.executable, "-c", program, str(tmp_path / "none.csv")], capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr) == (0, "refused\n", "")
