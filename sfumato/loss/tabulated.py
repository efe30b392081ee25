"""Losses known by samples: certified values at nodes, and what convexity says between them.

H is convex in e^ε and does not rise. Between two nodes it lies below their chord and above the chords of the cells next
door, continued; beyond the last node it lies below its last value, which therefore counts as leak. Losses given by
Python functions become tables at construction: a table is plain data, a function is not.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple, SupportsFloat

import numpy as np
import numpy.typing as npt

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss import divergences
from sfumato.loss.base import TOLERANCE, PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.divergences import merge
from sfumato.loss.finite import running_sums
from sfumato.loss.numeric import ULP, Enclosure, Floats, floats
from sfumato.sensitivity import Relation

Curve = Callable[[Floats], Enclosure]
Function = Callable[[float], SupportsFloat] | Callable[[Floats], Floats]

GAP = 1e-6  # relative gap asked of a table
MOST = 3000  # nodes of a table
FLOOR = 1e-18  # a profile below this has ended
CAP = 690.0  # the largest node: e^ε must stay a float
BELIEF = 1e-12  # relative error of what a user's function returns


@dataclass(frozen=True)
class TabulatedLoss(PrivacyLoss):
    """Both profiles at the same nodes ε₀ = 0 < ε₁ < …, each from above and below.

    Upper: chords in e^ε, then the last value (leak). Lower: the line through (e^{ε₁}, u₁) and (e^{ε₂}, l₂), continued
    beyond ε₂, lies below every convex function between these values; so does its mirror image, and so does 0.

    Theorem: a profile lies under the chords of its values at nodes: connect the dots [Doroshenko et al. 2022]
    """

    nodes: tuple[float, ...]
    ahead_upper: tuple[float, ...]
    ahead_lower: tuple[float, ...]
    back_upper: tuple[float, ...]
    back_lower: tuple[float, ...]

    method = "tabulated"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("nodes", "ahead_upper", "ahead_lower", "back_upper", "back_lower"):
            object.__setattr__(self, name, column(name, getattr(self, name)))
        check_nodes(self.nodes)
        check_side("ahead", self.nodes, self.ahead_upper, self.ahead_lower)
        check_side("back", self.nodes, self.back_upper, self.back_lower)

    @cached_property
    def sides(self) -> "tuple[Side, Side]":
        """The two profiles as arrays, forward first."""
        ahead = Enclosure(floats(self.ahead_lower), floats(self.ahead_upper))
        back = Enclosure(floats(self.back_lower), floats(self.back_upper))
        return both_sides(floats(self.nodes), ahead, back)

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.sides[0](eps)

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.sides[1](eps)

    def supremum(self) -> tuple[float, float]:
        return self.nodes[-1], self.nodes[-1]

    def leak(self) -> tuple[float, float]:
        return self.ahead_upper[-1], self.back_upper[-1]

    @property
    def sharp_ends(self) -> bool:
        """No table proves that anything leaks: the profile may fall to 0 beyond the last node."""
        return False

    def log_moment(self, s: float) -> Bound:
        if s > 0 and self.leak()[0] > 0:  # infinite or not: nothing is known beyond the last node
            return Bound(0.0, math.inf, self.method)
        return divergences.log_moment(self, s)

    @property
    def reverse(self) -> "TabulatedLoss":
        back, ahead = (self.back_upper, self.back_lower), (self.ahead_upper, self.ahead_lower)
        return TabulatedLoss(self.nodes, *back, *ahead, relation=self.relation.reversed)


def column(name: str, values: Sequence[SupportsFloat]) -> tuple[float, ...]:
    """One column of finite numbers."""
    try:
        found = tuple(float(value) for value in values)
    except (TypeError, ValueError) as problem:
        raise InvalidParameter(f"{name} must be a sequence of numbers.\n  found:  {problem}") from problem
    if not all(map(math.isfinite, found)):
        raise InvalidParameter(f"{name} holds infinity or NaN.\n  do:     give finite numbers")
    return found


def check_nodes(nodes: tuple[float, ...]) -> None:
    """Nodes rise from 0."""
    if len(nodes) < 2 or nodes[0] != 0 or np.any(np.diff(nodes) <= 0):
        raise InvalidParameter(
            f"nodes must rise from 0, at least two of them.\n  found:  {len(nodes)} nodes that begin {nodes[:3]}\n"
            "  do:     give ε = 0 and larger values of ε, sorted, without repeats"
        )


def check_side(side: str, nodes: tuple[float, ...], upper: tuple[float, ...], lower: tuple[float, ...]) -> None:
    """Bounds that some profile can meet."""
    for name, found in ((f"{side}_upper", upper), (f"{side}_lower", lower)):
        if len(found) != len(nodes):
            raise InvalidParameter(f"{name} has {len(found)} values for {len(nodes)} nodes: give one per node.")
        if not 0 <= min(found) <= max(found) <= 1 or np.any(np.diff(found) > 0):
            raise InvalidParameter(
                f"{name} is no bound on a profile: it must lie in [0, 1] and not rise with ε.\n"
                f"  found:  values from {found[0]!r} to {found[-1]!r}, largest {max(found)!r}, least {min(found)!r}"
            )
    if np.any(floats(lower) > floats(upper)):
        raise InvalidParameter(f"{side}_lower is above {side}_upper somewhere.\n  do:     give lower ≤ truth ≤ upper")


# ---- a convex curve between nodes -------------------------------------------------------------------------------


class Side(NamedTuple):
    """One profile between nodes."""

    nodes: Floats
    values: Enclosure
    fall: Floats  # H falls no faster than this to the right of a node (slope of the chord on its left, times e^{node})
    rise: Floats  # H rises at least this fast to the left of a node (slope of the chord on its right, times e^{node})

    def lines(self, eps: Floats, i: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The continued chords of the cells before and after cell i; beyond the last node there is only the first."""
        nodes, low = self.nodes, self.values.lower
        k = np.minimum(i + 1, len(nodes) - 1)
        away = eps - nodes[i]
        drop = self.fall[i] * np.expm1(np.minimum(away, CAP))
        left = np.where(away < CAP, low[i] - drop - 8 * ULP * (low[i] + drop), 0.0)
        right = low[k] - self.rise[k] * np.expm1(np.minimum(eps - nodes[k], 0.0))
        return left, np.where(i < k, right * (1 - 8 * ULP), 0.0)

    def __call__(self, eps: Floats) -> Enclosure:
        nodes, high = self.nodes, self.values.upper
        i = np.searchsorted(nodes, eps, side="right") - 1
        k = np.minimum(i + 1, len(nodes) - 1)
        share = np.expm1(np.minimum(eps - nodes[k], 0.0)) / np.where(i < k, np.expm1(nodes[i] - nodes[k]), -1.0)
        upper = high[k] + (high[i] - high[k]) * np.minimum(share, 1.0)
        return Enclosure(np.maximum(np.maximum(*self.lines(eps, i)), 0.0), np.minimum(upper * (1 + 8 * ULP), 1.0))


