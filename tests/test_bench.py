"""The comparison with other libraries can be imported, rendered and started. What it measures is no test."""

import json
import math
import sys
from functools import cache
from pathlib import Path

import pytest

from bench.common.row import Row
from bench.common.run import BENCH, measured
from bench.common.serve import timed
from bench.common.side import Side
from bench.common.table import Result, Times, render
from bench.composition.work import ROWS, epsilon
from bench.local.work import ROWS as LOCAL_ROWS
from bench.noise.work import ROWS as NOISE_ROWS

PEERS = [
    (folder, rows, peer)
    for folder, rows in (("composition", ROWS), ("noise", NOISE_ROWS), ("local", LOCAL_ROWS))
    for peer in sorted({row.peer for row in rows if row.peer})
]

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


@pytest.mark.parametrize(("folder", "rows", "peer"), PEERS, ids=[peer for _, _, peer in PEERS])
def test_a_peer_can_be_installed_and_knows_the_work_asked_of_it(folder, rows, peer):
    side = BENCH / folder / f"sides/{peer}"
    by_hand = ("numpy", "feldman", "wang")  # ours, or code that no registry has
    assert peer in by_hand or side.with_suffix(".txt").read_text(encoding="utf-8").strip()
    text = side.with_suffix(".py").read_text(encoding="utf-8")
    assert all(f"def {row.job}(" in text or f"{row.job} = " in text for row in rows if row.peer == peer)


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
    side = Side("sfumato", BENCH / "composition", Path(sys.executable), limit=60)
    try:
        found = measured(epsilon("5", "coins", [["response", 10, 0.1]], gap=1e-10), None, side, rounds=1)
        assert found.verdict == "ok"
        assert found.our_lower[0] <= 1 <= found.our_upper[0] * 1.001  # ten times 0.1, less what δ = 1e-6 allows
        assert "error" in side.ask("nonsense", {}, 1, 0.0)
    finally:
        side.stop()


def test_noise_is_timed_without_its_tables():
    sides = [Side(name, BENCH / "noise", Path(sys.executable), limit=60) for name in ("numpy", "sfumato")]
    rows = {(row.job, str(row.arguments.get("law", ""))): row for row in NOISE_ROWS}
    try:
        for row in rows.values():
            small = {"count": 1000} if "count" in row.arguments else {}
            row = Row("1", row.work, row.job, row.arguments | small, None)
            found = measured(row, None, sides[1], rounds=1)
            assert found.verdict == "ok" and found.our_times.least > 0
        both = measured(Row("1", "draws", "draws", {"law": "", "scale": 1, "count": 10}, "numpy"), *sides, rounds=1)
        assert both.peer_times is not None and both.our_times is None  # we have no law of that name
        rho = sides[1].ask("latency", {"mechanism": "Laplace", "value": 5, "scale": 10, "count": 1000}, 1, 0.0)
        assert -1 <= rho["answer"]["rho"][0] <= 1
        p = sides[1].ask("fit", {"law": "discrete Laplace", "scale": 10, "count": 10_000}, 1, 0.0)
        assert 0 <= p["answer"]["p"][0] <= 1
    finally:
        for side in sides:
            side.stop()
