"""How long a million groups take: read through a table, with exact noise, and back to counts.

    python bench/bench_groups.py [--groups 1000000]

The best of nine runs, in processor time, since others may be using the machine; the clock's time stands beside it.
Bar: 20 million groups a second for the contract of 5 %. Making its table, once, is not part of that.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from sfumato import groups

BAR = 20.0
RUNS = 9
WAYS = {
    "contract of 5 %, floor 10": lambda: groups.contract(0.05, 10).mechanism,
    "unbiased, 10 %": lambda: groups.RootMeanSquareError(0.1, 10).mechanism,
    "logarithm": lambda: groups.Transformed(groups.Log(1.0), 0.1),
    "square root": lambda: groups.Transformed(groups.SquareRoot(), 0.5),
    "identity": lambda: groups.Transformed(groups.Identity(), 5.0),
}


def best(work: Callable[[], object]) -> tuple[float, float]:
    """Least processor time and least time, in seconds."""
    found = []
    for _ in range(RUNS):
        start, begun = time.perf_counter(), time.process_time()
        work()
        found.append((time.process_time() - begun, time.perf_counter() - start))
    return min(cpu for cpu, _ in found), min(clock for _, clock in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10**6)
    count = parser.parse_args().groups
    sizes = np.floor(np.exp(np.random.default_rng(1).normal(4, 3, count))).astype(np.int64)  # many small, some huge
    print(f"{count:,} groups, from {sizes.min()} to {sizes.max():,} people\n")
    heads = ["table", "steps", "noise", "back", "all"]
    print(f"{'':<26} {''.join(f'{head:>8}' for head in heads)}  million groups/s  (by the clock)")
    for name, make in WAYS.items():
        start = time.process_time()
        mechanism = make()
        mechanism.release(sizes[:1000])
        table = time.process_time() - start
        part = sizes[: 1 << 17]
        steps = mechanism.table.steps(part)
        parts = [
            best(lambda: mechanism.table.steps(part))[0],  # noqa: B023  # called before the next turn
            best(lambda: mechanism.sampler.about(steps))[0],  # noqa: B023
            best(lambda: mechanism.estimate(steps))[0],  # noqa: B023
        ]
        cpu, clock = best(lambda: mechanism.release(sizes))  # noqa: B023
        each = "".join(f"{t / part.size * 1e9:5.1f} ns" for t in parts)
        verdict = (
            "" if name != next(iter(WAYS)) else f"  bar {BAR:g}: {'ok' if count / cpu / 1e6 >= BAR else 'too slow'}"
        )
        print(
            f"{name:<26} {table * 1e3:5.0f} ms{each}{cpu / count * 1e9:5.1f} ns  {count / cpu / 1e6:>16.1f}"
            f"  ({count / clock / 1e6:.1f}){verdict}"
        )


if __name__ == "__main__":
    main()
