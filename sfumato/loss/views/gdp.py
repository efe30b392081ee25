"""The price of a loss on a Gaussian ledger: the least μ that dominates it, given a slack.

A loss is (μ, s)-dominated if δ(ε) ≤ s + (1−s)·δ_{G_μ}(ε) for all ε ≥ 0, in both directions.
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import NamedTuple, SupportsFloat

import numpy as np
import numpy.typing as npt

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.compose.choose_engine import engine
from sfumato.loss.compose.contour_engine import ContourEngine
from sfumato.loss.compose.facts import Composite
from sfumato.loss.compose.transforms.base import Refused
from sfumato.loss.kinds.gaussian import GaussianLoss, gaussian_profile
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.loss.numeric import ULP, Enclosure, Floats, ndtri
from sfumato.loss.views.profile import Curve, checked_tolerance, epsilon, least_leak, most_leak, top_of, worst_near
from sfumato.rounding import rest_down

MOST_NODES = 4000
LOOKS = 8  # laws, each laid where those before show the price
ROUGH, NEAR = 1e-2, 0.1  # relative gap of the first law, and how far the place may move until the next is sharper
ON_LATTICES = 10  # times the tolerance is the gap asked of a lattice, whose points grow with its root
FINE = 1e-9  # relative width of a μ that one profile value forces
CLOSE = 1e-3  # relative gap that laws around the place may leave; more, and the whole profile is looked at
Curves = Callable[[Floats], tuple[Floats, Floats, Floats]]  # the profile from both sides, and the reversed one's upper


def least_mu(loss: PrivacyLoss, slack: SupportsFloat, tolerance: float) -> Bound:
    """Least μ with δ(ε) ≤ slack + (1 − slack)·δ_{G_μ}(ε) for all ε ≥ 0.

    μ = sup_t Φ⁻¹((P̄(t) − s)/(1−s)) − Φ⁻¹(Q̄(t)/(1−s)) over the tails P̄, Q̄ of the loss. Upper bounds of the
    profile at some nodes, mirrored to α < 1 by H_α = αH_{1/α} + 1 − α, have a greatest convex minorant that is
    still above the profile; each of its edges is one point (Q̄, P̄) of a dominating pair. One lower profile value
    forces a μ too. Edges are halved until both meet.

    Theorem: Gaussian domination with slack, and the sup over tails [Dong, Roth & Su 2022, Thm 2.7;
        docs/theorems/price.md]
    Theorem: ε-DP is μ-GDP with μ = 2Φ⁻¹(e^ε/(1+e^ε)), attained by randomized response [Liu et al. 2022; Dong et al.
        2022]
    """
    s = checks.number("slack", slack, 0.0, math.nextafter(1.0, 0.0), allowed="a number in [0, 1)")
    checked_tolerance(tolerance)
    if isinstance(loss, LeakyLoss) and loss.failure <= s:
        return without_leak(loss, s, tolerance)
    simple = simplest(loss)
    if isinstance(simple, GaussianLoss) and s == 0:
        return Bound(simple.mu * (1 - 4 * ULP), simple.mu * (1 + 4 * ULP), "closed form")
    if most_leak(loss) > s:
        return Bound(math.inf if least_leak(loss) > s else 0.0, math.inf, loss.method)
    end = end_of(loss, s)
    if end == 0:
        return Bound(0.0, 0.0, "closed form")
    if end < 1e-9 or end > 690:  # e^ε must be a float, and differ from 1 by digits that count
        known = loss.gaussian_ceiling() if s == 0 else math.inf
        return Bound(forced_mu(loss, s, end), min(most_mu(loss, s, end), known), loss.method)
    sharp = max(min(tolerance, 1e-4), 1e-9)
    if loss.method == "closed form":
        return search_mu(lambda eps: profiles(loss, eps, sharp), s, end, tolerance).bound(loss, s, end)
    found = search_nearby(loss, s, end, tolerance * (ON_LATTICES if on_lattices(loss, end / 2, tolerance) else 1))
    if found.upper <= found.lower * (1 + max(30 * tolerance, CLOSE)):
        return found
    other = search_mu(lambda eps: profiles(loss, eps, sharp), s, end, tolerance).bound(loss, s, end)
    return Bound(max(found.lower, other.lower), min(found.upper, other.upper), found.method)


def on_lattices(loss: PrivacyLoss, eps: float, tolerance: float) -> bool:
    """Does a lattice answer at this ε, also where contours should but refuse?"""
    found = engine(loss) if isinstance(loss, Composite) else None
    if not isinstance(found, ContourEngine):
        return loss.method == "lattice"
    try:
        found.composition.contour(eps, tolerance)
    except Refused:
        return True
    return False


def search_nearby(loss: PrivacyLoss, s: float, end: float, tolerance: float) -> Bound:
    """The price of a composition, from few laws: what is known around one ε (`near`) holds everywhere and is loose far
    away, so it shows where the next law is needed, and all of them count together."""
    back = loss.reverse if loss.relation.one_way else loss
    ahead: list[Curve] = []
    behind: list[Curve] = [] if back is not loss else ahead
    eps, delta, sharp, before = None, max(math.sqrt(s), 1e-8), ROUGH, math.inf
    while True:
        ahead.append(worst_near(loss, delta, eps, sharp))
        if back is not loss:
            behind.append(worst_near(back, delta, eps, sharp))
        found = search_mu(
            lambda t: (*together(ahead, t), together(behind, t).upper), s, end, max(tolerance, sharp / 10)
        )
        gap = found.most - found.least
        moved = eps is None or abs(found.place - eps) > NEAR * max(eps, found.place)
        if gap <= tolerance * found.most or (gap > 0.9 * before and not moved) or len(ahead) == LOOKS:
            return found.bound(loss, s, end)
        eps, before = found.place, gap
        delta = float(np.clip(together(ahead, np.array([eps])).upper[0], 1e-290, 1.0))
        sharp = sharp if gap > 0.1 * found.most else max(sharp / 300, tolerance / 3, 1e-9)


def together(curves: list[Curve], t: Floats) -> Enclosure:
    """The intersection of several enclosures of one profile."""
    found = [curve(t) for curve in curves]
    return Enclosure(reduce(np.maximum, [one.lower for one in found]), reduce(np.minimum, [one.upper for one in found]))


def without_leak(loss: LeakyLoss, s: float, tolerance: float) -> Bound:
    """s = leak + (1 − leak)·rest: the inner loss has the rest as its slack, rounded to either side."""
    rest = rest_down(s, loss.failure)
    high = least_mu(loss.inner, rest, tolerance)
    low = least_mu(loss.inner, min(rest * (1 + 4 * ULP), math.nextafter(1.0, 0.0)), tolerance) if rest else high
    return Bound(low.lower, high.upper, high.method)


def end_of(loss: PrivacyLoss, s: float) -> float:
    """An ε from which on δ ≤ s; infinity if there is none."""
    if most_leak(loss) > s:
        return math.inf
    return min(top_of(loss), epsilon(loss, s, 1e-3).upper * (1 + 1e-6) if s > 0 else math.inf)


def most_mu(loss: PrivacyLoss, s: float, end: float) -> float:
    """An upper bound of 2Φ⁻¹(e^ε/(1+e^ε)): what slack leaves of (ε, slack)-DP is dominated by randomized response.

    That needs both directions, also where only one is asked for. 2·√(2π)/4 is the steepest slope
    (docs/theorems/lattice.md), and Φ(−√(2ε)) ≤ ½e^{−ε} ≤ 1/(1 + e^ε).
    """
    eps = max(end, end_of(loss.reverse, s)) if loss.relation.one_way else end
    return min(math.sqrt(math.pi / 2) * eps, 2 * math.sqrt(2 * eps)) * (1 + 8 * ULP)


def simplest(loss: PrivacyLoss) -> object:
    """The loss or, for a sum with a closed form, the engine that stands for it."""
    return engine(loss) if isinstance(loss, Composite) else loss


class Found(NamedTuple):
    """The lower bound that profile values force, the upper bound that they allow, and the ε that allows most."""

    least: float
    most: float
    place: float

    def bound(self, loss: PrivacyLoss, s: float, end: float) -> Bound:
        most = min(self.most, most_mu(loss, s, end))
        return Bound(min(self.least, most), most, "domination on " + loss.method)


def search_mu(curves: Curves, s: float, end: float, tolerance: float) -> Found:
    """Halve the edges that price highest until upper and lower meet."""
    eps = np.linspace(0.0, end, 65)
    low, high, mirror = curves(eps)
    best_low, best_high, place, gaps, fresh_values = 0.0, math.inf, 0.0, [math.inf], (eps, low)
    while True:
        hull_eps, prices = edge_prices(eps, np.minimum.accumulate(high), np.minimum.accumulate(mirror), s)
        best_high = min(best_high, max(0.0, float(prices.max(initial=0.0))))
        if len(prices):
            place = max(float(hull_eps[prices.argmax()]), 0.0)
        best_low = raise_floor(best_low, *fresh_values, s)
        wide = np.flatnonzero(prices > best_low * (1 + tolerance / 2))
        middles = np.unique((np.maximum(hull_eps[wide], 0.0) + np.maximum(hull_eps[wide + 1], 0.0)) / 2)
        fresh = middles[np.unique(np.exp(middles), return_index=True)[1]]
        fresh = fresh[np.isin(np.exp(fresh), np.exp(eps), invert=True)][:256]
        gaps.append(best_high - best_low)
        stuck = len(gaps) > 3 and gaps[-1] > 0.9 * gaps[-4]  # the profile itself is known no better
        if best_high <= best_low * (1 + tolerance) or len(eps) > MOST_NODES or not len(fresh) or stuck:
            return Found(best_low, best_high, place)
        where = np.searchsorted(eps, fresh)
        more = curves(fresh)
        fresh_values = fresh, more[0]
        eps = np.insert(eps, where, fresh)
        low, high, mirror = (np.insert(a, where, b) for a, b in zip((low, high, mirror), more, strict=True))


def profiles(loss: PrivacyLoss, eps: Floats, sharp: float) -> tuple[Floats, Floats, Floats]:
    """The profile from below and above, and that of the reversed pair from above."""
    found = loss.worst(eps, sharp)
    back = loss.reverse.worst(eps, sharp).upper if loss.relation.one_way else found.upper
    return found.lower, found.upper, back


def edge_prices(eps: Floats, high: Floats, back: Floats, s: float) -> tuple[Floats, Floats]:
    """Nodes of the convex minorant (as ε, mirrored ones negative) and the price of each edge between them."""
    alpha = np.exp(eps)
    mirror = slice(len(eps) - 1, 0, -1)
    a = np.concatenate([1 / alpha[mirror], alpha])
    u = np.concatenate([(back / alpha + 1 - 1 / alpha)[mirror] * (1 + 4 * ULP), high])
    e = np.concatenate([-eps[mirror], eps])
    kept = convex_minorant(a, u)
    a, u, e = a[kept], u[kept], e[kept]
    q = np.maximum((u[:-1] - u[1:]) / (a[1:] - a[:-1]), 0.0)
    p = np.minimum((u[:-1] + a[:-1] * q) * (1 + 8 * ULP), 1.0)
    q = q * (1 - 16 * ULP)
    x, y = (p - s) / (1 - s), q / (1 - s)
    usable = (x > 0) & (y < 1) & (e[1:] > 0)
    finite = usable & (x < 1) & (y > 0)
    z_p, z_q = (ndtri(np.where(finite, z, 0.5)) for z in (x, y))
    prices = (z_p - z_q) + 16 * ULP * (np.abs(z_p) + np.abs(z_q) + 1)
    return e, np.where(finite, prices, np.where(usable, math.inf, -math.inf))


def convex_minorant(a: Floats, u: Floats) -> npt.NDArray[np.intp]:
    """Indices of the corners of the greatest convex function below the points (a, u)."""
    kept = np.arange(len(a), dtype=np.intp)
    while len(kept) > 2:
        x, y = a[kept], u[kept]
        left = (y[1:-1] - y[:-2]) * (x[2:] - x[1:-1])
        right = (y[2:] - y[1:-1]) * (x[1:-1] - x[:-2])
        above = left >= right  # on or above the chord of its neighbours: no corner
        if not above.any():
            break
        kept = np.concatenate([kept[:1], kept[1:-1][~above], kept[-1:]])
    return kept


def raise_floor(floor: float, eps: Floats, low: Floats, s: float) -> float:
    """The largest μ that these profile values force, or `floor` if that is more: only values that say more count."""
    target = (low - s) / (1 - s)
    more = gaussian_profile(floor * (1 + 1e-12) + 1e-300, eps).upper <= target
    return max(floor, float(inverse(eps[more], target[more], floor).max())) if more.any() else floor


def inverse(eps: Floats, target: Floats, start: float = 0.0) -> Floats:
    """The largest μ found with δ_{G_μ}(ε) certified ≤ target: what single profile values force from below.

    `start` is known to be one.
    """
    low, high = np.full_like(eps, start), np.full_like(eps, 1.01 * start or 1.0)
    growth = 1.01 if start else 2.0
    for _ in range(40):
        below = gaussian_profile(high, eps).upper <= target
        if not below.any():
            break
        growth = min(growth * growth, 4.0) if start else growth
        low, high = np.where(below, high, low), np.where(below, growth * high, high)
    for _ in range(60):
        if np.all(high - low <= FINE * high):
            break
        middle = np.sqrt(np.maximum(low, 1e-150) * high)  # by magnitude: prices may be tiny
        below = gaussian_profile(middle, eps).upper <= target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(target > 0, low, 0.0)


def forced_mu(loss: PrivacyLoss, s: float, end: float) -> float:
    """The μ that sampled profile values force."""
    eps = np.concatenate([[0.0], np.geomspace(1e-4, 50.0, 60) if end > 1 else np.linspace(0.0, end, 65)[1:]])
    return float(inverse(eps, (loss.worst(eps).lower - s) / (1 - s)).max())
