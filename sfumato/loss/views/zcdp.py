"""The least ρ for which a loss is ρ-zCDP."""

import math
from itertools import pairwise

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound, worst
from sfumato.loss.numeric import ULP
from sfumato.loss.views.divergences import endless

LEAST, MOST = 1e-6, 1e3  # s = order − 1
FAR = 1e9  # an order so large that a limit shows
GAP = 1e-6


def least_rho(loss: PrivacyLoss) -> Bound:
    """sup over orders a > 1 of D_a/a, in the worse direction.

    Theorem: zCDP is a linear bound on the Rényi curve [Bun & Steinke 2016, Def. 1.1]
    Theorem: ε-DP implies ε²/2-zCDP; randomized response attains ε·tanh(ε/2) [Bun & Steinke 2016, Prop. 1.4]
    """
    one = least_rho_one_way(loss)
    if loss.relation.one_way or loss.reverse == loss or loss.reverse.rho_ceiling() <= one.upper:
        return one  # the other direction is known to be no worse
    return worst(one, least_rho_one_way(loss.reverse))


def least_rho_one_way(loss: PrivacyLoss) -> Bound:
    """sup over s > 0 of K(s)/(s(s+1)), K = log_moment, from both sides.

    K is convex with K(0) = 0: on a cell the chord bounds it, and chord/(s(s+1)) has its maximum at an end or where
    c₁s² + 2c₀s + c₀ = 0. Below the first order K(s)/s ≤ D there; above the last K(s)/s ≤ sup L, or what the loss knows.
    """
    if loss.leak()[0] > 0 and math.isinf(loss.rho_beyond(1 + MOST)):
        return endless(loss)
    ceiling = loss.rho_ceiling()
    far = loss.log_moment(FAR).lower / (FAR * (FAR + 1)) if math.isfinite(ceiling) else 0.0
    if far >= ceiling * (1 - GAP):  # the supremum is the limit of large orders: a sampled Gaussian's is the Gaussian's
        return Bound(min(far, ceiling), ceiling, "sup of the Rényi curve")
    moments = {s: loss.log_moment(s) for s in geometric(LEAST, MOST, 25)}
    mean, before = loss.mean().lower, math.inf
    while True:
        orders = sorted(moments)
        floor = max(mean, far, *(moments[s].lower / (s * (s + 1)) for s in orders))
        roofs = [(cell_roof(a, moments[a].upper, b, moments[b].upper), a, b) for a, b in pairwise(orders)]
        start = moments[orders[0]].upper / orders[0]
        end = loss.rho_beyond(1 + MOST)
        upper = max(start * (1 + 2 * ULP), end, max(roof for roof, _, _ in roofs))
        wide = [(a, b) for roof, a, b in roofs if roof > max(floor * (1 + GAP / 2), start, end)]
        fresh = {between(a, b) for a, b in wide} - set(orders)
        upper = min(upper, ceiling)
        stuck = upper - floor > 0.9 * (before - floor)  # halving cells does not help any more
        if upper <= floor * (1 + GAP) or floor >= ceiling * (1 - GAP) or not fresh or stuck:
            return Bound(min(floor, ceiling), upper, "sup of the Rényi curve")
        before = upper
        moments.update({s: loss.log_moment(s) for s in sorted(fresh)[:60]})


def handy(s: float) -> float:
    """Whole from 4 on: many losses have closed forms there."""
    return float(round(s)) if s >= 4 else s


def between(a: float, b: float) -> float:
    """The middle of a cell by magnitude, at a whole order if one lies inside."""
    middle = math.sqrt(a * b)
    return handy(middle) if a < handy(middle) < b else middle


def cell_roof(a: float, at_a: float, b: float, at_b: float) -> float:
    """Largest value of chord(s)/(s(s+1)) on [a, b], rounded up: at the ends no difference is taken."""
    if not math.isfinite(at_b):
        return math.inf
    slope = (at_b - at_a) / (b - a)
    base = at_a - slope * a
    roof = max(at_a / (a * (a + 1)), at_b / (b * (b + 1)))
    if slope > 0 and base < 0:
        turn = (-base + math.sqrt(base * base - base * slope)) / slope
        slip = 8 * ULP * (slope * turn - base)
        roof = max(roof, (base + slope * turn + slip) / (turn * (turn + 1))) if a < turn < b else roof
    return roof * (1 + 8 * ULP)


def geometric(low: float, high: float, count: int) -> list[float]:
    """Evenly spaced in the logarithm."""
    return sorted({handy(low * (high / low) ** (i / (count - 1))) for i in range(count)})
