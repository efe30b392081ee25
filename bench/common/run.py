"""Rows measured one by one, the two sides of each in turn, and the table printed."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.common.row import Row
from bench.common.side import Side
from bench.common.table import Result, Times, render

BENCH = Path(__file__).parents[1]
BURST = (10, 0.5)  # before it is the other side's turn: at most 10 repetitions, begun within half a second


def measured(row: Row, peer: Side | None, ours: Side, rounds: int) -> Result:
    """One row: first a call each to warm up, then the two sides in turn. A call over two seconds is its own warm-up."""
    both = {"peer": peer, "ours": ours} if peer else {"ours": ours}
    spent: dict[str, list[float]] = {name: [] for name in both}
    per: dict[str, float] = dict.fromkeys(both, row.per)
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
            per[name] = answers[name].get("per", [row.per])[0]
    times = {name: Times.of(found, per[name]) for name, found in spent.items() if found and name not in notes}
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


def sides(folder: Path, rows: Sequence[Row], limit: float) -> tuple[Side, dict[str, Side]]:
    """Ourselves and the peers: in an environment of its own who has a list of requirements, else in ours."""
    here = Path(sys.executable)
    peers = {}
    for name in sorted({row.peer for row in rows if row.peer}):
        own = (folder / f"sides/{name}.txt").exists()
        peers[name] = Side(name, folder, BENCH / ".peers" / name / "bin/python" if own else here, limit)
    return Side("sfumato", folder, here, limit), peers


def options_of(description: str, results: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="ITEM", help="items of the table, e.g. 1 7")
    parser.add_argument("--rounds", type=int, default=3, help="bursts of each side (3)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a side is given up (60)")
    parser.add_argument("--long", action="store_true", help="also the rows that take minutes")
    parser.add_argument("--json", nargs="?", const=BENCH / f"results/{results}.json", type=Path, metavar="FILE")
    return parser.parse_args()


def table(rows: Sequence[Row], ours: Side, peers: dict[str, Side], options: argparse.Namespace) -> list[Result]:
    """All rows that were asked for, measured and printed."""
    results = []
    for row in rows:
        peer = peers.get(row.peer or "")
        if (options.only and row.item not in options.only) or (row.long and not options.long):
            continue
        if peer and not peer.installed:
            print(f"{row.item}  {row.work}: {peer.name} is not installed; `make bench` tries to", file=sys.stderr)
            continue
        print(f"  {row.item}  {row.work} …", file=sys.stderr, flush=True)
        results.append(measured(row, peer, ours, options.rounds))
    print(render(results))
    return results


def write(path: Path, results: Sequence[Result], all_sides: Sequence[Side], **more: object) -> None:
    found = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "load": os.getloadavg(),
        "versions": {side.name: side.version for side in all_sides if side.version},
        "rows": [result.plain() for result in results],
        **more,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    print(f"written to {path}", file=sys.stderr)