def both_sides(nodes: Floats, ahead: Enclosure, back: Enclosure) -> tuple[Side, Side]:
    """Forward and backward; each knows the other's first cell, because H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P)."""
    return one_side(nodes, ahead, back.upper[1]), one_side(nodes, back, ahead.upper[1])


def one_side(nodes: Floats, values: Enclosure, mirrored: float) -> Side:
    """The profile and the slopes of its chords, from above and below."""
    low, high = values
    before = -math.expm1(-nodes[1]) + math.exp(-nodes[1]) * mirrored  # H at e^{−ε₁}
    back = np.concatenate([[-nodes[1]], nodes[:-1] - nodes[1:]])
    fall = np.maximum(np.concatenate([[before], high[:-1]]) - low, 0.0) / -np.expm1(back)
    with np.errstate(over="ignore"):
        rise = np.maximum(low[:-1] - high[1:], 0.0) / np.expm1(np.diff(nodes))
    return Side(nodes, values, fall, np.append(rise, 0.0))


def seen(t: Floats, d: Floats) -> Floats:
    """H at e^t: d itself for t ≥ 0; for t < 0, where d is the other direction's profile, 1 − e^t + e^t·d."""
    below = np.minimum(t, 0.0)
    return np.where(t >= 0, d, np.exp(below) * d - np.expm1(below))


def chord(t: Floats, t0: Floats, d0: Floats, t1: Floats, d1: Floats) -> Floats:
    """The chord of H from e^{t0} to e^{t1} at e^t: forward profile for t ≥ 0, backward profile at −t for t < 0.

    Each direction is computed in its own coordinates, as a sum of positive terms: no digit of a small profile is lost.
    """
    ahead = t >= 0
    a, b, c = np.abs(t), np.where(ahead, t0, -t1), np.where(ahead, t1, -t0)
    first, last = seen(b, np.where(ahead, d0, d1)), seen(c, np.where(ahead, d1, d0))
    whole = np.expm1(b - c)
    return floats((first * np.expm1(a - c) + last * np.exp(a - c) * np.expm1(b - a)) / whole)


def convex(t: Floats, d: Floats) -> Floats:
    """The greatest convex H below the points (e^t, d), at these points: a bound on every convex function below them.

    A point above the chord of its neighbours is on no convex curve below them, so all such points go at once.
    """
    kept = np.arange(len(t))
    while len(kept) > 2:
        before, here, after = kept[:-2], kept[1:-1], kept[2:]
        roof = chord(t[here], t[before], d[before], t[after], d[after])
        good = d[here] <= roof * (1 + 8 * ULP)
        if good.all():
            break
        kept = kept[np.concatenate([[True], good, [True]])]
    return np.minimum(d, polygon(t[kept], d[kept], t) * (1 + 8 * ULP))


