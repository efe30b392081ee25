"""How long the calculus takes and how far apart its two sides are, for compositions that were once slow or loose.

    python bench/bench_calculus.py [--only 1 7] [--limit 60]
    python bench/bench_calculus.py --random 300 [--seed 1] [--limit 10]

Each row is asked in a process of its own, cold, with one thread, and processor time is what counts, so that a busy
machine does not matter. Bars: 300 ms and a relative gap of 1e-3. A bar that is missed is shown; the exit status is 1
only if a question failed or took longer than the limit.

Rows 1 and 2 missed the bars (1.1 s and 3.1e-3, 270 ms and 1.2e-3) as long as the inner profile was a table: the gap of
the table, largest where the profile is least known, was charged at every step, and once more to the kernel of the
lower bound. Their inner sums are now put on a lattice and mapped through sampling atom by atom (compose/nested.py). So
are sums in batches without replacement (rows 23 to 26: 1.1 to 1.8 s before). Sampled Laplace, bounded-range and coin
losses are composed on a contour (compose/transforms/bounded.py). Groups under sampling are binomial mixtures with a
transform of their own (kinds/sampled_group.py); as a chain of sampled pairs, row 21 had a gap of .13.

A trade-off and a price are decided around one ε, so they are read off laws that are sharp there (rows 28, 30, 33, 34
and 36 to 40: .8 to 8 s before), and laws and contours of earlier looks are asked first. Rényi moments are read off one
lattice for all orders (compose/lattice_moments.py; rows 29, 32 and 35 took more than a minute as integrals of the
profile). Rows 43 to 46 took 8 s and more.

Most of the time of rows 22, 28 to 30, 34 and 35 goes into two to four inner lattices of 65,000 to 200,000 points, in
both directions; their gaps of up to 9e-4 are those of the largest inner lattice.

`--random` asks random questions in forked processes, prints those that miss a bar, and counts them. Processor time
counts, yet it doubles if the machine's cores are shared: the first line says how long a fixed transform takes.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

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
from sfumato.loss.numeric import Enclosure
from sfumato.sampling import Poisson, WithoutReplacement
from sfumato.sensitivity import ReplaceOne

MOST_SECONDS, MOST_GAP = 0.3, 1e-3
PATIENCE = 2.0  # seconds after which something must be shown
LEAST = 1e-15  # numbers below this are as good as zero


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


def widest(found: Enclosure) -> Bound:
    """The number of several whose sides are farthest apart."""
    at = int(np.argmax((found.upper - found.lower) / found.upper))
    return Bound(float(found.lower[at]), float(found.upper[at]), "trade-off", "lower")


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
    "a sample of 10¹⁵ pure losses: Hellinger": lambda: Poisson(0.01).amplify(10**15 * PureLoss(1e-8)).hellinger(),
    "10¹² sampled bounded ranges: six trade-offs": lambda: widest(
        (10**12 * Poisson(1e-12).amplify(BoundedRangeLoss(0.18))).trade_off([0.001, 0.15, 0.2, 0.4, 0.6, 0.8])
    ),
    "a sample of two kinds: price": lambda: (
        Poisson(0.5).amplify(BoundedRangeLoss(0.34) + ApproxLoss(0.015, 1e-11)).gdp(6e-8)
    ),
    "a batch of coins and discrete Laplaces: Rényi": lambda: (
        WithoutReplacement(10_000, 5000)
        .amplify(
            100 * PureLoss(0.058, relation=ReplaceOne) + 2 * DiscreteLaplaceLoss(2.6, 1, relation=ReplaceOne),
        )
        .renyi(0.5)
    ),
}


def ask(row: str) -> int:
    """Answer one row: processor seconds, wall seconds, both sides."""
    started, clock = time.process_time(), time.perf_counter()
    found = ROWS[row]()
    print(time.process_time() - started, time.perf_counter() - clock, found.lower, found.upper, found.method, sep=";")
    return 0


def reference() -> str:
    """How fast this machine is just now: processor time of a fixed transform."""
    values, started = np.random.default_rng(1).random(1 << 18), time.process_time()
    for _ in range(20):
        np.fft.rfft(values)
    return f"20 transforms of 2¹⁸ numbers take {1e3 * (time.process_time() - started):.0f} ms"


def table(rows: list[str], limit: float) -> int:
    """Every row in its own process."""
    failed = 0
    print(reference())
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


KINDS: dict[str, Callable[[random.Random], str]] = {
    "Gaussian": lambda rng: f"GaussianLoss({number(rng, 0.01, 3)}{{about}})",
    "Laplace": lambda rng: f"LaplaceLoss({number(rng, 0.01, 2)}{{about}})",
    "discrete Gaussian": lambda rng: f"DiscreteGaussianLoss({rng.choice([1, 2, 3, 10, 50])}, 1{{about}})",
    "discrete Laplace": lambda rng: f"DiscreteLaplaceLoss({number(rng, 0.5, 20)}, 1{{about}})",
    "pure": lambda rng: f"PureLoss({number(rng, 0.001, 1)}{{about}})",
    "approximate": lambda rng: f"ApproxLoss({number(rng, 0.01, 1)}, {number(rng, 1e-12, 1e-8)}{{about}})",
    "randomized response": lambda rng: (
        f"RandomizedResponseLoss({number(rng, 0.01, 2)}, {rng.choice([2, 3, 8])}{{about}})"
    ),
    "bounded range": lambda rng: f"BoundedRangeLoss({number(rng, 0.01, 1)}{{about}})",
}
VIEWS: dict[str, Callable[[random.Random], str]] = {
    "epsilon": lambda rng: f"epsilon({number(rng, 1e-10, 1e-3)})",
    "delta": lambda rng: f"delta({number(rng, 0.05, 5)})",
    "trade_off": lambda rng: f"trade_off({number(rng, 0.001, 0.5)})",
    "curve": lambda rng: f"trade_off([{number(rng, 0.001, 0.1)}, 0.15, 0.2, 0.4, 0.6, 0.8])",
    "renyi": lambda rng: f"renyi({rng.choice([0.5, 1.5, 2, 8, 32])})",
    "kl": lambda _: "kl()",
    "zcdp": lambda _: "zcdp()",
    "gdp": lambda rng: f"gdp({number(rng, 1e-10, 1e-5)})",
    "hellinger": lambda _: "hellinger()",
    "total variation": lambda _: "total_variation()",
    "chi squared": lambda _: "chi_squared()",
    "group": lambda rng: f"group({rng.choice([2, 3])}).epsilon(1e-6)",
    "price": lambda _: "price",
}


def number(rng: random.Random, low: float, high: float) -> str:
    """A number of two digits, evenly in the logarithm."""
    return f"{math.exp(rng.uniform(math.log(low), math.log(high))):.2g}"


def expression(rng: random.Random, depth: int, replace: bool) -> str:
    """A loss as a user would type it: a kind, a sum, a repetition or a sample of losses."""
    shape = rng.choice(["kind", "sum", "repeat", "repeat", "sample", "sample"]) if depth else "kind"
    if shape == "kind":
        return rng.choice(list(KINDS.values()))(rng).format(about=", relation=ReplaceOne" if replace else "")
    if shape == "sum":
        return f"({expression(rng, depth - 1, replace)} + {expression(rng, depth - 1, replace)})"
    inner = expression(rng, depth - 1, replace)
    if shape == "repeat":
        times = rng.choice([2, 5, 10, 30, 100, 1000, 10**4, 10**6, 10**9, 10**12] if depth > 1 else [2, 5, 20, 100])
        return f"({times} * {inner})"
    if replace:
        people = rng.choice([100, 1000, 10**4, 10**6])
        return (
            f"WithoutReplacement({people}, {max(1, int(people * rng.choice([1e-4, 0.01, 0.1, 0.5])))}).amplify({inner})"
        )
    return f"Poisson({rng.choice(['1e-12', '1e-6', '0.001', '0.01', '0.1', '0.5'])}).amplify({inner})"


def question(seed: int) -> tuple[str, str]:
    """A loss and one of its views, of this seed."""
    rng = random.Random(seed)
    view = rng.choice(list(VIEWS))
    replace = view not in ("group", "price") and rng.random() < 0.3
    return expression(rng, rng.choice([1, 2, 2, 3, 3, 3, 4]), replace), VIEWS[view](rng)


def answer(loss: str, view: str) -> list[tuple[float, float]]:
    """The two sides of every number that this view has."""
    made: PrivacyLoss = eval(loss)  # written by this file
    if view == "price":
        Budget(1.0, 1e-6).price(made)
        return []
    found = eval(f"made.{view}", {"made": made})
    sides = (found.lower, found.upper) if isinstance(found, Bound) else found
    return list(zip(*(np.atleast_1d(side).tolist() for side in sides), strict=True))


def ask_child(loss: str, view: str, limit: float) -> dict[str, object]:
    """The answer of a forked process: processor seconds, gap, whether it said that it takes long, or why it failed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 2)  # a progress message
        signal.setitimer(signal.ITIMER_PROF, limit)
        began, clock = time.process_time(), time.perf_counter()
        try:
            sides = answer(loss, view)
            gap = max(((high - low) / high for low, high in sides if high > max(low, LEAST)), default=0.0)
            result: dict[str, object] = {"gap": gap, "sides": str(sides[0] if sides else ""), "failed": ""}
        except Exception as error:  # refusals are answers, anything else is shown
            result = {"gap": 0.0, "sides": str(error).splitlines()[0], "failed": type(error).__name__}
        result |= {"cpu": time.process_time() - began, "wall": time.perf_counter() - clock}
        os.write(writing, ("\n" + json.dumps(result)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        *said, last = pipe.read().split("\n")
    os.waitpid(child, 0)
    finished = last.startswith("{")
    result = json.loads(last) if finished else {"cpu": limit, "wall": limit, "gap": 0.0, "sides": "", "failed": "limit"}
    return result | {"silent": float(str(result["wall"])) > PATIENCE and not any(said) and finished}


def ask_at_random(count: int, seed: int, limit: float) -> int:
    """Random questions, each in a forked process; those that miss a bar are shown."""
    print(reference())
    missed = dict.fromkeys(("slow", "loose", "silent", "failed", "limit"), 0)
    for number_ in range(seed, seed + count):
        loss, view = question(number_)
        found = ask_child(loss, view, limit)
        cpu, gap, failed = float(str(found["cpu"])), float(str(found["gap"])), str(found["failed"])
        problems = {
            "slow": cpu > MOST_SECONDS,
            "loose": not gap <= MOST_GAP,
            "silent": found["silent"],
            "failed": failed not in ("", "limit", "InvalidParameter"),
            "limit": failed == "limit",
        }
        words = [word for word, is_so in problems.items() if is_so]
        for word in words:
            missed[word] += 1
        if words:
            print(
                f"{number_:>5} {1e3 * cpu:>7.0f} ms {gap:>8.1e}  {'/'.join(words)}  {loss}.{view}  {found['sides']}",
                flush=True,
            )
    print(f"{count} questions: " + ", ".join(f"{times} {word}" for word, times in missed.items()))
    return int(missed["failed"] + missed["limit"] > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="numbers of rows")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one row")
    parser.add_argument("--row", help="answer this row in this process")
    parser.add_argument("--random", type=int, metavar="COUNT", help="ask so many random questions instead")
    parser.add_argument("--seed", type=int, default=1, help="of the first random question; the next has the next seed")
    options = parser.parse_args()
    if options.random:
        return ask_at_random(options.random, options.seed, options.limit)
    return ask(options.row) if options.row else table(options.only, options.limit)


if __name__ == "__main__":
    sys.exit(main())
