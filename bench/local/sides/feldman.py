"""Feldman, McMillan & Talwar 2021, as their paper computes it: clones, counted in blocks, then bisection.

Written from the paper (Theorem 3.2 and its numerical bound): C ~ Bin(n − 1, e^−ε₀) clones, A ~ Bin(C, ½), and the
victim adds 1 to A or to C − A with odds e^ε₀. Given C, δ is a difference of binomial tails. Blocks of n/1000 values of
C take the larger of their two ends, and 20 bisections find ε. Where their published file
computeamplification.py lies in bench/.peers/feldman, it is run instead.
"""

import math
import sys
import time
from pathlib import Path

from scipy.stats import binom

sys.path.append(str(Path(__file__).parents[2] / ".peers" / "feldman"))
try:
    import computeamplification as published
except ImportError:
    published = None

PACKAGE, PREPARES, CLOCK = "scipy", True, time.process_time
BLOCKS, BISECTIONS = 1000, 20


def given_clones(c: int, eps: float, local: float) -> float:
    """max over both directions of H_{e^ε}, with c clones."""
    a = math.exp(local) / (math.exp(local) + 1)
    odds = ((math.exp(eps) + 1) * a - 1) / ((math.exp(eps) + 1) * a - math.exp(eps))  # of a count at which P = e^ε Q
    found = 0.0
    for share in (1 / (odds + 1), odds / (odds + 1)):
        cut = share * (c + 1)
        low, less = binom.cdf(cut, c, 0.5), binom.cdf(cut - 1, c, 0.5)
        p, q = a * low + (1 - a) * less, (1 - a) * low + a * less
        found = max(found, p - math.exp(eps) * q, (1 - q) - math.exp(eps) * (1 - p))
    return found


def profile(people: int, eps: float, local: float, enough: float) -> float:
    """δ(ε) from above; stops when it exceeds `enough`, or when what is left cannot matter."""
    n, p = people - 1, math.exp(-local)
    step = max(1, people // BLOCKS)
    middle, total, used = math.ceil(n * p), 0.0, 0.0
    for block in range(math.ceil(n / step) + 1):
        for low in {middle + block * step, middle - (block + 1) * step}:
            a, b = max(0, low), min(n, low + step - 1)
            if a > b:
                continue
            mass = binom.cdf(b, n, p) - binom.cdf(a - 1, n, p)
            total += mass * max(given_clones(a, eps, local), given_clones(b, eps, local))
            used += mass
        if total > enough:
            return enough
        if 1 - used < total:
            return total + 1 - used
    return total


def closed_form(people: int, local: float, delta: float) -> float:
    """Theorem 3.1, where it holds; else ε₀: where the search begins."""
    if local > math.log(people / (16 * math.log(4 / delta))):
        return local
    a = 8 * math.sqrt(math.exp(local) * math.log(4 / delta) / people) + 8 * math.exp(local) / people
    shrink = -math.expm1(-local) / (1 + math.exp(-local) / (1 + a))
    return math.log1p(shrink * a)


def shuffled(what, eps, people):
    """Any ε₀-LDP randomizer at δ = 1e-6."""

    def run_published():
        return {
            "per": [1],
            "upper": [published.numericalanalysis(people, eps, 1e-6, BISECTIONS, max(1, people // BLOCKS), True)],
        }

    def work():
        low, high = 0.0, closed_form(people, eps, 1e-6)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (low, middle) if profile(people, middle, eps, 1e-6) < 1e-6 else (middle, high)
        return {"per": [1], "upper": [high]}

    return run_published if published else work