def polygon(t: Floats, d: Floats, at: Floats) -> Floats:
    """The profiles between the points (e^t, d), forward or backward as `at` has its sign; constant beyond the ends."""
    k = np.clip(np.searchsorted(t, at, side="right"), 1, len(t) - 1)
    inner = chord(np.clip(at, t[0], t[-1]), t[k - 1], d[k - 1], t[k], d[k])
    return np.where(at >= t[-1], d[-1], np.where(at <= t[0], d[0], inner))


# ---- choosing nodes -----------------------------------------------------------------------------------------------


def reach(curve: Curve, floor: float = FLOOR) -> float:
    """Where the profile has ended, roughly: below the floor, or at what it never falls below."""

    def ended(eps: float) -> bool:
        here, last = curve(np.array([eps, CAP])).upper
        return bool(here <= max(floor, last * (1 + 1e-9)))

    low, high = 0.5, 1.0
    while high < CAP and not ended(high):
        low, high = high, min(2 * high, CAP)
    while low > 1e-12 and ended(low):
        low, high = low / 2, low
    for _ in range(5):
        middle = (low + high) / 2
        low, high = (low, middle) if ended(middle) else (middle, high)
    return high


def sampled(ahead: Curve, back: Curve | None, nodes: Floats, most: int = MOST) -> tuple[Floats, Enclosure, Enclosure]:
    """Nodes halved where the gap is largest until it is small everywhere; if they do not suffice, spread evenly."""
    values = [ahead(nodes), (back or ahead)(nodes)]
    while True:
        first, second = both_sides(nodes, *map(monotone, values))
        excess = gaps(first) if back is None else np.maximum(gaps(first), gaps(second))
        worst = np.argsort(-excess)[: most - len(nodes)]
        chosen = np.sort(worst[excess[worst] > max(1.0, float(excess.max()) / 4)])
        if not len(chosen):
            break
        fresh = (nodes[chosen] + nodes[chosen + 1]) / 2
        found = ahead(fresh)
        other = found if back is None else back(fresh)
        values = [merge(nodes, v, fresh, f)[1] for v, f in zip(values, (found, other), strict=True)]
        nodes = np.insert(nodes, np.searchsorted(nodes, fresh), fresh)
    if len(nodes) < most:
        return nodes, values[0], values[1]
    nodes = spread(nodes, excess, most)
    return nodes, ahead(nodes), (back or ahead)(nodes)


def spread(nodes: Floats, excess: Floats, most: int) -> Floats:
    """The gap of a cell grows with its width squared: nodes at equal steps of ∫√gap have equal gaps."""
    share = np.concatenate([[0.0], np.cumsum(np.sqrt(excess + 0.05 * np.mean(excess)))])
    return np.unique(np.interp(np.linspace(0.0, share[-1], most), share, nodes))


def first_nodes(ahead: Curve, back: Curve | None, end: float) -> Floats:
    """Even cells; if there is leak, a node beyond the end, so that the last chord is as flat as the profile."""
    nodes = np.linspace(0.0, end, 65)
    leaks = any(curve(nodes[-2:]).lower[-1] > FLOOR for curve in (ahead, back) if curve)
    return np.append(nodes, end + 1) if leaks else nodes


def gaps(side: Side) -> Floats:
    """Largest gap inside each cell, in units of what is asked and of what the nodes themselves allow.

    Less is asked of profiles below the floor: they matter only where many people act together.
    """
    nodes, width = side.nodes, np.diff(side.nodes)
    noise = side.values.upper - side.values.lower
    noise = np.maximum(noise[:-1], noise[1:])
    noise = 4 * np.maximum(noise, np.maximum(np.append(noise[1:], 0.0), np.append(0.0, noise[:-1])))
    worst = np.zeros_like(width)
    for place in (0.25, 0.5, 0.75):
        low, high = side(nodes[:-1] + place * width)
        asked = GAP * (1 + (np.log10(np.maximum(high, 1e-300)) / np.log10(FLOOR)) ** 2)
        size = (high - low) / np.maximum(asked * high + noise, 1e-300)
        worst = np.maximum(worst, np.where(width > 1e-13 * nodes[-1], size, 0.0))
    return worst


def monotone(values: Enclosure) -> Enclosure:
    """What is known of a profile because it does not rise."""
    lower = np.maximum.accumulate(values.lower[::-1])[::-1]
    return Enclosure(lower, np.minimum.accumulate(values.upper))


