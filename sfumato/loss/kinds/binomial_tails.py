"""Binomial probabilities and tails for arrays, with few roundings: windows, cells, and mean excesses."""

import math

import numpy as np
from scipy.special import betainc

from sfumato.loss.numeric import Floats, floats

REACH, MORE = 11.0, 40.0  # standard deviations, and units, of a window: what is outside has less than OUTSIDE
OUTSIDE = 4e-26


def window(n: int, p: float) -> tuple[Floats, Floats]:
    """The likely values of Bin(n, p) and their probabilities, which are made to sum to 1.

    Theorem: Bernstein's inequality bounds what is outside [Bernstein 1924]
    """
    if p <= 0 or n == 0:
        return np.zeros(1), np.ones(1)
    if p >= 1:
        return np.full(1, float(n)), np.ones(1)
    mean, spread = n * p, math.sqrt(n * p * (1 - p))
    low, high = max(0, math.floor(mean - REACH * spread - MORE)), min(n, math.ceil(mean + REACH * spread + MORE))
    i = np.arange(low, high + 1, dtype=np.float64)
    mode = min(max(math.floor((n + 1) * p), low), high) - low
    rises = (n - i[:-1]) / i[1:] * (p / (1 - p))  # P(i + 1)/P(i)
    pmf = np.ones(i.size)
    pmf[mode + 1 :] = np.cumprod(rises[mode:])
    pmf[:mode] = np.cumprod(1 / rises[:mode][::-1])[::-1]
    return i, pmf / pmf.sum()


def below(x: Floats, n: Floats, p: float) -> Floats:
    """P(Bin(n, p) ≤ x) for whole x."""
    inside = (x >= 0) & (x < n)
    y = np.where(inside, x, 0.0)
    found = betainc(np.maximum(n - y, 1.0), y + 1, 1 - p)
    return floats(np.where(inside, found, (x >= n) * 1.0))


def above(x: Floats, n: Floats, p: float) -> Floats:
    """P(Bin(n, p) > x) for whole x."""
    inside = (x >= 0) & (x < n)
    y = np.where(inside, x, 0.0)
    found = betainc(y + 1, np.maximum(n - y, 1.0), p)
    return floats(np.where(inside, found, (x < 0) * 1.0))


def cell_masses(edges: Floats, n: Floats, p: float) -> Floats:
    """P(edge_{i−1} < Bin(n, p) ≤ edge_i) along the first axis; the outer cells also hold all that is beyond.

    Cells below the mean are differences of lower tails, those above of upper tails: so tails keep their digits.
    """
    inner = edges[1:-1]
    half = int(np.count_nonzero(np.mean(inner, axis=1) < np.mean(n * p))) if inner.size else 0
    left, right = below(inner[:half], n, p), above(inner[half:], n, p)
    none = np.zeros((1, *inner.shape[1:]))
    lower, upper = np.diff(left, axis=0, prepend=none), -np.diff(right, axis=0, append=none)
    between = 1 - (left[-1:] if half else none) - (right[:1] if half < len(inner) else none)
    return floats(np.maximum(np.concatenate([lower, between, upper]), 0.0))


def mean_excess(n: Floats, t: Floats, s: float) -> Floats:
    """E[(X − t)₊] for X ~ Bin(n, s): (ns − t)·P(X ≥ j) + (1 − s)·j·P(X = j) with j = ⌊t⌋ + 1.

    As Σ_{a≥j} a·P(X = a) = ns·P(X ≥ j) + (1 − s)·j·P(X = j). Where t is z standard deviations out, the two terms cancel
    all but about 1/z² of them.
    """
    j = np.floor(t) + 1
    inside = (j >= 1) & (j <= n)
    k, m = np.where(inside, j, 1.0), np.where(inside, n, 1.0)
    tail = betainc(k, m - k + 1, s)
    inner = (m * s - t) * tail + (1 - s) * k * binomial_mass(m, k, s)
    return floats(np.where(inside, np.maximum(inner, 0.0), np.where(j < 1, n * s - t, 0.0)))


def mean_excess_along(n: Floats, t: Floats, s: float) -> Floats:
    """`mean_excess` along the second axis, where n rises by 1 and t by less: tails follow from one by additions.

    From (n, j) to n + 1 the tail P(X ≥ j) gains s·P(X = j − 1) if j stays, and loses (1 − s)·P(X = j) if j rises too.
    Probabilities follow by quotients. Each step adds three roundings of the largest tail of the row.
    """
    j = np.floor(t) + 1
    up = np.diff(j, axis=1)
    if np.any(up < 0) or np.any(up > 1) or j.min() < 1 or np.any(j > n):
        return mean_excess(n, t, s)
    m, k = n[:, :-1], j[:, :-1]
    rises = np.where(up > 0, s * (m + 1) / (k + 1), (1 - s) * (m + 1) / (m + 1 - k))
    mass = np.empty_like(j)
    mass[:, :1] = binomial_mass(n[:, :1], j[:, :1], s)
    np.cumprod(rises, axis=1, out=rises)
    mass[:, 1:] = mass[:, :1] * rises
    before = mass[:, :-1]
    steps = np.where(up > 0, -(1 - s) * before, (1 - s) * before * k / (m - k + 1))
    tail = np.empty_like(j)
    tail[:, :1] = betainc(j[:, :1], n[:, :1] - j[:, :1] + 1, s)
    tail[:, 1:] = tail[:, :1] + np.cumsum(steps, axis=1)
    if np.any(tail[:, -1] < 1e-3 * tail[:, 0]):  # too many digits would cancel
        return mean_excess(n, t, s)
    return floats(np.maximum((n * s - t) * tail + (1 - s) * j * mass, 0.0))


def binomial_mass(n: Floats, k: Floats, s: float) -> Floats:
    """P(Bin(n, s) = k), 1 ≤ k ≤ n, by its distance from the mean: no large logarithms cancel.

    Theorem: the saddle-point form of binomial probabilities [Loader 2000]
    """
    rest = np.maximum(n - k, 1.0)
    inner = stirling_error(n) - stirling_error(k) - stirling_error(rest)
    inner -= deviance(k, n * s) + deviance(rest, n * (1 - s))
    found = np.exp(inner) * np.sqrt(n / (2 * np.pi * k * rest))
    return floats(np.where(n == k, np.exp(n * math.log(s)), found))


def small_error(n: int) -> float:
    """log n! − log(√(2πn)·(n/e)^n) from the factorial itself."""
    return math.log(math.factorial(n)) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2 * math.pi)


SMALL = floats([0.0, *map(small_error, range(1, 16))])


def stirling_error(n: Floats) -> Floats:
    """log n! − log(√(2πn)·(n/e)^n): a table for small n, then its series."""
    m = np.maximum(n, 15.0)
    square = m * m
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / m
    return floats(np.where(n <= 15, SMALL[np.minimum(n, 15).astype(np.int64)], series))


def deviance(x: Floats, mean: Floats) -> Floats:
    """x·log(x/mean) + mean − x ≥ 0, by a series near x = mean, where the terms cancel."""
    far = x * np.log(x / mean) + mean - x
    v = (x - mean) / (x + mean)
    square = v * v
    series = 1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square * (1 / 11 + square / 13))))
    near = (x - mean) * v + 2 * x * v * square * series
    return floats(np.where(np.abs(v) < 0.1, near, far))
