"""How long the calculus takes and how far apart its two sides are, for compositions that were once slow or loose.

    python bench/bench_calculus.py [--only 1 7] [--limit 60]

Each row is asked in a process of its own, cold, with one thread, and processor time is what counts, so that a busy
machine does not matter. Bars: 300 ms and a relative gap of 1e-3. A bar that is missed is shown; the exit status is 1
only if a question failed or took longer than the limit.

Rows 1 and 2 missed the bars (1.1 s and 3.1e-3, 270 ms and 1.2e-3) as long as the inner profile was a table: the gap of
the table, largest where the profile is least known, was charged at every step, and once more to the kernel of the
lower bound. Their inner sums are now put on a lattice and mapped through sampling atom by atom (compose/nested.py). So
are sums in batches without replacement (rows 23 to 26: 1.1 to 1.8 s before). Sampled Laplace, bounded-range and coin
losses are composed on a contour (compose/transforms/bounded.py). Groups under sampling are binomial mixtures with a
transform of their own (kinds/sampled_group.py); as a chain of sampled pairs, row 21 had a gap of .13.

A trade-off and a price are decided around one ε, so they are read off laws that are sharp there (rows 28, 34, 36 to 39:
.8 to 8 s before; rows 30 and 33: 3.3 and 1.4 s). Rényi moments are read off one lattice for all orders
(compose/lattice_moments.py; rows 29, 32 and 35 took more than a minute as integrals of the profile).

Still slow: rows 28 to 30, 33 to 35 (.3 to .8 s), each made of two to six inner compositions of .06 to .2 s, in both
directions; and row 40 (3 s), whose price needs some sixty values of a profile that contours know too little about.
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
    DiscreteLaplaceLoss,
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


def replaced(mu: float) -> PrivacyLoss:
    return GaussianLoss(mu, relation=ReplaceOne)


def laplace() -> PrivacyLoss:
    return LaplaceLoss(0.3, relation=ReplaceOne)


def batch(loss: PrivacyLoss) -> PrivacyLoss:
    return WithoutReplacement(1000, 100).amplify(loss)


def five_kinds() -> PrivacyLoss:
    smooth = 100 * sampled() + 20 * LaplaceLoss(0.1) + RandomizedResponseLoss(0.3)
    return smooth + 5 * DiscreteGaussianLoss(3, 1) + ApproxLoss(0.1, 1e-9)


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
    "20 batches of 100 in 1,000 of a sum": lambda: (20 * batch(10 * replaced(0.3) + laplace())).epsilon(1e-6),
    "20 batches of 10 batches of a Gaussian": lambda: (20 * batch(10 * batch(replaced(1.0)))).epsilon(1e-6),
    "20 batches of 10 batches: trade-off": lambda: (20 * batch(10 * batch(replaced(1.0)))).trade_off(0.05),
    "20 batches of a sum: KL": lambda: (20 * batch(10 * replaced(0.3) + laplace())).kl(),
    "100 batches of a Gaussian: zCDP": lambda: (100 * batch(replaced(1.0))).zcdp(),
    "row 1: trade-off": lambda: (20 * Poisson(0.1).amplify(10 * sampled())).trade_off(0.05),
    "row 1: KL": lambda: (20 * Poisson(0.1).amplify(10 * sampled())).kl(),
    "row 1: price at slack 1e-8": lambda: (20 * Poisson(0.1).amplify(10 * sampled())).gdp(1e-8),
    "row 2: trade-off": lambda: (20 * Poisson(0.1).amplify(5 * LaplaceLoss(0.3))).trade_off(0.05),
    "row 2: zCDP": lambda: (20 * Poisson(0.1).amplify(5 * LaplaceLoss(0.3))).zcdp(),
    "row 2: price at slack 1e-8": lambda: (20 * Poisson(0.1).amplify(5 * LaplaceLoss(0.3))).gdp(1e-8),
    "row 22: trade-off": lambda: (20 * Poisson(0.1).amplify(1000 * sampled())).trade_off(0.05),
    "row 22: KL": lambda: (20 * Poisson(0.1).amplify(1000 * sampled())).kl(),
    "two coins (.5, .3): trade-off": lambda: (PureLoss(0.5) + PureLoss(0.3)).trade_off(0.05),
    "10 + 10 discrete Laplaces: trade-off": lambda: (
        10 * DiscreteLaplaceLoss(3.0, 1) + 10 * DiscreteLaplaceLoss(2.0, 1)
    ).trade_off(0.05),
    "100 sampled discrete Gaussians: trade-off": lambda: (
        100 * Poisson(0.1).amplify(DiscreteGaussianLoss(2, 1))
    ).trade_off(0.05),
    "five kinds of losses: trade-off": lambda: five_kinds().trade_off(0.05),
    "five kinds of losses: price at slack 1e-8": lambda: five_kinds().gdp(1e-8),
    "100 sampled Laplaces (.5): zCDP": lambda: (100 * Poisson(0.1).amplify(LaplaceLoss(0.5))).zcdp(),
    "row 21: zCDP": lambda: (1000 * sampled()).group(3).zcdp(),
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