def table(nodes: Floats, ahead: Enclosure, back: Enclosure, relation: Relation) -> TabulatedLoss:
    """The loss with these values at the nodes, its upper side made convex."""
    ahead, back = monotone(ahead), monotone(back)
    upper = np.concatenate([back.upper[:0:-1], [min(ahead.upper[0], back.upper[0])], ahead.upper[1:]])
    upper = convex(np.concatenate([-nodes[:0:-1], nodes]), upper)
    middle = len(nodes) - 1
    ahead = monotone(Enclosure(ahead.lower, upper[middle:]))
    back = monotone(Enclosure(back.lower, upper[middle::-1]))
    columns = (ahead.upper, np.minimum(ahead.lower, ahead.upper), back.upper, np.minimum(back.lower, back.upper))
    return TabulatedLoss(tuple(nodes.tolist()), *(tuple(values.tolist()) for values in columns), relation=relation)


def tabulate(ahead: Curve, back: Curve | None, end: float, relation: Relation, most: int = MOST) -> TabulatedLoss:
    """Two enclosed profiles as a table on [0, end]; without `back` both are the same."""
    return table(*sampled(ahead, back, first_nodes(ahead, back, end), most), relation)


# ---- losses given by functions ------------------------------------------------------------------------------------


def from_profile(
    delta: Function,
    *,
    backward: Function | None = None,
    top: SupportsFloat | None = None,
    relation: Relation = Relation.AddRemove,
) -> TabulatedLoss:
    """The loss with the profile δ(ε), ε ≥ 0, and `backward` for the other direction if that is different.

    `top`: the ε from which on δ no longer falls, if there is one. Values are believed to a relative 1e-12; what is not
    a profile (in [0, 1], not rising, convex in e^ε) is refused.

    Theorem: a pair is a profile: any convex non-increasing H ≥ (1 − α)₊ with H_0 = 1 has one [Zhu et al. 2022, Lemma 9]
    """
    last = CAP
    if top is not None:
        last = checks.number("top", top, 1e-12, CAP, allowed=f"the ε from which on δ stays what it is, at most {CAP:g}")
    ahead = believed("delta", delta, last)
    back = None if backward is None else believed("backward", backward, last)
    end = last if top is not None else max(reach(curve) for curve in (ahead, back) if curve)
    nodes, first, second = sampled(ahead, back, first_nodes(ahead, back, end))
    check_profile(nodes, first.upper, second.upper)
    return table(nodes, first, second, relation)


def believed(name: str, function: Function, last: float) -> Curve:
    """A function of ε with values in [0, 1], as an enclosure; it is not asked beyond `last`."""

    def curve(eps: Floats) -> Enclosure:
        value = called(name, function, np.minimum(eps, last)) + 0.0  # no −0
        wrong = ~((value >= 0) & (value <= 1 + BELIEF))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise InvalidParameter(
                f"{name} must lie in [0, 1].\n  found:  {name}({eps[i]:.6g}) = {value[i]!r}\n"
                "  do:     return δ(ε) for ε ≥ 0, without cancellation where it is small, or give `top`"
            )
        return Enclosure(value * (1 - BELIEF), np.minimum(value * (1 + BELIEF), 1.0))

    return curve


def called(name: str, function: Function, points: Floats) -> Floats:
    """A user's function at many points, at once if it can do that."""
    with np.errstate(all="ignore"):
        try:
            found = floats(function(points)) if len(points) > 1 else floats(math.nan)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            found = floats(math.nan)
        if found.shape == points.shape:
            return found
        try:
            return floats([floats(function(float(point))).item() for point in points])  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as problem:
            raise InvalidParameter(f"{name} must turn a number into a number.\n  found:  {problem}") from problem


def check_profile(nodes: Floats, ahead: Floats, back: Floats) -> None:
    """Not rising and convex in e^ε, on both sides of 0 and across it, up to 1e-9."""
    for values in (ahead, back):
        rises = np.diff(values) > 1e-9 * values[:-1]
        if rises.any():
            i = int(np.argmax(rises))
            raise InvalidParameter(
                f"a profile does not rise.\n  found:  δ({nodes[i]:.6g}) = {values[i]:.6g} < δ({nodes[i + 1]:.6g}) = "
                f"{values[i + 1]:.6g}\n  do:     check the formula; δ(ε) is the δ for which (ε, δ)-DP holds"
            )
    t, d = np.concatenate([-nodes[:0:-1], nodes]), np.concatenate([back[:0:-1], ahead])
    roof = chord(t[1:-1], t[:-2], d[:-2], t[2:], d[2:])
    bent = (d[1:-1] - roof) > 1e-9 * roof
    if bent.any() or abs(ahead[0] - back[0]) > 1e-9:
        i = int(np.argmax((d[1:-1] - roof) / np.maximum(roof, 1e-300))) + 1
        raise InvalidParameter(
            f"no pair of distributions has this profile: it must be convex in e^ε, and alike at 0 in both directions.\n"
            f"  found:  {d[i]:.6g} at ε = {abs(t[i]):.6g}, above the chord of its neighbours; {ahead[0]:.6g} and "
            f"{back[0]:.6g} at 0\n  do:     give δ(ε) = ∫(p − e^ε q)₊, and `backward` = ∫(q − e^ε p)₊ if that differs"
        )


