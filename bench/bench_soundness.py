"""Random configurations against independent truth: how many answers miss it (none may), and how wide the answers are.

    python bench/bench_soundness.py [--count 100000] [--seed 0] [--tolerance 1e-5] [--show 10]

Each configuration is a random loss of one family (tests/configurations.py), asked for δ in both directions at
several ε, and compared with closed forms, exact sums, enumeration and inversion in many digits (tests/truth.py). Cheap
families get more of the count than those that are composed. The exit status is 1 if any answer missed the
truth or failed. On two shared cores the full count takes about an hour and a half, 2,000 under two minutes.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from sfumato.loss.compose.lattice import Lattice
from tests import configurations as families
from tests.configurations import Configuration, configuration, violations

# family, share of the count, and whether the lattice is asked directly
PLAN: list[tuple[Callable[[Random], Configuration], float, bool]] = [
    (families.one_gaussian, 0.256, False),
    (families.several_gaussians, 0.05, False),
    (families.one_laplace, 0.12, False),
    (families.one_bounded_range, 0.02, False),
    (families.one_discrete_gaussian, 0.07, False),
    (families.one_sampled_gaussian, 0.08, False),
    (families.one_finite, 0.23, False),
    (families.equal_coins, 0.08, False),
    (families.equal_laplaces, 0.01, False),
    (families.several_finite, 0.03, False),
    (families.several_finite, 0.03, True),
    (families.with_finite, 0.02, False),
    (families.coins_and_curve, 0.002, False),
    (families.many_sampled_gaussians, 0.002, False),
]


@dataclass
class Tally:
    """What one family came to."""

    name: str
    configurations: int = 0
    answers: int = 0
    missed: int = 0
    failed: int = 0
    gaps: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def row(self) -> str:
        middle, high, most = np.quantile(self.gaps, [0.5, 0.9, 1.0]) if self.gaps else (np.nan,) * 3
        speed = 1e3 * self.seconds / max(self.configurations, 1)
        return (
            f"{self.name:<34}{self.configurations:>9,}{self.answers:>10,}{self.missed:>8}{self.failed:>8}"
            f"{middle:>10.1e}{high:>10.1e}{most:>10.1e}{speed:>9.1f}"
        )


HEAD = f"{'family':<34}{'losses':>9}{'answers':>10}{'missed':>8}{'failed':>8}"
HEAD += f"{'gap 50%':>10}{'90%':>10}{'max':>10}{'ms':>9}"


def asked(case: Configuration, directly: bool, tolerance: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """The two directions, through the loss or through the lattice itself."""
    if directly:
        back = tuple((count, loss.reverse) for count, loss in case.terms)
        return [Lattice(terms).forward(case.eps, tolerance) for terms in (case.terms, back)]
    return [case.loss.forward(case.eps, tolerance), case.loss.backward(case.eps, tolerance)]


def run(family: Callable[[Random], Configuration], directly: bool, seeds: range, tolerance: float, show: int) -> Tally:
    tally = Tally(family.__name__.replace("_", " ") + (", on the lattice" if directly else ""))
    last = time.monotonic()
    for seed in seeds:
        case = configuration(family, seed)
        start = time.perf_counter()
        try:
            found = asked(case, directly, tolerance)
        except Exception as error:
            tally.failed += 1
            report(tally, show, f"seed {seed}: {type(error).__name__}: {error} for {case.terms}")
            continue
        finally:
            tally.seconds += time.perf_counter() - start
            tally.configurations += 1
        tally.answers += 2 * len(case.eps)
        wrong = violations(case, found)
        tally.missed += len(wrong)
        for text in wrong:
            report(tally, show, f"seed {seed}: {text}")
        # relative gaps where they mean something: below the largest loss, above rounding
        high, low = np.concatenate([f[1] for f in found]), np.concatenate([f[0] for f in found])
        usual = high > 1e-14
        tally.gaps += ((high - low)[usual] / high[usual]).tolist()
        if sys.stderr.isatty() and time.monotonic() - last > 1:
            last = time.monotonic()
            print(f"\r  {tally.name}: {tally.configurations:,} of {len(seeds):,}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r" + " " * 79 + "\r", end="", file=sys.stderr, flush=True)
    return tally


def report(tally: Tally, show: int, text: str) -> None:
    if tally.missed + tally.failed <= show:
        print(f"  {tally.name}, {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, help="configurations in all")
    parser.add_argument("--seed", type=int, default=0, help="the first seed of each family")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--show", type=int, default=5, help="misses shown per family")
    options = parser.parse_args()
    warnings.simplefilter("error")
    print(HEAD)
    tallies = []
    for family, share, directly in PLAN:
        count = max(1, round(options.count * share))
        seeds = range(options.seed, options.seed + count)
        tallies.append(run(family, directly, seeds, options.tolerance, options.show))
        print(tallies[-1].row(), flush=True)
    answers, missed, failed = (sum(getattr(t, name) for t in tallies) for name in ("answers", "missed", "failed"))
    print(f"{answers:,} answers: {missed} missed the truth, {failed} losses failed to answer")
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
