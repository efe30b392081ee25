"""The same work for us and for other accountants, timed in one run: how many times as long do they take?

    python bench/bench_composition.py [--only 1 7] [--rounds 3] [--limit 60] [--long] [--json [FILE]]

Each side runs in a warm process of its own, with one thread (composition/serve.py); bursts of the two sides alternate,
so that a busy machine is busy for both, and the least time of each counts. Our answers have two sides and cover both
directions; "our gap" is how far apart they are, relatively, and "excess" how far the peer is above our lower one.
Peers live in bench/.peers/<name>, which `make bench` prepares; rows of those that are not there are left out.
Bars that are missed are shown, not punished: the exit status is 1 only if we failed to answer.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.composition.side import Side
from bench.composition.table import Result, Times, render
from bench.composition.work import ROWS, Row

HERE = Path(__file__).parent
BURST = (10, 0.5)  # before it is the other side's turn: at most 10 repetitions, begun within half a second


def measured(row: Row, peer: Side | None, ours: Side, rounds: int) -> Result:
    """One row: first a call each to warm up, then the two sides in turn. A call over two seconds is its own warm-up."""
    both = {"peer": peer, "ours": ours} if peer else {"ours": ours}
    spent: dict[str, list[float]] = {name: [] for name in both}
    answers: dict[str, dict[str, list[float]]] = {}
    notes: dict[str, str] = {}
    crashed = False
    for turn in range(rounds + 1):
        for name, side in both.items():
            if name in notes or sum(spent[name]) > 10e3:  # ten seconds of one side are enough
                continue
            reply = side.ask(row.job, row.arguments, *(BURST if turn else (1, 0.0)))
            if "answer" not in reply:
                notes[name] = f"{side.name}: {failure(reply)}"
                crashed |= side is ours and "error" in reply
                continue
            burst: list[float] = reply["ms"]  # type: ignore[assignment]
            spent[name] += burst if turn or burst[0] > 2e3 else []
            answers[name] = reply["answer"]  # type: ignore[assignment]
    times = {name: Times.of(found, row.per) for name, found in spent.items() if found and name not in notes}
    return Result(
        row.item,
        row.work,
        row.peer,
        row.ratio,
        row.gap,
        row.most_ms,
        row.never_above_peer,
        times.get("peer"),
        times.get("ours"),
        tuple(answers.get("peer", {}).get("upper", ())),
        tuple(answers.get("ours", {}).get("lower", ())),
        tuple(answers.get("ours", {}).get("upper", ())),
        tuple(notes.values()),
        crashed,
    )


def failure(reply: dict[str, object]) -> str:
    if "late" in reply:
        return f"over {reply['late']:g} s"
    return str(reply.get("absent") or reply.get("error"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="ITEM", help="items of the table, e.g. 1 7")
    parser.add_argument("--rounds", type=int, default=3, help="bursts of each side (3)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a side is given up (60)")
    parser.add_argument("--long", action="store_true", help="also the rows that take minutes")
    parser.add_argument("--json", nargs="?", const=HERE / "results/composition.json", type=Path, metavar="FILE")
    options = parser.parse_args()

    ours = Side("sfumato", Path(sys.executable), options.limit)
    names = sorted({row.peer for row in ROWS if row.peer})
    peers = {name: Side(name, HERE / ".peers" / name / "bin/python", options.limit) for name in names}
    results = []
    for row in ROWS:
        peer = peers.get(row.peer or "")
        if (options.only and row.item not in options.only) or (row.long and not options.long):
            continue
        if peer and not peer.installed:
            print(f"{row.item}  {row.work}: {peer.name} is not installed; `make bench` tries to", file=sys.stderr)
            continue
        print(f"  {row.item}  {row.work} …", file=sys.stderr, flush=True)
        results.append(measured(row, peer, ours, options.rounds))
    for side in (ours, *peers.values()):
        side.stop()

    print(render(results))
    if options.json:
        versions = {side.name: side.version for side in (ours, *peers.values()) if side.version}
        found = {
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "python": platform.python_version(),
            "load": os.getloadavg(),
            "versions": versions,
            "rows": [result.plain() for result in results],
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        print(f"written to {options.json}", file=sys.stderr)
    return int(any(result.crashed for result in results))


if __name__ == "__main__":
    sys.exit(main())