def from_trade_off(f: Function, *, relation: Relation = Relation.AddRemove) -> TabulatedLoss:
    """The loss with the trade-off curve β = f(α): convex, falling, 0 ≤ f(α) ≤ 1 − α.

    δ(ε) = sup_x 1 − f(x) − e^ε x, backward sup_x 1 − x − e^ε f(x): from below at samples x, from above where the chords
    of neighbouring cells, continued, meet. f is believed to 1e-12 of the smaller of f and 1 − f, and to 4 ulps of f and
    of α: compute it from α where α is small, Φ(−Φ⁻¹(α) − μ) and not Φ(Φ⁻¹(1 − α) − μ). δ is sharp down to 1e-15.

    Theorem: profile and trade-off are convex conjugates [Dong, Roth & Su 2022, Prop. 2.12]
    """
    tiny, small = np.geomspace(1e-300, 1e-18, 100), np.geomspace(1e-18, 0.5, 700)
    x = np.unique(np.concatenate([[0.0], tiny, small, 1 - small, [1.0]]))
    beta = called("f", f, x)
    while True:
        check_trade_off(x, beta)
        ahead, back = both_corners(x, beta)
        excess = np.maximum(ahead.excess(), back.excess()[::-1])
        cells = np.flatnonzero(excess > max(1.0, float(excess.max()) / 16))
        fresh = np.setdiff1d(between(x[cells], x[cells + 1]), x)
        if not len(fresh) or len(x) > 8000:
            return tabulate(ahead.profile, back.profile, max(reach(ahead.profile), reach(back.profile)), relation)
        where = np.searchsorted(x, fresh)
        x, beta = np.insert(x, where, fresh), np.insert(beta, where, called("f", f, fresh))


def between(left: Floats, right: Floats) -> Floats:
    """Geometric means, counted from the nearer of 0 and 1."""
    low = np.sqrt(left * right) + np.where(left == 0, right / 16, 0.0)
    high = 1 - np.sqrt((1 - left) * (1 - right)) - np.where(right == 1, (1 - left) / 16, 0.0)
    return np.where(right <= 0.5, low, high)


def check_trade_off(x: Floats, beta: Floats) -> None:
    """Between 0 and 1 − α, falling, convex: up to 1e-9 of the smaller of f and 1 − f, and a few ulps."""
    slack = 1e-9 * np.minimum(beta, 1 - beta) + 16 * ULP
    middle = (beta[:-2] * (x[2:] - x[1:-1]) + beta[2:] * (x[1:-1] - x[:-2])) / (x[2:] - x[:-2])
    wrong = ~((beta >= 0) & (beta <= 1 - x + slack))
    wrong[1:] |= ~(np.diff(beta) <= slack[1:])
    wrong[1:-1] |= ~(beta[1:-1] <= middle + slack[1:-1])
    if wrong.any():
        i = int(np.argmax(wrong))
        near = ", ".join(f"f({x[n]:.6g}) = {beta[n]:.17g}" for n in range(max(i - 1, 0), min(i + 2, len(x))))
        raise InvalidParameter(
            f"a trade-off curve is convex, falls, and lies between 0 and 1 − α.\n  found:  {near}\n"
            "  do:     give the least type II error at type I error α, computed from α itself: 1 − α forgets small α"
        )


