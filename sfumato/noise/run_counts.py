"""A random number of runs, drawn exactly: truncated negative binomial and Poisson, from coins with rational odds."""

import math
from fractions import Fraction

from sfumato.noise.entropy import Source
from sfumato.noise.uniform import uniform_below


def negative_binomial_runs(stop: Fraction, shape: Fraction, source: Source) -> int:
    """k ≥ 1 with probability ∝ (1 − stop)^k·Γ(k + shape)/k!, for −1 < shape ≤ 1.

    Runs are counted until a coin of probability `stop` says that this was the last; before the (k+1)-th another coin,
    of probability (k + shape)/(k + 1), must come up, or all starts again. So k is reached and kept with probability
    stop·(1 − stop)^{k−1}·Π_{j<k}(j + shape)/(j + 1), which is proportional to the law.

    Theorem: rejection draws from a law that is known up to a factor [von Neumann 1951]
    """
    k = 1
    while not coin(stop, source):
        k = k + 1 if coin((k + shape) / (k + 1), source) else 1
    return k


def poisson_runs(rate: Fraction, source: Source) -> int:
    """k ≥ 0 with probability e^{−rate}·rate^k/k!: a sum of laws of rate r ≤ ½.

    Each counts coins of probability r that come up in a row, k with probability (1 − r)r^k, and keeps k with
    probability 1/k!.

    Theorem: rejection draws from a law that is known up to a factor [von Neumann 1951]
    """
    parts = max(1, math.ceil(2 * rate))
    return sum(small_poisson(rate / parts, source) for _ in range(parts))


def small_poisson(rate: Fraction, source: Source) -> int:
    while True:
        k = 0
        while coin(rate, source):
            k += 1
        if uniform_below(math.factorial(k), source) == 0:
            return k


def coin(p: Fraction, source: Source) -> bool:
    """True with probability p exactly."""
    return uniform_below(p.denominator, source) < p.numerator
