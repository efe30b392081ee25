"""Wang et al. 2023, the generic bound of the variation-ratio reduction, whose parameters are those of binary response.

Written from the paper, with p = q = e^ε₀ and β = (e^ε₀ − 1)/(e^ε₀ + 1): C ~ Bin(n − 1, 2r) blanket messages with
r = 1/(e^ε₀ + 1), each of one of two kinds, and a victim's message with odds e^ε₀. n·tol is added to δ, and 20
bisections find ε.
Where their published file unifiedamplification.py lies in bench/.peers/wang, it is run instead.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import binom

sys.path.append(str(Path(__file__).parents[2] / ".peers" / "wang"))
try:
    import unifiedamplification as published
except ImportError:
    published = None

PACKAGE, PREPARES, CLOCK = "scipy", True, time.process_time
BISECTIONS, DELTA = 20, 1e-6


def profile(people, eps, local, tol):
    """δ(ε): given c messages, tails of Bin(c, ½) beyond the count at which both victims are equally likely."""
    n, a, r = people - 1, math.exp(local) / (math.exp(local) + 1), 1 / (math.exp(local) + 1)
    c = np.arange(int(binom.ppf(tol, n, 2 * r)), int(binom.isf(tol, n, 2 * r)) + 1)
    # (c+1) messages with the victim's: P/Q = (E·k + c + 1 − k)/(k + E(c + 1 − k)) ≥ e^ε for k ≥ cut
    E, growth = math.exp(local), math.exp(eps)
    cut = np.ceil((growth * E - 1) * (c + 1) / ((E - 1) * (1 + growth)))
    first, second = binom.sf(cut - 2, c, 0.5), binom.sf(cut - 1, c, 0.5)
    gain = a * first + (1 - a) * second - growth * ((1 - a) * first + a * second)
    return float(binom.pmf(c, n, 2 * r) @ gain)


def shuffled(what, eps, people):
    """Binary response at δ = 1e-6."""
    E, tol = math.exp(eps), max(1e-19, min(1e-14, DELTA / people / 10))

    def run_published():
        found = published.amplificationUB(E, (E - 1) / (E + 1), E, E, people, DELTA, BISECTIONS)
        return {"per": [1], "upper": [float(found)]}

    def work():
        low, high = 0.0, eps
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            enough = profile(people, middle, eps, tol) + tol * people <= DELTA
            low, high = (low, middle) if enough else (middle, high)
        return {"per": [1], "upper": [high]}

    return run_published if published else work