class Corner(NamedTuple):
    """Samples of the concave curve r(x) = most power at type I error x, each with its two extreme positions."""

    best_x: Floats
    best_r: Floats
    worst_x: Floats
    worst_r: Floats

    def outer(self) -> tuple[Floats, Floats]:
        """One point per cell: where the continued chords of its neighbours meet. The curve lies below them all."""
        x, r = self.best_x, self.best_r
        width = np.diff(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = (r[1:] - self.worst_r[:-1]) / (x[1:] - self.worst_x[:-1])  # from the left, at most
            steep = np.concatenate([[np.inf], np.where(x[1:] > self.worst_x[:-1], steep, np.inf)[:-1]])
            flat = np.maximum(self.worst_r[1:] - r[:-1], 0.0) / (self.worst_x[1:] - x[:-1])  # from the right, at least
            flat = np.append(np.where(self.worst_x[1:] > x[:-1], flat, 0.0)[1:], 0.0)
            away = np.where(steep > flat, (np.diff(r) - flat * width) / (steep - flat), 0.0)
        away = np.clip(away, 0.0, width)
        return x[:-1] + away, r[1:] - flat * (width - away)

    def excess(self) -> Floats:
        """How far outside the points are, in units of what is asked of δ (least on the slope that leads to a cell)."""
        x, r = self.outer()
        width = np.diff(self.best_x)
        slope = np.where(width > 0, np.diff(self.best_r) / np.maximum(width, 1e-300), 0.0)
        above = r - self.best_r[:-1] - slope * (x - self.best_x[:-1])
        delta = self.best_r[:-1] - np.append(slope[:1], slope[:-1]) * self.best_x[:-1]
        noise = self.best_r - self.worst_r
        noise = noise[:-1] + noise[1:] + slope * np.maximum(self.worst_x - self.best_x, 0.0)[1:]
        return np.where(slope > 0.9, above / np.maximum(GAP * delta + 8 * noise, 1e-300), 0.0)

    def profile(self, eps: Floats) -> Enclosure:
        """sup over x of r(x) − e^ε x, between the samples and the points outside."""
        x, r = self.outer()
        low = highest(self.worst_x * (1 + 4 * ULP), self.worst_r * (1 - 4 * ULP), eps)
        high = highest(np.append(x, self.best_x) * (1 - 4 * ULP), np.append(r, self.best_r) * (1 + 64 * ULP), eps)
        return Enclosure(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))


def highest(x: Floats, r: Floats, eps: Floats) -> Floats:
    """max of r − e^ε x over points: at the corner of their concave hull where its slope passes e^ε.

    A point below the chord of two others is the highest for no ε, so all such points go at once.
    """
    order = np.lexsort((r, x))
    x, r = x[order], r[order]
    kept = np.append(np.diff(x) > 0, True)
    while not kept.all():
        x, r = x[kept], r[kept]
        slope = np.diff(r) / np.diff(x)
        kept = np.concatenate([[True], slope[:-1] > slope[1:], [True]])
    a = np.exp(eps)
    k = np.searchsorted(-np.diff(r) / np.diff(x), -a)
    near = [np.clip(k + step, 0, len(x) - 1) for step in (-1, 0, 1)]  # slopes are rounded: look at both neighbours
    return floats(np.max([r[n] - a * x[n] for n in near], axis=0))


def both_corners(x: Floats, beta: Floats) -> tuple[Corner, Corner]:
    """The curve seen from α = 0 (forward) and from β = 0 (backward)."""
    steep = np.diff(beta, prepend=beta[0]) / np.diff(x, prepend=-1.0)
    error = BELIEF * np.minimum(beta, 1 - beta) + 4 * ULP * (beta + x * np.abs(steep))
    ahead = Corner(x, np.minimum(1 - beta + error, 1.0), x, np.maximum(1 - beta - error, 0.0))
    y, r, error = beta[::-1], (1 - x)[::-1], error[::-1]
    return ahead, Corner(np.maximum(y - error, 0.0), r, y + error, r)


# ---- losses given by two distributions on a line ------------------------------------------------------------------

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(8)


class Sums(NamedTuple):
    """Masses to the left and to the right of each edge, with their errors."""

    left: Floats
    left_error: Floats
    right: Floats
    right_error: Floats


Ratio = Callable[[Floats], Floats]
Measure = Callable[[Floats], Sums]


