"""Every divergence is an integral of the two profiles with positive weights.

For s > −1, with δ = forward and δ' = backward,
    E_P[e^{sL}] = 1 + s(s+1)·[ ∫₀^∞ e^{st} δ(t) dt + ∫₀^∞ e^{−(s+1)t} δ'(t) dt ],
    KL = E_P[L]  = ∫₀^∞ δ(t) dt + ∫₀^∞ e^{−t} δ'(t) dt,
because e^{sL} − 1 − s(s+1)·(…) vanishes: e^{sL} = ∫ s(s+1)e^{st}(1 − e^{t−L})₊ dt. On a cell, δ is convex in e^t:
the chord lies above it, and the continued chords of the two neighbouring cells below; both integrals close in on
each other.

Theorem: f-divergences are mixtures of hockey-stick divergences [Sason & Verdú 2016, Thm 11]
"""

import math
from collections.abc import Callable
from typing import SupportsFloat

import numpy as np

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound, worst
from sfumato.loss.compose.discretise import own_moments
from sfumato.loss.numeric import LARGEST, ULP, Enclosure, Floats, exp, log_peak, share
from sfumato.loss.views.profile import least_top
from sfumato.progress import may_take_long

Curve = Callable[[Floats], Enclosure]
Ceiling = Callable[[float], float]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
GAP, BLUNT = 3e-8, 1e-4  # relative gaps asked of an integral of a quick profile, and of one that engines compute
QUICK = frozenset({"closed form", "tabulated"})  # methods
MOST_NODES = 16_000
MOST_ORDER = 1e12  # Rényi orders beyond lie between this one and the largest loss


def renyi(loss: PrivacyLoss, order: SupportsFloat) -> Bound:
    """D_order in the worse direction."""
    a = checks.number(
        "order", order, math.ulp(0.0), math.inf, allowed="a number > 0 (1 is KL, math.inf the largest loss)"
    )
    one = renyi_one_way(loss, a)
    return one if loss.relation.one_way or loss.reverse == loss else worst(one, renyi_one_way(loss.reverse, a))


def renyi_one_way(loss: PrivacyLoss, a: float) -> Bound:
    """D_a(P‖Q), for a < ½ from the reversed pair: log E_Q[e^{−a·log Q/P}]/(a − 1) needs no digits of 1 − a.

    Theorem: skew symmetry, D_a(P‖Q) = a/(1−a)·D_{1−a}(Q‖P) [van Erven & Harremoës 2014, Prop. 2]
    """
    if a == math.inf:
        return endless(loss) if loss.leak()[0] > 0 else Bound(least_top(loss), loss.supremum()[0], loss.method)
    if a == 1:
        return loss.mean()
    if a > MOST_ORDER:
        floor = renyi_one_way(loss, MOST_ORDER)
        return Bound(floor.lower, loss.supremum()[0] if loss.leak()[0] == 0 else math.inf, floor.method)
    moment = loss.reverse.log_moment(-a) if a < 0.5 else loss.log_moment(a - 1)
    low, high = sorted((moment.lower / (a - 1), moment.upper / (a - 1)))
    least = 1e-320 if max(*loss.supremum(), *loss.leak()) > 0 else 0.0  # what underflows is not zero
    return Bound(max(low + 0.0, 0.0) * (1 - 2 * ULP), max(high, 0.0) * (1 + 2 * ULP) + least, moment.method)


def mean(loss: PrivacyLoss) -> Bound:
    """E_P[L] by the integral."""
    if loss.leak()[0] > 0:
        return endless(loss)
    if (moments := own_moments(loss)) is not None:
        return moments.mean()
    low, high = two_integrals(loss, 0.0, ceiling_of(loss))
    return Bound(min(exp(low), LARGEST) if loss.one_pair else 0.0, exp(high), "integral of the profiles")


def chi_squared(loss: PrivacyLoss) -> Bound:
    """e^{D₂} − 1."""
    d2 = renyi(loss, 2.0)
    floor = math.inf if d2.lower == math.inf else min(exp_minus_one(d2.lower) * (1 - 2 * ULP), LARGEST)
    return Bound(floor, exp_minus_one(d2.upper) * (1 + 2 * ULP), d2.method)


