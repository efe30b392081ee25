"""What a charge costs in time, from the first to the millionth: priced, checked and written, in memory.

    python bench/bench_ledger.py [--count 1000000]

Losses of many kinds are mixed; their prices are worked out once each, by description. Bars: 0.3 ms each, the last tenth
no slower than one and a half times the first, the sum exact. Times are the processor's, since others may be using the
machine. Only a wrong sum is punished, by exit status 1.
"""

import argparse
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import sfumato as sf
from sfumato.ledger import Budget, Ledger
from sfumato.ledger.amounts import UNITS

BAR, FLAT = 0.3, 1.5
L = sf.loss
LOSSES = [
    *(L.GaussianLoss(0.0001 * k) for k in range(1, 41)),
    *(L.LaplaceLoss(0.0001 * k) for k in range(1, 21)),
    *(L.PureLoss(0.0001 * k) for k in range(1, 21)),
    *(L.RandomizedResponseLoss(0.0001 * k) for k in range(1, 11)),
    *(L.ApproxLoss(0.0001 * k, 1e-16) for k in range(1, 6)),
    *(100 * L.RandomizedResponseLoss(0.00001 * k) for k in range(1, 5)),
]
RARE = [  # without a largest value, they take 10⁻⁴ of the slack each: a thousand times in a million, not more
    10 * L.GaussianLoss(0.0001) + 3 * L.LaplaceLoss(0.0001),
    L.DiscreteGaussianLoss(1000.0),
]


def asked_for(number: int) -> int:
    """Which loss the question of this number has: a mix, always the same."""
    rare, usual = divmod(number, 1000)
    return len(LOSSES) + rare % len(RARE) if usual == 999 else number * 7919 % len(LOSSES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10**6)
    count = parser.parse_args().count
    ledger = Ledger.create(":memory:", Budget(200.0, 1e-2))
    start = time.perf_counter()
    losses = LOSSES + RARE
    costs = [ledger.prices(loss)[0] for loss in losses]
    print(f"{len(losses)} kinds of losses priced in {time.perf_counter() - start:.2f} s")
    tenth, asked, times = max(count // 10, 1), Counter[int](), []
    for first in range(0, count, tenth):
        numbers = range(first, min(first + tenth, count))
        start, begun = time.perf_counter(), time.process_time()
        for number in numbers:
            ledger.charge(losses[asked_for(number)], question=f"question {number}", who="ann")
        times.append((time.process_time() - begun) / len(numbers) * 1e3)
        by_clock = (time.perf_counter() - start) / len(numbers) * 1e3
        asked.update(map(asked_for, numbers))
        span = f"charges {first + 1:>9,} to {numbers[-1] + 1:>9,}"
        print(f"  {span}: {times[-1]:.4f} ms each ({by_clock:.4f} by the clock)", flush=True)
    spent = ledger.accounts()[""][1]
    told = [Fraction(units, UNITS[name]) for name, units in spent.by_name().items()]
    due = [sum(n * costs[i].real(name) for i, n in asked.items()) for name in UNITS]
    exact, mean, slower = told == due, sum(times) / len(times), times[-1] / times[0]
    print(f"mean {mean:.4f} ms (bar {BAR}): {'met' if mean <= BAR else 'missed'}")
    print(f"last tenth / first {slower:.2f} (bar {FLAT}): {'met' if slower <= FLAT else 'missed'}")
    print(f"sum of {count:,} charges {'exact' if exact else 'WRONG'}")
    sys.exit(not exact)


if __name__ == "__main__":
    main()