def from_densities(
    p: Function,
    q: Function,
    low: SupportsFloat,
    high: SupportsFloat,
    *,
    turning_points: Sequence[SupportsFloat] = (),
    relation: Relation = Relation.AddRemove,
) -> TabulatedLoss:
    """The loss of two densities on [low, high]; log p/q is monotone between `turning_points`.

    Masses of cells come from Gauss quadrature, believed to 1e-12 and to what halving a cell changes. From above, each
    cell's mass moves to the losses at its two ends so that P and Q keep theirs; from below, a cell is merged into one
    outcome. Mass outside counts as leak from above.

    Theorem: moving mass to the two ends dominates: connect the dots [Doroshenko et al. 2022]
    """

    def ratio(x: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(density("p", p, x)) - np.log(density("q", q, x))

    return from_measures(ratio, quadrature("p", p), quadrature("q", q), breaks(low, high, turning_points), relation)


def from_cdfs(
    cdf_p: Function,
    cdf_q: Function,
    log_ratio: Function,
    low: SupportsFloat,
    high: SupportsFloat,
    *,
    turning_points: Sequence[SupportsFloat] = (),
    relation: Relation = Relation.AddRemove,
) -> TabulatedLoss:
    """The loss of two distribution functions on [low, high], with log p/q monotone between `turning_points`.

    As `from_densities`, but masses are differences, believed to 4 ulps of the larger value. Where high losses lie to
    the right, Q's are known to 1e-15 only and δ(ε) to about e^ε·1e-15: mirror the line if that matters.

    Theorem: moving mass to the two ends dominates: connect the dots [Doroshenko et al. 2022]
    """
    ratio, cuts = partial(called, "log_ratio", log_ratio), breaks(low, high, turning_points)
    return from_measures(ratio, differences("cdf_p", cdf_p), differences("cdf_q", cdf_q), cuts, relation)


def breaks(low: SupportsFloat, high: SupportsFloat, turning_points: Sequence[SupportsFloat]) -> Floats:
    """The ends of the pieces."""
    cuts = floats(column("low, turning_points and high", [low, *turning_points, high]))
    if np.any(np.diff(cuts) <= 0):
        raise InvalidParameter(
            f"low, turning_points and high must rise in this order.\n  found:  {cuts.tolist()}\n"
            "  do:     sort them; what lies beyond low and high is counted as leak"
        )
    return cuts


def density(name: str, function: Function, x: Floats) -> Floats:
    """A density at many points."""
    found = called(name, function, x)
    wrong = ~((found >= 0) & (found < np.inf))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InvalidParameter(
            f"{name} must be a density: ≥ 0 and finite.\n  found:  {name}({x[i]:.6g}) = {found[i]!r}\n"
            "  do:     move low, high or a turning point away from a pole"
        )
    return found


def quadrature(name: str, function: Function) -> Measure:
    """Masses from a density."""

    def gauss(x: Floats) -> Floats:
        half = np.diff(x)[:, None] / 2
        points = x[:-1, None] + half * (1 + POINTS)
        values = density(name, function, points.ravel()).reshape(points.shape)
        return floats((values * WEIGHTS * half).sum(axis=1))

    def sums(x: Floats) -> Sums:
        middle = (x[:-1] + x[1:]) / 2
        halves = gauss(np.insert(x, np.arange(1, len(x)), middle)).reshape(-1, 2).sum(axis=1)
        error = np.abs(halves - gauss(x)) + BELIEF * halves
        left, right = (halves, error), (halves[::-1], error[::-1])
        return Sums(*map(running_sums, left), *(running_sums(values)[::-1] for values in right))

    return sums


def differences(name: str, function: Function) -> Measure:
    """Masses from a distribution function."""

    def sums(x: Floats) -> Sums:
        found = called(name, function, x)
        if not np.all((found >= 0) & (found <= 1)) or np.any(np.diff(found) < -4 * ULP):
            raise InvalidParameter(
                f"{name} must be a distribution function: it rises from 0 to 1.\n"
                f"  found:  values from {found[0]!r} to {found[-1]!r}, least {found.min()!r}, largest {found.max()!r}"
            )
        left, right = np.maximum(found - found[0], 0.0), np.maximum(found[-1] - found, 0.0)
        return Sums(left, 4 * ULP * found, right, 4 * ULP * (0 * found + found[-1]))

    return sums


class Piece(NamedTuple):
    """Edges in falling order of the loss, with the masses of higher losses and their errors."""

    loss: Floats
    p: Floats
    p_error: Floats
    q: Floats
    q_error: Floats

    def profile(self, eps: Floats) -> Enclosure:
        """This piece's share of H: chords between edges above, the better of the two edges around ε below."""
        total = self.p[-1] + self.p_error[-1]
        finite = np.isfinite(self.loss)
        if not finite.any():
            return Enclosure(0 * eps, 0 * eps + total)
        loss, p, p_error, q, q_error = (values[finite] for values in self)
        half, most = np.exp(loss / 2), p + p_error  # e^loss may overflow where e^loss·q does not
        edge = np.clip(most - half * np.maximum(q - q_error, 0.0) * half, 0.0, most) + 4 * ULP * most
        k = np.searchsorted(-loss, -eps, side="left")
        i, j = np.maximum(k - 1, 0), np.minimum(k, len(loss) - 1)
        share = np.expm1(np.minimum(eps - loss[i], 0.0)) / np.where(i < j, np.expm1(loss[j] - loss[i]), -1.0)
        inner = edge[i] + (edge[j] - edge[i]) * np.minimum(share, 1.0)
        whole = total + (edge[-1] - total) * np.exp(np.minimum(eps - loss[-1], 0.0))  # to α = 0, where H is all of P
        high = np.where(k == 0, edge[0], np.where(k == len(loss), whole, inner))
        a = np.exp(eps)
        low = [(p - p_error)[n] * (1 - 4 * ULP) - a * (q + q_error)[n] * (1 + 4 * ULP) for n in (i, j)]
        return Enclosure(np.maximum(np.maximum(*low), 0.0), high * (1 + 8 * ULP))


def piece(loss: Floats, p: Sums, q: Sums) -> Piece:
    """A piece read in falling order of the loss; −loss with (Q, P) is the other direction."""
    if loss[-1] >= loss[0]:
        return Piece(loss[::-1], p.right[::-1], p.right_error[::-1], q.right[::-1], q.right_error[::-1])
    return Piece(loss, p.left, p.left_error, q.left, q.left_error)


def from_measures(ratio: Ratio, p: Measure, q: Measure, cuts: Floats, relation: Relation) -> TabulatedLoss:
    """Both profiles, summed over the pieces."""
    cells = [refined(ratio, p, q, low, high) for low, high in pairwise(cuts)]
    ahead = summed([piece(loss, first, second) for loss, first, second in cells])
    back = summed([piece(-loss, second, first) for loss, first, second in cells])
    return tabulate(ahead, back, max(reach(ahead), reach(back)), relation)


def summed(pieces: list[Piece]) -> Curve:
    """The profile of all pieces and of the mass that is in none."""
    inside = math.fsum(part.p[-1] for part in pieces)
    if not 0 < inside <= 1 + 1e-9:
        raise InvalidParameter(f"the mass between low and high must be positive and at most 1.\n  found:  {inside!r}")
    outside = max(1 - inside, 0.0) + 16 * ULP

    def curve(eps: Floats) -> Enclosure:
        low, high = np.sum([part.profile(eps) for part in pieces], axis=0)
        return Enclosure(np.clip(low * (1 - 8 * ULP), 0.0, 1.0), np.clip((high + outside) * (1 + 8 * ULP), 0.0, 1.0))

    return curve


def refined(ratio: Ratio, p: Measure, q: Measure, low: float, high: float) -> tuple[Floats, Sums, Sums]:
    """Losses at edges, close together wherever that makes the profiles sharper, and the masses."""
    x = np.linspace(low, high, 257)
    known = np.flatnonzero(~np.isnan(ratio(x)))
    x = x[known[0] : known[-1] + 1] if len(known) else x  # beyond, both densities are 0
    loss = ratio(x)
    while True:
        check_monotone(x, loss)
        ordered = (np.maximum if loss[-1] >= loss[0] else np.minimum).accumulate(loss)
        first, second = p(x), q(x)
        excess = np.where(np.diff(x) > 1e-12 * (high - low), coarseness(ordered, first, second), 0.0)
        wide = excess > max(1.0, float(excess.max()) / 16)
        if not wide.any() or len(x) > 20_000:
            return ordered, first, second
        fresh = ((x[:-1] + x[1:]) / 2)[wide]
        where = np.searchsorted(x, fresh)
        x, loss = np.insert(x, where, fresh), np.insert(loss, where, ratio(fresh))


def coarseness(loss: Floats, p: Sums, q: Sums) -> Floats:
    """How much too large a cell is: its gap in the middle, the error of its mass, or an infinite loss at one end."""
    mass, zero = np.diff(p.left) + np.diff(q.left), np.zeros_like(loss)
    rough = np.diff(p.left_error + q.left_error) / (4 * BELIEF * mass + 1e-18)
    p, q = (sums._replace(left_error=zero, right_error=zero) for sums in (p, q))
    ends = np.isfinite(loss)
    finite, half = ends[:-1] & ends[1:], ends[:-1] ^ ends[1:]
    middle = (np.where(finite, loss[:-1], 0.0) + np.where(finite, loss[1:], 0.0)) / 2
    ahead, back = (
        part.profile(np.maximum(side * middle, 0.0))
        for side, part in ((1, piece(loss, p, q)), (-1, piece(-loss, q, p)))
    )
    high, low = np.where(middle >= 0, ahead.upper, back.upper), np.where(middle >= 0, ahead.lower, back.lower)
    gap = np.where(finite, (high - low) / (GAP * (high + 1e-13)), 1e4 * half)
    return np.where(mass > 1e-20, np.maximum(gap, rough), 0.0)


def check_monotone(x: Floats, loss: Floats) -> None:
    """Rising or falling, up to rounding."""
    with np.errstate(invalid="ignore"):
        step = np.diff(loss) * (1 if loss[-1] >= loss[0] else -1)
        turn = np.isnan(loss[1:]) | np.isnan(loss[:-1]) | (step < -1e-9 * (1 + np.abs(loss[1:])))
    if turn.any():
        i = int(np.argmax(turn))
        raise InvalidParameter(
            f"log p/q must rise or fall all the way between two turning points.\n"
            f"  found:  {loss[0]:.6g} at {x[0]:.6g}, {loss[i]:.6g} at {x[i]:.6g}, {loss[i + 1]:.6g} at {x[i + 1]:.6g}, "
            f"{loss[-1]:.6g} at {x[-1]:.6g}\n  do:     give the places where it turns as turning_points"
        )
