"""Ten thousand releases of each aggregate: how often its interval holds the truth, beside how often it says it does.

Counts and sums must be within 0.01 of the computed coverage; means, variances and quantiles not more than 0.01 below
95 %. Ends with 1 otherwise. No value is clamped, and the bits are the operating system's.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.curator.coverage import PRICES, QUESTIONS, of_ranks, of_sums


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--count", type=int, default=10_000, help="releases of each")
    options.add_argument("--ranks", type=int, default=2_000, help="releases of each quantile, which take longer")
    chosen = options.parse_args()
    worst = 0.0
    print(f"{'computed':>10} {'observed':>10}")
    for price in PRICES:
        found = [seen for name in QUESTIONS for seen in of_sums(name, price, chosen.count)]
        for seen in [*found, *of_ranks(price, chosen.ranks)]:
            share = seen.held / seen.count
            off = abs(share - seen.coverage) if seen.exact else max(0.0, seen.coverage - share)
            worst = max(worst, off)
            print(f"{'' if seen.exact else '≥':>3}{seen.coverage:>7.4f} {share:>10.4f}  {seen.name}", flush=True)
    print(f"farthest: {worst:.4f}")
    return int(worst > 0.01)


if __name__ == "__main__":
    sys.exit(main())
