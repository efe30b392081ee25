"""Local privacy: speed against multi-freq-ldpy and OpenDP, shuffled losses, errors and coverage.

    python bench/bench_local.py [--only 1 3 E] [--rounds 3] [--limit 60] [--json [FILE]]

Times are processor times for a million values or reports; peers do fewer and are scaled up. Peers live in
bench/.peers/<name>, which `make bench-local` prepares; rows of those that are not there are left out. Then, unless
--only leaves it out, E: errors against theory (160 repeats, raw estimates, bar 2 %), the default against the optimum
for k from 2 to 10⁵ (bars 1.10, and 1.03 from k = 100 on), and coverage (bars 95 % for exact
intervals, 94–96 % for normal ones).
"""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import sfumato as sf
from bench.common.run import BENCH, options_of, sides, table, write
from bench.local.work import ROWS
from sfumato.local.estimate import FrequencyEstimate

SIZES = (2, 3, 5, 10, 20, 50, 64, 65, 80, 100, 128, 200, 350, 500, 1000, 2000, 4096, 5000, 10**4, 3 * 10**4, 10**5)
EPS = (0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)


def verdict(good: bool) -> str:
    return "ok" if good else "MISSED"


def errors() -> dict[str, float]:
    """Mean of Σ(f̂ − f)²·n over its theory, with its standard error."""
    rng, found = np.random.default_rng(1), {}
    print("\nE1  mean squared error over theory, raw, 160 repeats, k = 1000, n = 50,000 (bar 2 %)")
    kinds = (sf.local.Response, sf.local.ProjectiveResponse, sf.local.HadamardResponse, sf.local.LocalHashing)
    for kind in kinds:
        oracle = kind.of(1000, 1.0)
        values = rng.zipf(1.4, 50_000) % 1000
        truth = np.bincount(values, minlength=1000) / values.size
        ratios = [
            np.sum((sf.local.estimate(oracle, oracle.randomize(values)).raw - truth) ** 2)
            * values.size
            / oracle.total_variance
            for _ in range(160)
        ]
        ratio, doubt = float(np.mean(ratios)), float(np.std(ratios) / math.sqrt(160))
        found[kind.__name__] = ratio
        print(
            f"    {kind.__name__:20} {ratio:.4f} ± {doubt:.4f}  {verdict(abs(ratio - 1) <= 0.02)}",
            flush=True,
        )
    return found


def optimality() -> dict[str, float]:
    """The default's total error over the least possible."""
    ratios = {
        (k, eps): sf.local.frequency_oracle(k, eps).total_variance / sf.local.least_total_variance(k, eps)
        for k in SIZES
        for eps in EPS
    }
    worst, large = max(ratios.values()), max(ratio for (k, _), ratio in ratios.items() if k >= 100)
    print(
        f"\nE2  default over optimum: {worst:.4f} everywhere (bar 1.10), {large:.4f} for k ≥ 100 (bar 1.03)", end="  "
    )
    print(verdict(worst <= 1.1 and large <= 1.03))
    return {"worst": worst, "worst from 100": large}


def coverage() -> dict[str, float]:
    """How often intervals of nominal 95 % hold their own target: 200,000 surveys each."""
    rng, found, repeats = np.random.default_rng(2), {}, 200_000
    print("\nE3  coverage of nominal 95 %, 200,000 surveys each: exact (bar ≥ 95 %), normal at n ≥ 10⁴ (bar 94–96 %)")
    for oracle in (sf.local.Response.two_coins(), sf.local.ProjectiveResponse.of(100, 1.0)):
        for n, share in ((1000, 0.3), (20_000, 0.3), (20_000, 0.01)):
            p, q, m = float(oracle.p), float(oracle.q), int(n * share)
            fixed = rng.binomial(m, p, repeats) + rng.binomial(n - m, q, repeats)
            people = rng.binomial(n, share, repeats)
            drawn = rng.binomial(people, p) + rng.binomial(n - people, q)
            for target, counts in ((sf.local.Target.PEOPLE, fixed), (sf.local.Target.POPULATION, drawn)):
                estimate = FrequencyEstimate(oracle, n, counts)
                hits = [
                    float(np.mean((low <= share) & (share <= high)))
                    for low, high in (estimate.interval(target), estimate.normal_interval(target))
                ]
                good = hits[0] >= 0.9485 and (n < 10**4 or 0.94 <= hits[1] <= 0.96)
                found[f"{oracle.scheme} {n} {share} {target.value}"] = hits[0]
                words = f"    {oracle.scheme:4} n = {n:6,} f = {share:<5} {target.value:30}"
                print(f"{words} exact {hits[0]:.4f}  normal {hits[1]:.4f}  {verdict(good)}")
    return found


def main() -> int:
    options = options_of(__doc__ or "", "local")
    ours, peers = sides(BENCH / "local", ROWS, options.limit)
    results = table(ROWS, ours, peers, options)
    more = {}
    if not options.only or "E" in options.only:
        more = {"errors": errors(), "optimality": optimality(), "coverage": coverage()}
    if options.json:
        write(options.json, results, (ours, *peers.values()), **more)
    for side in (ours, *peers.values()):
        side.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
