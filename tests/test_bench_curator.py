"""The comparison with other systems can be imported and started, and says what is met. What it measures is no test."""

import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

from bench.common.side import Side
from bench.curator.against import BENCH, PEERS, Error, Found, Line
from bench.curator.jobs import JOBS, KEYS, Truth

SIDES = sorted({peer.side for peer in PEERS})
COUNT, BOTH, FOUND = (next(job for job in JOBS if job.item == item) for item in ("a", "b", "c'"))


@pytest.mark.parametrize("side", SIDES)
def test_a_system_can_be_installed_and_knows_each_job(side):
    folder = BENCH / "curator/sides"
    assert "==" in (folder / f"{side}.txt").read_text(encoding="utf-8")
    text = (folder / f"{side}.py").read_text(encoding="utf-8")
    own_avg = all(peer.own_avg for peer in PEERS if peer.side == side)
    assert all(f"def {job.name}(" in text for job in JOBS if own_avg or "avg" not in job.columns)


def made(folder: Path) -> Path:
    """Fifty users, each with two rows in each of two keys; one has a hundred rows more."""
    with duckdb.connect(str(folder / "tiny.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE tiny AS SELECT range % 50 AS user_id, CAST((range // 50) % 2 AS INTEGER) AS category,"
            " CAST(10 AS DOUBLE) AS value FROM range(200)"
            " UNION ALL SELECT 7, 0, 60 FROM range(100)"
        )
        connection.execute(f"COPY tiny TO '{folder / 'tiny.parquet'}' (FORMAT parquet)")
    return folder / "tiny.parquet"


def test_the_truth_knows_no_bounds(tmp_path):
    truth = Truth.of_table(made(tmp_path))
    assert (truth.rows, truth.users, truth.median) == (300, 50, 10)
    assert truth.n[:2].tolist() == [200, 100] and truth.s[0] == 7000 and truth.of[0] == 50
    shown = {"key": [1], "n": [90.0], "s": [1000.0]}
    assert truth.error(FOUND, "n", shown) == pytest.approx((200 + 10) / KEYS)  # key 0 is not shown
    assert truth.error(COUNT, "value", {"value": [290.0]}) == 10


def test_we_answer_all_jobs_and_no_answer_twice(tmp_path):
    table = str(made(tmp_path))
    side = Side("sfumato", BENCH / "curator", Path(sys.executable), limit=120)
    try:
        for job in JOBS:
            reply = side.ask(job.name, {"table": table, "draws": 2, "pure": job.scalar}, 1, 0.0)
            assert "answer" in reply, reply
            first, second = reply["answer"]["draws"]
            assert set(job.columns) <= set(first)
            assert job.scalar or job.found or len(first["key"]) == KEYS
            assert job.scalar or job.found or first != second  # noise on a thousand keys: never the same twice
    finally:
        side.stop()


def test_bars_are_met_or_missed():
    peer = next(peer for peer in PEERS if peer.splits)
    far, near = Error("n", "t6", (10, 0.1), (10, 0.1), (15, 0.1), (20, 20)), (10.0, 0.1)
    assert far.verdict(near, 1.4) == "met"
    assert Error("n", "t6", near, near, (9.9, 0.1), (20, 20)).verdict(near, 1) == "level"
    assert Error("n", "t6", near, near, (9, 0.1), (20, 20)).verdict(near, 1) == "MISSED"
    line = Line(peer, BOTH, "t6", 6.0, 0.2, 30.0, [far], {}, "")
    assert "30.0× (bar 15×: met)" in str(line) and "1.4× met" in str(line)
    assert "MISSED" in str(Line(peer, BOTH, "t6", 6.0, 3.0, 2.0, [], {}, ""))
    assert Found([2e3, 1e3], []).seconds == 1 and np.isfinite(Found([], [{"key": [1, 2]}]).keys)