def hellinger(loss: PrivacyLoss) -> Bound:
    """1 − M(−½): alike in both directions."""
    moment = loss.log_moment(-0.5)
    low, high = -math.expm1(min(moment.upper, 0.0)) * (1 - 2 * ULP), -math.expm1(moment.lower) * (1 + 2 * ULP)
    return Bound(max(0.0, low), min(max(0.0, high), 1.0), moment.method)


def hockey_stick(loss: PrivacyLoss, alpha: SupportsFloat) -> Bound:
    """H_α for all α ≥ 0: for α < 1 by H_α(P‖Q) = α·H_{1/α}(Q‖P) + 1 − α."""
    a = checks.extended_number("alpha", alpha)
    if a == math.inf:
        return loss.delta(math.inf)
    side = loss if a >= 1 or not loss.relation.one_way else loss.reverse
    eps = abs(math.log(a)) if a > 0 else math.inf
    low, high = side.delta(eps * (1 + 4 * ULP) + ULP).lower, side.delta(max(eps * (1 - 4 * ULP) - ULP, 0.0)).upper
    if a >= 1:
        return Bound(low, high, loss.method)
    return Bound(max(0.0, 1 - a + a * low - 2 * ULP), min(1 - a + a * high + 2 * ULP, 1.0), loss.method)


def exp_minus_one(x: float) -> float:
    """e^x − 1, infinite where it overflows."""
    return math.expm1(x) if x < 709.7 else math.inf


def log_moment(loss: PrivacyLoss, s: float, ceiling_at: Ceiling | None = None) -> Bound:
    """log E_P[e^{sL}; L < ∞] from the profiles. `ceiling_at(s')` bounds log-moments of higher order, for unbounded
    losses.
    """
    if s == 0:
        inside = -math.inf if loss.leak()[0] >= 1 else math.log1p(-loss.leak()[0])
        return Bound(inside, 0.0, loss.method)
    if s > 0 and loss.leak()[0] > 0:
        return endless(loss)
    if (moments := own_moments(loss)) is not None:
        return moments.log_moment(s)
    low, high = two_integrals(loss, s, ceiling_at or ceiling_of(loss))
    if not loss.one_pair:  # the pair of the worst profile may be worse than every mechanism of the class
        low = -math.inf
    c = s * (s + 1)
    if c > 0:
        return Bound(log_one_plus(math.log(c) + low), log_one_plus(math.log(c) + high), "integral of the profiles")
    least, most = c * exp(high), c * exp(low)  # c < 0: a larger integral is a smaller moment
    low, high = (math.log1p(x) if x > -1 else -math.inf for x in (least, most))
    return Bound(low, high, "integral of the profiles")


def endless(loss: PrivacyLoss) -> Bound:
    """A divergence that is infinite if the loss can be: that is certain only if the leak is."""
    return Bound(math.inf if loss.sharp_ends else 0.0, math.inf, loss.method)


def log(x: float) -> float:
    """log x with log 0 = −∞."""
    return math.log(x) if x > 0 else -math.inf


def log_one_plus(x: float) -> float:
    """log(1 + e^x)."""
    return float(np.logaddexp(0.0, x))


def ceiling_of(loss: PrivacyLoss) -> Ceiling:
    """The loss's closed-form bound of its higher moments; infinity if it has none."""
    return getattr(loss, "moment_ceiling", lambda s: math.inf)


def two_integrals(loss: PrivacyLoss, s: float, ceiling_at: Ceiling) -> tuple[float, float]:
    """Logarithm of the sum of both integrals, from below and above."""
    may_take_long()
    top, bottom = loss.supremum()
    gap = GAP if loss.method in QUICK else BLUNT
    one = integral(lambda t: loss.forward(t, gap), s, top, loss.leak()[0], ceiling_at, gap)
    if s == -0.5 and loss.reverse == loss:
        two = one  # the same integral
    else:
        two = integral(lambda t: loss.backward(t, gap), -(s + 1), bottom, loss.leak()[1], lambda _: math.inf, gap)
    return float(np.logaddexp(one[0], two[0])), float(np.logaddexp(one[1], two[1]))


