"""A lower bound on ε from two counts, certified by betting against the claim (e-values) and by an exact test.

An event E with p = P₀(E) and q = P₁(E) is fixed before its counts are seen, and so is a point alternative (p, q). The
claim (ε, δ) is the hypothesis H(ε): p ≤ r·q + δ with r = e^ε. Take any point p* = r·q* + δ of its border and any u ≥ 0
for which the bet

    e(A, B) = (1 + u(A − p*)) · (1 − ru(B − q*))          A, B = does E occur in a run on the one, on the other data set

is never negative. Under H(ε) its mean is at most 1: at the border, p = p* + x implies q = q* + x/r, so the mean is
(1 + ux)(1 − ux) ≤ 1, and a smaller p makes it smaller. So the product over n independent pairs of runs also has mean
≤ 1, and exceeds 1/α with probability at most α.

Theorem: a bet with mean ≤ 1 under the claim exceeds 1/α with probability ≤ α [Markov; Ville 1939; Shafer 2021]
Theorem: with p*, q* closest to the truth in relative entropy, no bet grows faster [Turner, Ly & Grünwald 2024]
Theorem: nested claims tested in a fixed order until one stands need no correction [Marcus, Peritz & Gabriel 1976]

The product depends on the two counts only, through the linear statistic T = a·K₀ − b·K₁. Markov's inequality ignores
the shape of its tail, so a claim that survives the bet is also tested by the exact law of T. P(T ≥ t) rises with p and
falls with q, so on a cell q ∈ [v, w] of the border it is at most its value at p = r·w + δ, q = v. The cells cover a
confidence interval of q.

Theorem: p-value ≤ β + sup of P(T ≥ t) over a 1 − β confidence set of the nuisance parameter [Berger & Boos 1994]
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

NUISANCE = 0.02  # share of α for the confidence interval of q
CELLS = 0.04  # width of a cell, in standard deviations of q
BLOCK = 1024  # counts
SLACK = 1e-8  # relative, for rounding: counts times logarithms err by less


@dataclass(frozen=True)
class Alternative:
    """The point alternative that bets are tuned to, from other runs: chances (p, q), and the step of the ε ladder."""

    p: float
    q: float
    step: float


@dataclass(frozen=True)
class Counts:
    """How often the event occurred in `runs` runs on each data set."""

    first: int
    second: int
    runs: int


@dataclass(frozen=True)
class Bets:
    """One bet for each claim of a ladder: factors r = e^ε, border points (p, q) and stakes."""

    r: Floats
    p: Floats
    q: Floats
    stake: Floats

    def wealth(self, counts: Counts) -> Floats:
        """The logarithm of each bet's product."""
        k, m, n = counts.first, counts.second, counts.runs
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = k * np.log1p(self.stake * (1 - self.p)) + (n - k) * np.log1p(-self.stake * self.p)
            gains += m * np.log1p(-self.r * self.stake * (1 - self.q)) + (n - m) * np.log1p(
                self.r * self.stake * self.q
            )
        return np.asarray(gains, np.float64)


def lower_bound(counts: Counts, alternative: Alternative, delta: float, alpha: float) -> float:
    """An ε that is larger than the true one at δ with probability at most alpha; 0 if nothing can be said.

    Claims are tested from ε = 0 upwards until one survives. `alternative` must not depend on the counts.
    """
    ladder = np.arange(0.0, math.log(counts.runs) + 1.0, alternative.step)
    bets = best_bets(alternative, ladder, delta)
    lost = bets.wealth(counts) >= math.log(1 / alpha) * (1 + SLACK) + SLACK
    rungs = int(np.argmin(lost)) if not lost.all() else len(lost)
    while rungs < len(ladder) and bets.stake[rungs] > 0 and is_refuted(counts, bets, rungs, delta, alpha):
        rungs += 1
    return float(ladder[rungs - 1]) * (1 - 2.0**-50) if rungs else 0.0


