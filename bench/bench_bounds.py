"""Suggested bounds against an oracle's: the mean error of a sum, on exact laws of the data, without an engine.

The suggestion has 10 % of the μ² of (ε = 1, δ = 1e-6), the sum the rest; the oracle knows the data, takes the best
bounds and has all of it. Run: python -m bench.bench_bounds
"""

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.aggregates.price import most_mu
from sfumato.curator.suggest_bounds import LATER, refined_range, rough_range, round_outward
from sfumato.curator.value_votes import BINS
from sfumato.sql.functions.numbers import LEAST_SIZE, SIZES

Floats = NDArray[np.float64]
RUNS = 20


def made(rng: np.random.Generator, n: int) -> dict[str, Floats]:
    return {
        "gamma": rng.gamma(2, 10, n) + rng.integers(0, 17, n),
        "lognormal": rng.lognormal(math.log(40000), 0.8, n),
        "uniform": rng.uniform(0, 60, n),
        "normal": rng.normal(40, 15, n),
        "exponential": rng.exponential(5, n),
        "pareto 3": rng.pareto(3, n) + 1,
        "ages": np.clip(np.round(rng.normal(45, 18, n)), 0, 105),
    }


def error(x: Floats, low: float, high: float, mu: float) -> float:
    """E|noise + bias| of a sum."""
    sigma = max(abs(low), abs(high)) / mu
    b = abs(float(np.clip(x, low, high).sum() - x.sum())) / sigma
    return sigma * (math.sqrt(2 / math.pi) * math.exp(-b * b / 2) + b * math.erf(b / math.sqrt(2)))


def oracle(x: Floats, mu: float) -> float:
    ends = np.unique(np.append(np.quantile(x, 1 - np.geomspace(1e-6, 0.05, 100)), x.max()))
    return min(error(x, min(0.0, float(x.min())), float(high), mu) for high in ends)


def suggestion(x: Floats, mu: float, rng: np.random.Generator) -> tuple[float, float]:
    """As the curator does it, with noise of doubles."""
    sigma = math.sqrt(2) / mu
    doublings = np.floor(np.log2(np.maximum(np.abs(x) / LEAST_SIZE, 1))) + 1
    size = np.sign(x) * np.where(np.abs(x) < LEAST_SIZE, 0, np.minimum(doublings, SIZES))
    counts = np.bincount((size + SIZES).astype(int), minlength=2 * SIZES + 1)
    low, high = rough_range((counts + rng.normal(0, sigma, counts.size)).tolist(), sigma)
    place = np.clip(np.floor((x - low) / (high - low) * BINS) + 1, 0, BINS + 1).astype(int)
    counts = np.bincount(place, minlength=BINS + 2)
    low, high = refined_range(
        (counts + rng.normal(0, sigma, counts.size)).tolist(), sigma, 0.8 / (LATER * mu), low, high
    )
    return round_outward(low, up=False), round_outward(high, up=True)


def main() -> None:
    rng, mu = np.random.default_rng(1), most_mu(1.0, 1e-6, 0.0)
    ratios = []
    print("error of a sum with suggested bounds / with the oracle's, mean (worst) of 20 suggestions")
    for n in (100_000, 1_000_000):
        for name, x in made(rng, n).items():
            best = oracle(x, mu)
            found = [suggestion(x, mu * math.sqrt(0.1), rng) for _ in range(RUNS)]
            each = [error(x, low, high, mu * math.sqrt(0.9)) / best for low, high in found]
            ratios.append(sum(each) / RUNS)
            print(f"  {name:12} n = {n:9,}: {ratios[-1]:.2f} ({max(each):.2f})")
    print(f"mean of all: {sum(ratios) / len(ratios):.2f} (bar: 1.25)")


if __name__ == "__main__":
    main()
