"""The comparison with other libraries can be imported, rendered and started. What it measures is no test."""

import json
import math
import sys
from functools import cache
from pathlib import Path

import pytest

from bench.bench_composition import measured
from bench.composition.serve import timed
from bench.composition.side import HERE, Side
from bench.composition.table import Result, Times, render
from bench.composition.work import ROWS, epsilon

FAST = Result(
    "1", "fast", "peer", 60, 1e-6, None, False, Times(600, 612.5, 9), Times(2, 2.5, 30), (2.1,), (2.0,), (2.0,)
)
SLOW = Result(
    "1", "slow", "peer", 60, 1e-6, None, True, Times(600, 612.5, 9), Times(20, 25, 30), (1.9,), (2.0,), (2.1,)
)
ABSENT = Result("8", "absent", None, ms_bar=0.3, notes=("sfumato: not yet",))
TINY = Result("9", "tiny", "peer", None, 1e-6, None, False, None, Times(1, 1, 3), (math.inf,), (5.0,), (5.0,))


def test_the_table_renders_from_recorded_numbers():
    _, fast, slow, absent, tiny, _, last = render([FAST, SLOW, ABSENT, TINY]).splitlines()
    assert " ".join(fast.split()) == "1 fast peer 600 612 2 2.5 300× 60× 0 1.0e-06 +5.0e-02 ok"
    assert " 30× " in slow
    assert slow.endswith("  too slow, too wide, above the peer; the peer is below the truth")
    assert absent.endswith("  sfumato: not yet")
    assert tiny.endswith("  ∞  ok")
    assert last == "2 of 4 rows meet their bars"


def test_the_results_are_plain_json():
    for result in (FAST, SLOW, ABSENT, TINY):
        assert json.loads(json.dumps(result.plain(), allow_nan=False))["missed"] == result.missed
    assert TINY.plain()["excess"] == "inf"


@pytest.mark.parametrize("peer", sorted({row.peer for row in ROWS if row.peer}))
def test_a_peer_can_be_installed_and_knows_the_work_asked_of_it(peer):
    assert (HERE / f"sides/{peer}.txt").read_text(encoding="utf-8").strip()
    text = (HERE / f"sides/{peer}.py").read_text(encoding="utf-8")
    assert all(f"def {row.job}(" in text for row in ROWS if row.peer == peer)


def test_nothing_is_remembered_between_repetitions():
    calls = []

    @cache
    def remembered():
        calls.append(1)
        return {}

    remembered()
    timed(remembered, __name__.split(".")[0], times=3, seconds=60)
    assert len(calls) == 4


def test_we_answer_from_a_process_of_our_own():
    side = Side("sfumato", Path(sys.executable), limit=60)
    try:
        found = measured(epsilon("5", "coins", [["response", 10, 0.1]], gap=1e-10), None, side, rounds=1)
        assert found.verdict == "ok"
        assert found.our_lower[0] <= 1 <= found.our_upper[0] * 1.001  # ten times 0.1, less what δ = 1e-6 allows
        assert "error" in side.ask("nonsense", {}, 1, 0.0)
    finally:
        side.stop()
