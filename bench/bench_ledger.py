"""What a charge costs in time, from the first to the millionth: priced, checked and written, in memory.

    python bench/bench_ledger.py [--count 1000000]

Losses of many kinds are mixed; their prices are worked out once each, by description. Bars: 0.3 ms each, the last tenth
no slower than one and a half times the first, the sum exact. Only a wrong sum is punished, by exit status 1.
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
    *(L.DiscreteGaussianLoss(1000.0 * k) for k in range(1, 4)),
    10 * L.GaussianLoss(0.0001) + 3 * L.LaplaceLoss(0.0001),
    100 * L.RandomizedResponseLoss(0.0001),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10**6)
    count = parser.parse_args().count
    ledger = Ledger.create(":memory:", Budget(200.0, 1e-2))
    start = time.perf_counter()
    costs = [ledger.prices(loss)[0] for loss in LOSSES]
    print(f"{len(LOSSES)} kinds of losses priced in {time.perf_counter() - start:.2f} s")
    tenth, asked, times = max(count // 10, 1), Counter[int](), []
    for first in range(0, count, tenth):
        numbers = range(first, min(first + tenth, count))
        start = time.perf_counter()
        for number in numbers:
            ledger.charge(LOSSES[number * 7919 % len(LOSSES)], question=f"question {number}", who="ann")
        times.append((time.perf_counter() - start) / len(numbers) * 1e3)
        asked.update(number * 7919 % len(LOSSES) for number in numbers)
        print(f"  charges {first + 1:>9,} to {numbers[-1] + 1:>9,}: {times[-1]:.4f} ms each", flush=True)
    spent = ledger.accounts()[""][1]
    told = [Fraction(units, UNITS[name]) for name, units in spent.named().items()]
    due = [sum(n * costs[i].real(name) for i, n in asked.items()) for name in UNITS]
    exact, mean, slower = told == due, sum(times) / len(times), times[-1] / times[0]
    print(f"mean {mean:.4f} ms (bar {BAR}): {'met' if mean <= BAR else 'missed'}")
    print(f"last tenth / first {slower:.2f} (bar {FLAT}): {'met' if slower <= FLAT else 'missed'}")
    print(f"sum of {count:,} charges {'exact' if exact else 'WRONG'}")
    sys.exit(not exact)


if __name__ == "__main__":
    main()
