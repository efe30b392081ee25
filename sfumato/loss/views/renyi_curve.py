"""A Rényi curve, and the δ(ε) that follows from it.

A curve is a table of orders a and divergences D_a, good in both directions. Between orders (a−1)·D_a is convex, so
the chord is an upper bound; D_a is non-decreasing, so below the least order D there is one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import TINY, ULP, Floats, share
from sfumato.rounding import product_up


@dataclass(frozen=True)
class RenyiCurve:
    """D_a ≤ divergences at these orders (> 1, increasing), and everything that follows at others."""

    orders: tuple[float, ...]
    divergences: tuple[float, ...]

    def log_moment(self, s: float) -> Bound:
        """(a−1)D_a at a = s+1: the chord between tabulated orders, infinite above the largest."""
        return Bound(-math.inf if s < 0 else 0.0, self.upper(s), "Rényi curve")

    def upper(self, s: float) -> float:
        """Upper bound of log E e^{sL}; orders below 1 only know that it is ≤ 0."""
        if s <= 0:
            return 0.0
        grid = np.array(self.orders) - 1
        values = grid * np.array(self.divergences)
        if s > grid[-1]:
            return math.inf
        # K(0) = 0, so (0, 0) is a point of the convex function K(s) = s·D_{s+1} too
        return float(np.interp(s, np.concatenate([[0.0], grid]), np.concatenate([[0.0], values]))) * (1 + 8 * ULP)

    def __add__(self, other: "RenyiCurve") -> "RenyiCurve":
        shared = sorted(set(self.orders) | set(other.orders))
        return curve_of(lambda a: (self.upper(a - 1) + other.upper(a - 1)) / (a - 1), shared)

    def times(self, count: int) -> "RenyiCurve":
        """The curve of `count` repetitions."""
        return RenyiCurve(self.orders, tuple(product_up(count, d) for d in self.divergences))

    def profile(self, eps: Floats) -> Floats:
        """δ(ε) ≤ the best that the orders allow, each on its own."""
        closed = conversion(np.array(self.orders), np.array(self.divergences), eps)
        nodes, values = large_deltas(self)
        i = np.clip(np.searchsorted(nodes, eps, side="right") - 1, 0, len(nodes) - 2)
        width = nodes[i + 1] - nodes[i]
        part = share(np.clip(eps - nodes[i], 0.0, width), width)
        # H is convex in e^ε: chords lie above it
        sharp = (values[i] * (1 - part) + values[i + 1] * part) * (1 + 8 * ULP)
        return np.where(eps < nodes[-1], np.minimum(closed, sharp), closed)


def curve_of(divergence: Callable[[float], float], orders: Sequence[float]) -> RenyiCurve:
    """Tabulate, leaving out orders at which the divergence is infinite."""
    table = [(a, divergence(a)) for a in orders]
    kept = [(a, d) for a, d in table if math.isfinite(d)]
    if not kept:
        raise InvalidParameter("this Rényi curve is infinite at every order: nothing can be said about the loss")
    return RenyiCurve(tuple(a for a, _ in kept), tuple(max(d, 0.0) for _, d in kept))


def conversion(orders: Floats, divergences: Floats, eps: Floats) -> Floats:
    """δ = e^{(a−1)(d−ε)}(1−1/a)^{a−1}/a, for each ε the least over all orders.

    Theorem: closed conversion from Rényi to (ε, δ) [Canonne, Kamath & Steinke 2020, Prop. 12]
    """
    a, d = orders[:, None], divergences[:, None]
    result = np.empty_like(eps)
    rows = max(1, 200_000 // len(orders))
    for i in range(0, len(eps), rows):
        exponents = (a - 1) * (d - eps[i : i + rows] + np.log1p(-1 / a)) - np.log(a)
        result[i : i + rows] = np.exp(np.minimum(exponents.min(axis=0), 0.0))
    return np.minimum(result * (1 + 1e-12) + TINY, 1.0)


@lru_cache(maxsize=32)
def large_deltas(curve: RenyiCurve) -> tuple[Floats, Floats]:
    """Where δ > 0.001 the exact conversion at one order beats the closed form: nodes ε and values, for chords in e^ε.

    By data processing the worst pair has two outcomes, so δ is the largest with
    min_q [ p^a q^{1−a} + (1−p)^a (1−q)^{1−a} ] ≤ e^{(a−1)d},  p = δ + e^ε q. (Below 0.001 the second term is 1 to three
    digits and the closed form is as good.)

    Theorem: the optimal conversion at one order is attained by two-point pairs [Asoodeh et al. 2021, Thm 3]
    """
    orders, divergences = np.array(curve.orders), np.array(curve.divergences)
    end = 1e-3
    while conversion(orders, divergences, np.array([end]))[0] > 1e-3:
        end *= 1.25
    eps = np.linspace(0.0, end, 129)
    best = conversion(orders, divergences, eps)
    some = np.unique(np.linspace(0, len(orders) - 1, 48).astype(int))
    a, d = (np.repeat(column[some][:, None], len(eps), axis=1) for column in (orders, divergences))
    return eps, two_point(a, d, eps + 0 * a, best + 0 * a).min(axis=0)


def two_point(a: Floats, d: Floats, eps: Floats, start: Floats) -> Floats:
    """The largest δ ≤ start that a two-point pair with D_a ≤ d reaches at ε, by bisection, rounded outward."""
    low, high = np.zeros_like(start), start.copy()
    low = np.where(least_moment(a, eps, high) <= (a - 1) * d, high, low)  # start itself is reached: nothing to gain
    for _ in range(24):
        middle = (low + high) / 2
        fits = least_moment(a, eps, middle) <= (a - 1) * d
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return high


def least_moment(a: Floats, eps: Floats, delta: Floats) -> Floats:
    """min over q of log[p^a q^{1−a} + (1−p)^a(1−q)^{1−a}], p = δ + e^ε q: found by golden section in log q.

    The first term alone is least at q₀ = (a−1)δe^{−ε} and the second falls with q, so the minimum lies between q₀
    and the q where p = 1.
    """
    right = np.log1p(-np.minimum(delta, 1 - 1e-15)) - eps - 1e-12
    left = np.minimum(np.log(np.maximum((a - 1) * delta, 1e-300)) - eps, right)
    golden = (math.sqrt(5) - 1) / 2

    def moment(log_q: Floats) -> Floats:
        q = np.exp(log_q)
        p = np.minimum(delta + np.exp(np.minimum(eps + log_q, 0.0)), 1 - 1e-16)
        return np.logaddexp(a * np.log(p) + (1 - a) * log_q, a * np.log1p(-p) + (1 - a) * np.log1p(-q))

    x1, x2 = right - golden * (right - left), left + golden * (right - left)
    f1, f2 = moment(x1), moment(x2)
    for _ in range(32):
        smaller = f1 < f2
        left, right = np.where(smaller, left, x1), np.where(smaller, x2, right)
        y1, y2 = right - golden * (right - left), left + golden * (right - left)
        f1, f2 = moment(y1), moment(y2)
        x1, x2 = y1, y2
    return np.minimum(f1, f2) - 1e-9 * (1 + np.abs(f1))  # the search stops that near the minimum
