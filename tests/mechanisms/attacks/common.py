"""Helpers of the attacks."""

import math

import numpy as np
from scipy.special import betaincinv

from tests.noise.sources import Recorded


def answers(mechanism, value, n, rows):
    """n independent answers about one value."""
    if rows:
        return mechanism.release(np.full((n, *np.shape(value)), value))
    return [mechanism.release(value) for _ in range(n)]


def with_the_same_bits(make, *values):
    """The answers about several values with the same random bits each time."""
    return [make(Recorded("the same bits")).release(value) for value in values]


def interval(k, n, miss=1e-6):
    """Bounds of the probability of an event that occurred k times in n runs; each misses with probability ≤ miss."""
    return (
        float(betaincinv(k, n - k + 1, miss)) if k else 0.0,
        float(betaincinv(k + 1, n - k, 1 - miss)) if k < n else 1.0,
    )


def promised(loss):
    """Some points (ε, δ) of a loss's profile, from above."""
    eps = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0]
    return list(zip(eps, loss.delta(eps).upper, strict=True))


def excess(hits, n, promises):
    """By how much the frequencies of one event on two sides certainly exceed the claim; ≤ 0 if they do not."""
    (low0, high0), (low1, high1) = (interval(k, n) for k in hits)
    both = ((low0, high1), (low1, high0))
    return max(low - math.exp(eps) * high - delta for eps, delta in promises for low, high in both)