def integral(
    curve: Curve, rate: float, top: float, leak: float, ceiling_at: Ceiling, enough: float = GAP
) -> tuple[float, float]:
    """log ∫₀^∞ e^{rate·t} δ(t) dt between two certified sums."""
    if top == 0 and leak == 0:
        return -math.inf, -math.inf
    end, tail = cut(curve, rate, top, leak, ceiling_at)
    if tail == math.inf:
        return -math.inf, math.inf
    if rate >= 0 and end > 2.5 * MOST_NODES * cell_width(rate):  # there the rounding of nodes exceeds 1e-11 of a cell
        return plain_integral(curve, rate, end, tail)
    nodes, rest = first_nodes(curve, end, rate)
    tail = float(np.logaddexp(tail, rest))
    values, before = curve(nodes), math.inf
    while True:
        low, high, scale = cell_integrals(nodes, values, rate)
        total_low, total_high = float(low.sum()), float(high.sum())
        whole = total_high + math.exp(min(tail - scale, 700.0))  # where the tail is all, there is nothing to sharpen
        wide = (high - low) > enough * whole / len(low)
        gap = log(total_high - total_low) + scale
        stuck, before = gap > before - 0.02, gap  # finer cells do not help: values underflow, or are known no better
        if total_high - total_low <= enough * whole or len(nodes) > 2 * MOST_NODES or not wide.any() or stuck:
            above = float(np.logaddexp(log(total_high * (1 + 1e-10)) + scale, tail))
            return log(total_low * (1 - 1e-10)) + scale, above
        fresh = (nodes[:-1][wide] + nodes[1:][wide]) / 2
        nodes, values = merge(nodes, values, fresh, curve(fresh))


def plain_integral(curve: Curve, rate: float, end: float, tail: float) -> tuple[float, float]:
    """The log of the integral of a long profile, rate ≥ 0: δ(0) bounds δ, and up to any t so does δ(t) from below."""

    def weight(t: Floats) -> Floats:
        """log ∫₀^t e^{rate·x}dx."""
        return rate * t + np.log(-np.expm1(-rate * t)) - math.log(rate) if rate > 0 else np.log(t)

    t = end * np.concatenate([2.0 ** np.arange(-60.0, 0.0), 1 - 2.0 ** np.arange(-50.0, 0.0)])
    height = curve(np.append(0.0, t))
    known = height.lower[1:] > 0
    low = float((weight(t[known]) + np.log(height.lower[1:][known])).max(initial=-math.inf))
    high = float(weight(np.array([end]))[0]) + log(float(height.upper[0]))
    slip = 16 * ULP * (rate * end + math.log(end) + 1)
    return low - slip, float(np.logaddexp(high + slip, tail))


def cell_width(rate: float) -> float:
    """So short that four Gauss points integrate e^{rate·t}·(a + be^t) to 1e-11."""
    return 0.5 / (abs(rate) + 1)


def merge(nodes: Floats, values: Enclosure, fresh: Floats, found: Enclosure) -> tuple[Floats, Enclosure]:
    """New nodes put in their places."""
    where = np.searchsorted(nodes, fresh)
    lower, upper = np.insert(values.lower, where, found.lower), np.insert(values.upper, where, found.upper)
    return np.insert(nodes, where, fresh), Enclosure(lower, upper)


def first_nodes(curve: Curve, end: float, rate: float) -> tuple[Floats, float]:
    """Even cells, short enough for the quadrature, and what is left out.

    Where that takes too many, only the stretch where the weight is largest is covered; the log of a bound of the rest,
    δ times the integral of the weight, comes second.
    """
    width = cell_width(rate)
    if end <= width * MOST_NODES:
        return np.linspace(0.0, end, max(math.ceil(end / width), 256) + 1), -math.inf
    if rate >= 0:
        start = end - width * MOST_NODES
        rest = rate * start - math.log(rate) if rate > 0 else math.log(start)
        return np.linspace(start, end, MOST_NODES + 1), rest + log(float(curve(np.zeros(1)).upper[0]))
    stop = width * MOST_NODES
    rest = rate * stop - math.log(-rate) + log(float(curve(np.array([stop])).upper[0]))
    return np.linspace(0.0, stop, MOST_NODES + 1), rest


