"""How long the calculus takes and how far apart its two sides are, for compositions that were once slow or loose.

    python bench/bench_calculus.py [--only 1 7] [--limit 60]

Each row is asked in a process of its own, cold, with one thread, and processor time is what counts, so that a busy
machine does not matter. Bars: 300 ms and a relative gap of 1e-3. A bar that is missed is shown; the exit status is 1
only if a question failed or took longer than the limit.

All rows but the last meet the bars. Rows 1 and 2 missed them (1.1 s and 3.1e-3, 270 ms and 1.2e-3) as long as the
inner profile was a table: the gap of the table, largest where the profile is least known, was charged at every step,
and once more to the kernel of the lower bound. Their inner sums are now put on a lattice and mapped through sampling
atom by atom (sfumato/loss/compose/nested.py). Sampled Laplace, bounded-range and coin losses are composed on a contour
(sfumato/loss/compose/transforms/bounded.py). Groups under sampling are binomial mixtures with a transform of their own
(sfumato/loss/kinds/sampled_group.py); as a chain of sampled pairs, row 21 had a gap of .13. The inner profile of row
22 is a table of contours: half a second, where lattices took four.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sfumato.ledger.budgets import Budget
from sfumato.loss import (
    ApproxLoss,
    Bound,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    PureLoss,
    RandomizedResponseLoss,
    nothing,
)
from sfumato.sampling import Poisson, WithoutReplacement
from sfumato.sensitivity import ReplaceOne

MOST_SECONDS, MOST_GAP = 0.3, 1e-3


def sampled(rate: float = 0.01, mu: float = 1.25) -> PrivacyLoss:
    return Poisson(rate).amplify(GaussianLoss(mu))


def images() -> PrivacyLoss:
    return 14_062 * sampled(256 / 60_000, 1 / 2.2644)


def price() -> Bound:
    loss = sum((LaplaceLoss(0.01 * i) for i in range(1, 26)), nothing()) + RandomizedResponseLoss(0.1)
    found = float(Budget(1.0, 1e-6).price(loss).real("gauss"))
    return Bound(found, found, "price")


def mixed_batches() -> Bound:
    first, second = (GaussianLoss(mu, relation=ReplaceOne) for mu in (1.85, 0.487))
    return (30 * WithoutReplacement(10_000, 23).amplify(first) + second).epsilon(1e-6)


ROWS: dict[str, Callable[[], Bound]] = {
    "20 batches (.1) of 10 sampled Gaussians": lambda: (20 * Poisson(0.1).amplify(10 * sampled())).epsilon(1e-6),
    "20 batches (.1) of 5 Laplaces (.3)": lambda: (20 * Poisson(0.1).amplify(5 * LaplaceLoss(0.3))).epsilon(1e-6),
    "10⁹ pure losses of 1e-5": lambda: (10**9 * PureLoss(1e-5)).epsilon(1e-6),
    "10⁹ approximate losses (1e-5, 1e-16)": lambda: (10**9 * ApproxLoss(1e-5, 1e-16)).epsilon(1e-6),
    "10¹⁵ sampled Gaussians, rate 1e-12": lambda: (10**15 * sampled(1e-12)).epsilon(1e-6),
    "10¹⁵ sampled pure losses, rate 1e-12": lambda: (10**15 * Poisson(1e-12).amplify(PureLoss(1.0))).epsilon(1e-6),
    "1,000 sampled Gaussians, rate 1e-200": lambda: (1000 * sampled(1e-200)).epsilon(1e-6),
    "one sampled Gaussian, rate 1e-200": lambda: sampled(1e-200).epsilon(1e-6),
    "DP-SGD, 10⁴ steps: ε": lambda: (10**4 * sampled()).epsilon(1e-6),
    "DP-SGD, 10⁴ steps: one trade-off value": lambda: (10**4 * sampled()).trade_off(0.01),
    "DP-SGD, 60,000 images, σ = 2.2644: trade-off": lambda: images().trade_off(0.01),
    "DP-SGD, 60,000 images, σ = 2.2644: zCDP": lambda: images().zcdp(),
    "DP-SGD, 10⁴ steps: zCDP": lambda: (10**4 * sampled()).zcdp(),
    "price of 25 Laplaces and a coin": price,
    "3 randomized responses of 3 answers": lambda: (3 * RandomizedResponseLoss(0.264, 3)).epsilon(1.8e-4),
    "10⁹ discrete Gaussians, σ = 30,000": lambda: (10**9 * DiscreteGaussianLoss(30_000, 1)).epsilon(1e-6),
    "30 batches of 23 in 10,000 and a Gaussian": mixed_batches,
    "10⁹ sampled Laplaces (.01), rate .01": lambda: (10**9 * Poisson(0.01).amplify(LaplaceLoss(0.01))).epsilon(1e-6),
    "10¹² sampled bounded ranges (1e-3)": lambda: (10**12 * Poisson(1e-3).amplify(BoundedRangeLoss(1e-3))).epsilon(
        1e-6
    ),
    "10¹² pure losses of 1e-7": lambda: (10**12 * PureLoss(1e-7)).epsilon(1e-6),
    "DP-SGD, 1,000 steps: three people": lambda: (1000 * sampled()).group(3).epsilon(1e-6),
    "20 batches (.1) of 1,000 sampled Gaussians": lambda: (20 * Poisson(0.1).amplify(1000 * sampled())).epsilon(1e-6),
}


def ask(row: str) -> int:
    """Answer one row: processor seconds, wall seconds, both sides."""
    started, clock = time.process_time(), time.perf_counter()
    found = ROWS[row]()
    print(time.process_time() - started, time.perf_counter() - clock, found.lower, found.upper, found.method, sep=";")
    return 0


def table(rows: list[str], limit: float) -> int:
    """Every row in its own process."""
    failed = 0
    print(f"{'':<44}{'cpu ms':>9}{'wall ms':>9}{'gap':>9}  answer")
    for number, row in enumerate(ROWS, 1):
        if rows and str(number) not in rows:
            continue
        command = [sys.executable, __file__, "--row", row]
        single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            out = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True, env=single)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            failed += 1
            print(f"{number:>2} {row:<41} {type(error).__name__}", flush=True)
            continue
        cpu, wall, low, high = map(float, out.stdout.split(";")[:4])
        gap = (high - low) / high if high > low else 0.0
        missed = " ".join(word for word, bad in (("slow", cpu > MOST_SECONDS), ("loose", gap > MOST_GAP)) if bad)
        answer = f"[{low:.7g}, {high:.7g}] {out.stdout.split(';')[4].strip()} {missed}"
        print(f"{number:>2} {row:<41}{1e3 * cpu:>9.0f}{1e3 * wall:>9.0f}{gap:>9.1e}  {answer}", flush=True)
    return int(failed > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="numbers of rows")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one row")
    parser.add_argument("--row", help="answer this row in this process")
    options = parser.parse_args()
    return ask(options.row) if options.row else table(options.only, options.limit)


if __name__ == "__main__":
    sys.exit(main())
