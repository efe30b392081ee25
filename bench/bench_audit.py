"""How much the auditor sees, how fast, and whether it cries wolf; and what it says of other libraries.

    python bench/bench_audit.py [--only tight fast power quiet peers] [--runs 10] [--json FILE]

tight: certified share of the true ε of Laplace noise (bar: median ≥ 0.95). fast: one audit of 65,536 runs on each side
(bar: 0.5 s of the processor). power: known bugs, at the number of runs at which an earlier auditor found all (bar: all
again). quiet: mechanisms of sfumato, 50 audits each at 10⁻⁴ (bar: no alarm). peers: diffprivlib and OpenDP, in
environments of their own, which `make bench-audit` prepares; those that are not there are left out.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from bench.audit.bugs import BUGS, Seeded
from bench.common.run import BENCH
from bench.common.side import Side
from sfumato.audit import audit
from sfumato.audit.exhibits import RowByRow, all_exhibits
from sfumato.mechanisms import Gaussian, Laplace

SURE = 0.999
OUTSIDE = [  # library, mechanism, (ε, δ), is it flagged?
    ("diffprivlib", "Laplace", 1.0, 0.0, True),
    ("diffprivlib", "GaussianAnalytic", 1.0, 1e-3, True),
    ("diffprivlib", "Geometric", 1.0, 0.0, False),
    ("opendp", "Laplace", 1.0, 0.0, False),
    ("opendp", "Gaussian", 1.0, 1e-3, False),
]


def tight(runs: int) -> dict[str, object]:
    """The certified ε of Laplace(1) on a fine lattice, 10⁵ runs on each side."""
    noise = RowByRow(Laplace(1.0, 2**-10))
    found = sorted(audit(noise, 0.0, 1.0, samples=100_000, confidence=SURE).epsilon.lower for _ in range(2 * runs))
    middle = float(np.median(found))
    print(
        f"tight   certified ε of 1: median {middle:.4f}, from {found[0]:.4f} to {found[-1]:.4f}  {word(middle >= 0.95)}"
    )
    return {"median": middle, "least": found[0], "most": found[-1]}


def fast() -> dict[str, object]:
    """Processor seconds of one audit, draws included, the best of three: a number, and eight numbers."""
    row = Gaussian(2.0, 2**-10)
    times = {}
    for name, mechanism, d0, d1 in (
        ("a number", RowByRow(Laplace(1.0, 2**-10)), 0.0, 1.0),
        ("eight numbers", RowByRow(row), np.zeros(8), np.ones(8)),
    ):
        spent = []
        for _ in range(3):
            start = time.process_time()
            audit(mechanism, d0, d1)
            spent.append(time.process_time() - start)
        times[name] = min(spent)
        print(f"fast    {name:14} {min(spent):.3f} s  {word(min(spent) <= 0.5)}")
    return times


def caught(bug: object, samples: int, runs: int) -> int:
    """How many of so many audits find the bug."""
    found = (
        audit(Seeded(bug, np.random.default_rng([run, samples])), 0, 1, bug.epsilon, bug.delta, samples, SURE)
        for run in range(runs)
    )
    return sum(one.violated for one in found)


def power(runs: int) -> dict[str, object]:
    """The least power of two, from 64, at which all audits find a bug, beside the number of the table."""
    needed: dict[str, object] = {}
    for bug in BUGS:
        samples = 64
        while caught(bug, samples, runs) < runs and samples < 4 * bug.table:
            samples *= 2
        good = samples <= bug.table
        needed[bug.name] = samples
        print(f"power   {bug.name:4} {samples:7,} (table: {bug.table:7,})  {word(good)}  {bug.words}", flush=True)
    return needed


def quiet(runs: int) -> dict[str, object]:
    """False alarms of all exhibits, each audited again and again with fresh bits."""
    exhibits = [one for one in all_exhibits() if one.part == "mechanisms" or one.rows]
    alarms, count = 0, 0
    for exhibit in exhibits:
        for _ in range(5 * runs):
            found = exhibit.audit(4096 if exhibit.rows else 300, confidence=1 - 1e-4)
            count += 1
            alarms += found.violated
            if found.violated:
                print(found)
    print(f"quiet   {alarms} alarms in {count:,} audits of {len(exhibits)} right mechanisms  {word(not alarms)}")
    return {"alarms": alarms, "audits": count, "mechanisms": len(exhibits)}


class Recorded:
    """Outputs that another process has drawn."""

    def __init__(self, outputs: dict[float, list[float]]) -> None:
        self.outputs = outputs

    def many(self, value: float, count: int) -> list[float]:
        assert len(self.outputs[value]) == count
        return self.outputs[value]


def peers(samples: int) -> dict[str, object]:
    """What the auditor says of outputs of other libraries."""
    told: dict[str, object] = {}
    for library, name, epsilon, delta, flagged in OUTSIDE:
        side = Side(library, BENCH / "audit", BENCH / ".peers" / library / "bin/python", 300.0)
        if not side.installed:
            print(f"peers   {library} is not installed here")
            continue
        drawn: dict[float, list[float]] = {}
        problem = ""
        for value in (0.0, 1.0):
            whole = int(value) if name == "Geometric" else value
            asked = {"name": name, "epsilon": epsilon, "delta": delta, "value": whole, "count": samples}
            reply = side.ask("outputs", asked, 1, 0.0)
            answer = reply.get("answer")
            if not isinstance(answer, dict):
                problem = str(reply.get("error") or reply)
                break
            drawn[value] = answer["outputs"]
        side.stop()
        if problem:
            print(f"peers   {library} {name}: {problem}")
            continue
        found = audit(Recorded(drawn), 0.0, 1.0, epsilon, delta, samples, SURE)
        told[f"{library} {side.version} {name}"] = found.epsilon.lower
        words = f"ε ≥ {found.epsilon.lower:.2f}, claimed {epsilon:g}; {found.event[:60]}"
        print(f"peers   {library} {side.version} {name:16} {words}  {word(found.violated == flagged)}", flush=True)
    return told


def word(good: bool) -> str:
    return "ok" if good else "MISSED"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="+", default=["tight", "fast", "power", "quiet", "peers"])
    options.add_argument("--runs", type=int, default=10, help="audits of each bug")
    options.add_argument("--samples", type=int, default=12_000, help="outputs of each peer on each side")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    parts = {
        "tight": lambda: tight(chosen.runs),
        "fast": fast,
        "power": lambda: power(chosen.runs),
        "quiet": lambda: quiet(chosen.runs),
        "peers": lambda: peers(chosen.samples),
    }
    found = {name: parts[name]() for name in chosen.only}
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