def cell_integrals(t: Floats, values: Enclosure, rate: float) -> tuple[Floats, Floats, float]:
    """Lower and upper integral on each cell: the chord in e^t, less the most that convexity lets the curve sag.

    Both are to be multiplied by e^scale, the third result.
    """
    width = np.diff(t)
    inner = t[:-1, None] + width[:, None] * (NODES + 1) / 2
    with np.errstate(divide="ignore"):
        scale = float(np.max(rate * t + np.log(values.upper)))
    scale = scale if math.isfinite(scale) else 0.0
    weight = np.exp(np.minimum(rate * inner - scale, 700.0)) * (WEIGHTS / 2) * width[:, None]
    part = share(inner - t[:-1, None], width[:, None])
    left, right = (weight * (1 - part)).sum(axis=1), (weight * part).sum(axis=1)
    high = values.upper[:-1] * left + values.upper[1:] * right
    flat = values.lower[:-1] * left + values.lower[1:] * right
    whole = weight.sum(axis=1)
    return np.maximum(flat - sag(t, values) * whole, values.lower[1:] * whole), high, scale


def sag(t: Floats, values: Enclosure) -> Floats:
    """How far a convex function can lie below the chord of its lower values, on each cell.

    The chords of the two neighbouring cells, continued, lie below it (drawn through an upper value further off and the
    lower value nearer). With A, B, C the rise of the chord and of the two lines over the cell, B ≤ A ≤ C: at most
    (A−B)(C−A)/(C−B). In the cells at the ends only monotony is known.
    """
    low, high = values
    width = np.expm1(np.diff(t))
    rise = np.diff(low)
    inner = slice(1, -1)
    before = (low[1:-2] - high[:-3]) * np.exp(t[1:-2] - t[:-3]) * width[inner] / width[:-2]
    after = (high[3:] - low[2:-1]) * np.exp(t[1:-2] - t[2:-1]) * width[inner] / width[2:]
    depth = np.maximum(-rise, 0.0)
    spread = np.maximum(after - before, 1e-300)
    bow = np.maximum(rise[inner] - before, 0.0) * (np.maximum(after - rise[inner], 0.0) / spread)
    depth[inner] = np.minimum(depth[inner], bow)
    return depth


def cut(curve: Curve, rate: float, top: float, leak: float, ceiling_at: Ceiling) -> tuple[float, float]:
    """Where to stop, and the log of what may lie beyond: nothing for bounded losses."""
    if math.isfinite(top) and leak == 0:
        return top, -math.inf
    end = top if 0 < top < math.inf else 1.0
    reference = integral_scale(curve, rate)
    while True:
        rest = remainder(curve, rate, end, ceiling_at)
        if rest <= reference - 26 or end > 1e5:
            return end, rest
        end *= 1.3


def integral_scale(curve: Curve, rate: float) -> float:
    """A lower estimate of the log of the integral, to judge tails by."""
    t = np.geomspace(1e-3, 1e4, 200)
    found = curve(t).lower
    t, found = t[found > 0], found[found > 0]
    return float((rate * t + np.log(found * t * 0.05)).max(initial=-700.0))


def remainder(curve: Curve, rate: float, end: float, ceiling_at: Ceiling) -> float:
    """Log of an upper bound of ∫_end^∞ e^{rate·t}δ(t)dt: by δ(t) ≤ δ(end), or by moments of a higher order."""
    here = log(float(curve(np.array([end])).upper[0]))
    best = here + rate * end - math.log(-rate) if rate < 0 else (-math.inf if here == -math.inf else math.inf)
    for gain in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0):
        s = rate + gain
        if s > 0:
            # (1 − e^{−x})₊ ≤ c e^{sx} with c = s^s/(1+s)^{1+s}
            best = min(best, ceiling_at(s) + log_peak(s) - gain * end - math.log(gain))
    return best