def best_bets(alternative: Alternative, ladder: Floats, delta: float) -> Bets:
    """The bets at the border points of least relative entropy from the alternative, by bisection.

    Any other border points would be valid too, only less powerful.
    """
    r = np.exp(ladder)
    low, high = np.zeros_like(r), (1 - delta) / r
    for _ in range(60):
        q = (low + high) / 2
        p = r * q + delta
        rising = r * (p - alternative.p) / (p * (1 - p)) + (q - alternative.q) / (q * (1 - q)) > 0
        low, high = np.where(rising, low, q), np.where(rising, q, high)
    q = low
    p = r * q + delta
    inside = (q > 0) & (p < 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        stake = np.where(inside, np.maximum(alternative.p - p, 0.0) / (p * (1 - p)), 0.0)
        stake = np.minimum(stake, (1 - 1e-9) * np.minimum(1 / p, 1 / (r * (1 - q))))
    return Bets(r, p, q, stake)


def is_refuted(counts: Counts, bets: Bets, i: int, delta: float, alpha: float) -> bool:
    """Is T so large that its p-value under claim i is at most alpha?"""
    r, p, q, u = (float(values[i]) for values in (bets.r, bets.p, bets.q, bets.stake))
    a = math.log1p(u * (1 - p)) - math.log1p(-u * p)
    b = math.log1p(r * u * q) - math.log1p(-r * u * (1 - q))
    t = a * counts.first - b * counts.second
    beta = NUISANCE * alpha
    least, most = clopper_pearson(counts.second, counts.runs, beta)
    least, most = min(least, (1 - delta) / r), min(most, (1 - delta) / r)
    if least == most:
        return False  # the border ends below the interval
    finest = CELLS * math.sqrt(most / counts.runs)

    def unlikely(low: float, high: float) -> bool:
        """Is T ≥ t unlikely on the whole cell? A cell that is too wide to decide is cut into four."""
        highest = min(1.0, (r * high + delta) * (1 + 1e-15))
        if beta + tail(a, b, t - SLACK * abs(t), counts.runs, highest, low) <= alpha:
            return True
        edges = np.linspace(low, high, 5).tolist()
        return high - low > finest and all(unlikely(v, w) for v, w in pairwise(edges))

    middle = min(max(q, least), most - finest / 2)  # the worst cell is usually near q*: try it first
    return unlikely(middle, middle + finest / 2) and unlikely(least, most)


def tail(a: float, b: float, t: float, n: int, p: float, q: float) -> float:
    """P(a·K₀ − b·K₁ ≥ t) for K₀ ~ Bin(n, p), K₁ ~ Bin(n, q) and a, b > 0; never below the truth."""
    first, mass_first = binomial_window(n, p)
    second, mass_second = binomial_window(n, q)
    upper = np.append(np.cumsum(mass_first[::-1])[::-1], 0.0)
    needed = np.ceil((t + b * second) / a - SLACK) - first[0]
    above = upper[np.clip(needed, 0, len(first)).astype(np.int64)]
    above[needed <= 0] = 1.0
    return float(mass_second @ above) * (1 + 4 * SLACK) + 1e-12


def binomial_window(n: int, p: float) -> tuple[Floats, Floats]:
    """The counts of Bin(n, p) that are not negligible, and their probabilities.

    Theorem: P(|K − np| ≥ x) ≤ 2e^{−x²/2(σ² + x/3)}, here below 1e-13 [Bernstein 1924]
    """
    reach = 8 * math.sqrt(n * p * (1 - p)) + 50
    k = np.arange(max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1, dtype=np.float64)
    chances = np.exp(log_binomials(n, int(k[0]), int(k[-1])) + special.xlogy(k, p) + special.xlog1py(n - k, -p))
    return k, np.asarray(chances, np.float64)


def log_binomials(n: int, low: int, high: int) -> Floats:
    """log C(n, k) for k from low to high, in cached blocks: all cells need nearly the same range."""
    start = low // BLOCK
    blocks = np.concatenate([log_binomials_block(n, i) for i in range(start, high // BLOCK + 1)])
    return blocks[low - start * BLOCK : high + 1 - start * BLOCK]


@lru_cache(maxsize=256)
def log_binomials_block(n: int, i: int) -> Floats:
    k = np.arange(i * BLOCK, min((i + 1) * BLOCK, n + 1), dtype=np.float64)
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1), np.float64)


def clopper_pearson(k: int, n: int, beta: float) -> tuple[float, float]:
    """A 1 − β confidence interval for the probability of an event that occurred k times in n runs; rounded outwards.

    Theorem: exact binomial limits [Clopper & Pearson 1934]
    """
    low = special.betaincinv(k, n - k + 1, beta / 2) if k > 0 else 0.0
    high = special.betaincinv(k + 1, n - k, 1 - beta / 2) if k < n else 1.0
    return float(low) * (1 - SLACK), min(1.0, float(high) * (1 + SLACK))
