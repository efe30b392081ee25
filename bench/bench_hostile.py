"""Processor time until a hostile text is refused, or planned if it turns out to be a question after all.

Best of three for each text of tests/curator/hostile.py, from the text to the statements that an engine would be asked.
Ends with 1 if a refusal takes longer than its bar, or a plan longer than twice that.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sfumato.curator import Curator
from sfumato.curator.release import statements
from sfumato.errors import SfumatoError
from sfumato.ledger import Budget, Ledger
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY
from tests.curator.hostile import TEXTS

RULES = Policy.read(POLICY)
BAR = 100.0  # ms


class Nothing:
    """No engine: texts never get that far."""

    dialect = "duckdb"

    def run(self, sql: str) -> list[tuple[object, ...]]:
        raise AssertionError("a text has reached the engine")


def outcome(curator: Curator, text: str) -> str:
    try:
        statements(curator.offer(text, 1.0, None), 1, "duckdb")
    except SfumatoError as refusal:
        return str(refusal).partition("\n")[0]
    return "planned"


def milliseconds(act: Callable[[], object]) -> float:
    """Of the processor, best of three."""
    best = 1e9
    for _ in range(3):
        began = time.process_time()
        act()
        best = min(best, time.process_time() - began)
    return 1000 * best


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--slowest", type=int, default=25, help="how many to list")
    options.add_argument("--json", action="store_true")
    options.add_argument("--only", default="", help="texts whose name holds this")
    chosen = options.parse_args()
    curator = Curator(Nothing(), RULES, Ledger.create(":memory:", Budget(RULES.epsilon, RULES.delta)))
    outcome(curator, "SELECT COUNT(*) FROM visits")  # imports
    found = []
    for name, text in TEXTS.items():
        if chosen.only in name:
            found.append((milliseconds(lambda text=text: outcome(curator, text)), name, outcome(curator, text)))
    found.sort(reverse=True)
    if chosen.json:
        print(json.dumps([{"text": name, "ms": ms, "outcome": told} for ms, name, told in found], ensure_ascii=False))
    else:
        print(f"{'ms':>7}  text                                 outcome")
        for ms, name, told in found[: chosen.slowest]:
            print(f"{ms:7.1f}  {name:36.36} {told:.60}")
        print(f"{len(found)} texts; median {found[len(found) // 2][0]:.1f} ms")
    missed = False
    for what, bar, times in (
        ("refused", BAR, [ms for ms, _, told in found if told != "planned"]),
        ("planned", 2 * BAR, [ms for ms, _, told in found if told == "planned"]),
    ):
        worst = max(times, default=0.0)
        missed |= worst > bar
        if not chosen.json:
            print(f"{what}: {len(times)}, worst {worst:.1f} ms, bar {bar:g} ms: {'met' if worst <= bar else 'MISSED'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
