"""A pool of worker processes: one is killed, and no other."""

import threading

import duckdb
import pytest

from sfumato.engines.duckdb import DuckDB
from sfumato.engines.pool import WorkerPool
from sfumato.errors import EngineUnavailable

FOREVER = "SELECT SUM(a.range * b.range) FROM range(10000000) a, range(10000000) b"


def write(place, rows):
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS x FROM range(?)", [rows])
    return place


@pytest.fixture
def pool(tmp_path):
    made = WorkerPool(DuckDB(write(tmp_path / "a.duckdb", 7), timeout=0.5), 2)
    yield made
    made.close()


def processes(pool):
    return [worker._session.process.pid if worker._session else None for worker in pool._workers]


def test_a_runaway_statement_ends_with_its_process_and_others_are_unharmed(pool):
    with pool.snapshot():  # takes the first worker, so that the other one runs away
        assert pool.run("SELECT COUNT(*) FROM t") == [(7,)]
        mine, failures = processes(pool)[0], []

        def run():
            try:
                pool.run(FOREVER)
            except Exception as problem:
                failures.append(problem)

        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive():
            assert pool.run("SELECT COUNT(*) FROM t") == [(7,)]
        thread.join()
        assert failures and processes(pool)[0] == mine
    assert pool.run("SELECT COUNT(*) FROM t") == [(7,)]


def test_a_snapshot_stays_in_one_process_and_the_others_are_free(pool):
    seen = []
    with pool.snapshot():
        pool.run("SELECT 1")
        with pool.snapshot():  # a nested one is the same
            pool.run("SELECT 1")
        assert processes(pool)[1] is None
        thread = threading.Thread(target=lambda: seen.append(pool.run("SELECT 2")))
        thread.start()
        thread.join()
    assert seen == [[(2,)]]
    assert None not in processes(pool)
    assert pool._free.qsize() == 2


def test_no_more_statements_than_processes_run_at_a_time(tmp_path):
    pool = WorkerPool(DuckDB(write(tmp_path / "a.duckdb", 7)), 1)
    entered = threading.Event()
    with pool.snapshot():
        thread = threading.Thread(target=lambda: (pool.run("SELECT 1"), entered.set()))
        thread.start()
        assert not entered.wait(0.2)
    thread.join()
    assert entered.is_set()
    pool.close()


def test_a_process_that_would_find_other_data_does_not_start(pool, tmp_path):
    assert pool.run("SELECT COUNT(*) FROM t") == [(7,)]
    pool._workers[0]._session.end()
    (tmp_path / "a.duckdb").unlink()
    write(tmp_path / "a.duckdb", 9)
    with pytest.raises(EngineUnavailable, match="changed"):
        pool.run("SELECT COUNT(*) FROM t")
    pool.close()  # the owner opens it again
    assert pool.run("SELECT COUNT(*) FROM t") == [(9,)]


def test_a_pool_has_what_an_engine_has(pool):
    assert pool.schema() == {"t": {"x": "BIGINT"}}
    assert pool.dialect == "duckdb" and pool.untyped() == frozenset()
    pool.check("SELECT x FROM t")
    with pytest.raises(RuntimeError):
        pool.check("SELECT y FROM t")
    table = pool.keep("SELECT 1 AS x", "kept")
    assert table.run("SELECT x FROM kept") == [(1,)]
    table.close()
