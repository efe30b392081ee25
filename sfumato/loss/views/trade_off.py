"""Trade-off functions: the least type II error of any test with a given type I error, with certified sides.

f(a) = sup over x ≥ 0 of 1 − H_x − x·a, where x = e^t and H_x = 1 − x + x·δ'(−t) for t < 0. The function under the sup
is concave in x: any point bounds f from below, and chords continued beyond their ends bound it from above.
"""

import math
from typing import NamedTuple, SupportsFloat

import numpy as np

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Enclosure, Floats, floats
from sfumato.loss.views.profile import (
    WAYS,
    Curve,
    checked_array,
    checked_tolerance,
    epsilon,
    least_leak,
    most_leak,
    top_of,
    worst_near,
)

GRID = 257  # points of the first look at a whole curve
ROUNDS = 6  # of moving three points towards each maximum
FEW, FEW_COMPOSED = 4, 8  # values for which laws are laid around each maximum, and not along the whole curve
LOOKS = 8  # laws, each laid where the one before shows the maximum
ROUGH, SHARPEST = 1e-2, 1e-10  # relative gaps of a first and a last look
NEAR = 0.1  # a maximum that moved by less is where it was looked for
CLOSE = 1e-3  # relative gap that laws around the maximum may leave on a lattice; more, and all of it is looked at
NARROW = 1e-9  # a stretch of t on which the points of a grid, as e^t, would be the same float


def trade_off_curve(loss: PrivacyLoss, alpha: Floats, tolerance: float) -> Enclosure:
    """f at many type I errors: together where that is sharp enough, else one by one (ends, kinks of atomic laws)."""
    a = checked_array("alpha", alpha, 1.0, "numbers in [0, 1]")
    checked_tolerance(tolerance)
    lower, upper = np.zeros_like(a), np.ones_like(a)
    inside = (a > 0) & (a < 1)
    if inside.sum() > (FEW if loss.method == "closed form" else FEW_COMPOSED):
        lower[inside], upper[inside] = all_at_once(loss, a[inside], tolerance)
    rest = upper - lower > tolerance * upper
    found = [at_one(loss, value, tolerance) for value in a[rest].tolist()]
    lower[rest] = np.maximum(lower[rest], [bound.lower for bound in found])
    upper[rest] = np.minimum(upper[rest], [bound.upper for bound in found])
    return Enclosure(lower, upper)


def all_at_once(loss: PrivacyLoss, a: Floats, tolerance: float) -> Enclosure:
    """f at many type I errors in (0, 1).

    One evaluation of the profile shows about where each maximum is; three close points then certify it: if the middle
    one is highest, concavity keeps the maximum between the outer two.
    """
    lower, upper, rest = np.zeros_like(a), np.ones_like(a), np.ones(len(a), dtype=bool)
    back, low, high = stretch_of_t(loss, float(a.min()))
    low, high = max(low, -left_end(back, float(1 - a.max()))), min(high, right_end(loss, float(a.min())))
    if high - low <= NARROW:
        return Enclosure(lower, upper)
    t = np.linspace(low, high, GRID)
    sharp = max(tolerance / 20, SHARPEST)
    centre, step = maxima(t, two_sided(loss, back, t, sharp).upper, a, tolerance)
    for _ in range(ROUNDS):
        points = centre[:, None] + step[:, None] * np.array([-1.0, 0.0, 1.0])
        found = two_sided(loss, back, points.ravel(), sharp)
        worth = worths(points, a[rest, None], Enclosure(*(side.reshape(points.shape) for side in found)))
        best, roof = best_of_three(points, worth)
        lower[rest], upper[rest] = np.maximum(best, lower[rest]), np.minimum(roof, upper[rest])
        open_ = roof - best > tolerance * roof
        vertex = parabola(worth.lower, step)
        there = centre + np.clip(vertex, -4 * step, 4 * step)
        kink = np.zeros(len(centre), dtype=bool)
        for place in (low, 0.0, high):  # the ends of the loss, and where the worse direction changes
            crossed = ((there - place) * (centre - place) <= 0) & (vertex != 0)
            kink, there = kink | crossed, np.where(crossed, place, there)
        step = np.where((np.abs(vertex) > step / 2) & ~kink, step, step / 4)[open_]
        centre = there[open_]
        rest[rest] = open_
        if not rest.any():
            break
    return Enclosure(lower, upper)


def right_end(loss: PrivacyLoss, a: float) -> float:
    """No maximum lies right of this.

    H is convex in x = e^t, so |H′| at e^t is at most δ(t − w)/(e^t − e^{t−w}), and less than a if δ(t − w) is at most
    a·(1 − e^{−w}), for any w. Profiles farther out are hard to tell, so w is as small as the loss.
    """
    w = width(loss, a)
    return epsilon(loss, -math.expm1(-w) * a * 0.99, 1e-2).upper + w


def left_end(back: PrivacyLoss, rest: float) -> float:
    """No maximum lies at −t for t beyond this: δ'(t − w) ≥ Q[L < −t]·(1 − e^{−w}), and Q[L < −t] is `rest` there."""
    w = width(back, rest)
    return epsilon(back, -math.expm1(-w) * rest * 0.99, 1e-2).upper + w


def width(loss: PrivacyLoss, share: float) -> float:
    """About how large the loss is, at most 1: ε where δ is a quarter of `share`, or what total variation says."""
    found = epsilon(loss, share / 4, 1e-2).upper
    return min(1.0, max(found or loss.delta(0.0, tolerance=1e-2).upper / share, 1e-12))


def best_of_three(t: Floats, worth: Enclosure) -> tuple[Floats, Floats]:
    """The best of three points, and a roof over all t: 1 unless the middle point is certainly the highest.

    From the middle to an outer point, the chord of the other side, continued in x = e^t, lies above.
    """
    middle = worth.upper[:, 1]
    before, after = np.diff(t, axis=1).T
    inside = (worth.lower[:, 1] >= worth.upper[:, 0]) & (worth.lower[:, 1] >= worth.upper[:, 2])
    inside &= (before > 0) & (after > 0)
    ratio = np.exp(before) * np.expm1(after) / np.maximum(np.expm1(before), 1e-300)  # of the two stretches of x
    ratio = np.where(inside, ratio, 1.0)
    left = middle + (middle - worth.lower[:, 2]) / ratio * (1 + 64 * ULP)
    right = middle + (middle - worth.lower[:, 0]) * ratio * (1 + 64 * ULP)
    roof = np.where(inside, np.maximum(left, right), 1.0)
    return floats(worth.lower.max(axis=1)), floats(np.clip(roof, 0.0, 1.0))


def parabola(values: Floats, step: Floats) -> Floats:
    """The vertex of the parabola through three points, measured from the middle."""
    bend = values[:, 0] - 2 * values[:, 1] + values[:, 2]
    slope = (values[:, 2] - values[:, 0]) / 2
    return floats(np.where(bend < 0, -slope / np.minimum(bend, -1e-300), 4 * np.sign(slope)) * step)


def maxima(t: Floats, h: Floats, a: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """About where 1 − H_x − xa is largest (H has the slope Q[L > t] = a there), and a step over which it hardly bends.

    The chord from x to y has the slope of H near (x + y)/2.
    """
    full = h - np.minimum(np.expm1(t), 0.0)
    x = np.exp(t)
    slope = np.minimum.accumulate(np.clip(-np.diff(full) / np.diff(x), 1e-300, 1 - 1e-16))
    middle = np.log((x[1:] + x[:-1]) / 2)
    keep = np.append(np.diff(slope) < 0, True)
    middle, slope = middle[keep], slope[keep]
    centre = np.interp(-np.log(a) + np.log1p(-a), -np.log(slope) + np.log1p(-slope), middle)
    bend = np.exp(middle) * np.abs(np.gradient(slope, middle)) if len(middle) > 1 else np.ones(1)
    value = np.maximum((gains(t, a[:, None]) - h).max(axis=1), 1e-12)
    step = np.sqrt(tolerance * value / (4 * np.interp(centre, middle, bend) + 1e-12))
    return floats(centre), floats(np.minimum(step, (t[-1] - t[0]) / GRID))


def stretch_of_t(loss: PrivacyLoss, alpha: float) -> tuple[PrivacyLoss, float, float]:
    """The loss for negative t, and the stretch of t that matters."""
    back = loss.reverse if loss.relation.one_way else loss
    return back, -min(top_of(back), 700.0), min(top_of(loss), -math.log(alpha) if alpha > 0 else math.inf, 700.0)


def worths(t: Floats, a: Floats | float, h: Enclosure) -> Enclosure:
    """1 − H_x − xa from both sides; its parts are at most about min(1, x), and so is their rounding."""
    gain, slip = gains(t, a), 16 * ULP * np.exp(np.minimum(t, 0.0))
    return Enclosure(gain - h.upper - slip, gain - h.lower + slip)


def gains(t: Floats, a: Floats | float) -> Floats:
    """1 − x·a without what H holds of 1 − x for t < 0."""
    return floats(np.where(t < 0, np.exp(np.minimum(t, 0.0)) * (1 - a), 1 - np.exp(np.maximum(t, 0.0)) * a))


def trade_off(loss: PrivacyLoss, alpha: SupportsFloat, tolerance: float) -> Bound:
    """f at one type I error."""
    a = checks.probability("alpha", alpha)
    checked_tolerance(tolerance)
    return at_one(loss, a, tolerance)


def at_one(loss: PrivacyLoss, a: float, tolerance: float) -> Bound:
    """f at one type I error. Without errors of type I only certainty decides; closed forms cost nothing, so they are
    searched to the last digit."""
    if a in (0.0, 1.0):
        low, high = (1 - most_leak(loss)) * (1 - 2 * ULP), min((1 - least_leak(loss)) * (1 + 2 * ULP), 1.0)
        return Bound(low * (1 - a), high * (1 - a), loss.method, "lower")
    back, low, high = stretch_of_t(loss, a)
    closed = loss.method == "closed form"
    nearby = Bound(0.0, 1.0, loss.method, "lower") if closed else search_nearby(loss, a, tolerance)
    if nearby.gap <= max(tolerance, CLOSE * (loss.method == "lattice")) * nearby.upper or not (closed or loss.one_pair):
        return nearby  # the profile of a class of mechanisms is never sharp from below
    whole = search(lambda t: two_sided(loss, back, t, tolerance), a, low, high, 0.0 if closed else tolerance / 4)
    found = whole.bound(loss.method)
    return Bound(max(nearby.lower, found.lower), min(nearby.upper, found.upper), loss.method, "lower")


def search_nearby(loss: PrivacyLoss, a: float, tolerance: float) -> Bound:
    """f at one type I error of a composition, from laws around the maximum, each sharper than the one before.

    What is known around one ε (`near`) holds everywhere and is loose far away: it shows where to look next.
    """
    back, low, high = stretch_of_t(loss, a)
    best, eps, delta, sharp = Bound(0.0, 1.0, loss.method, "lower"), None, a / 4, ROUGH
    for _ in range(LOOKS):
        curve = around(loss, back, delta, eps, sharp)
        found = search(curve, a, low, high, tolerance / 4)
        bound, before = found.bound(loss.method), best.gap
        best = Bound(max(best.lower, bound.lower), min(best.upper, bound.upper), loss.method, "lower")
        near = eps is not None and abs(abs(found.place) - eps) <= NEAR * max(eps, abs(found.place))
        if best.gap <= tolerance * best.upper or (near and best.gap > 0.9 * before):
            break
        eps = abs(found.place)
        delta = float(np.clip(curve(np.array([found.place])).upper[0], 1e-290, 1.0))
        # H is subtracted from 1 − xa: the smaller it is, the less sharply it must be known
        wanted = tolerance / 8 * best.lower / delta
        sharp = min(max(wanted if sharp > wanted else sharp / 8, SHARPEST), ROUGH)
    return best


def around(loss: PrivacyLoss, back: PrivacyLoss, delta: float, eps: float | None, tolerance: float) -> Curve:
    """As two_sided, but sharp only around one ε."""
    ahead = worst_near(loss, delta, eps, tolerance)
    behind = ahead if back is loss else worst_near(back, delta, eps, tolerance)

    def curve(t: Floats) -> Enclosure:
        low, high = np.empty_like(t), np.empty_like(t)
        for side, profile in ((t >= 0, ahead), (t < 0, behind)):
            if side.any():
                found, factor = profile(np.abs(t[side])), np.exp(np.minimum(t[side], 0.0))
                low[side], high[side] = factor * found.lower, factor * found.upper
        return Enclosure(low, high)

    return curve


class Found(NamedTuple):
    """The largest value that is certain, an upper bound of all values, and where the former is."""

    best: float
    roof: float
    place: float

    def bound(self, method: str) -> Bound:
        best = self.best * (1 - 8 * ULP)
        return Bound(best, min(max(self.roof * (1 + 8 * ULP), best), 1.0), method, "lower")


def search(curve: Curve, a: float, low: float, high: float, enough: float) -> Found:
    """The maximum of 1 − H − xa: cells that cannot hold it are dropped and the rest is cut finer, until the relative
    gap is `enough`.

    The function is concave: beyond a point that is certainly lower than the best one it is lower still. On the cells
    between, the chords of the cells next door, continued, bound it from above.
    """
    best, roof, place = 0.0, 1.0 - a, 0.0
    for _ in range(80):
        t = np.linspace(low, high, WAYS)
        worth = worths(t, a, curve(t))
        if worth.lower.max() > best:
            best, place = float(worth.lower.max()), float(t[worth.lower.argmax()])
        lower = (worth.upper <= best) & (best > 0)  # what underflows is not lower
        first = int(np.flatnonzero(lower & (t < place))[-1:].sum())
        last = int(np.append(np.flatnonzero(lower & (t > place)), WAYS - 1)[0])
        roofs = ceilings(t, *worth)[first:last]
        roof = min(roof, max(best, float(roofs.max(initial=0.0))))
        cells = first + np.flatnonzero(roofs > best)
        if not len(cells) or roof - best <= max(enough * roof, 1e-15) or high - low <= 1e-13:
            break
        narrower = float(t[cells[0]]), float(t[cells[-1] + 1])
        if narrower == (low, high):
            break
        low, high = narrower
    return Found(best, roof, place)


def two_sided(loss: PrivacyLoss, back: PrivacyLoss, t: Floats, tolerance: float) -> Enclosure:
    """δ(t) for t ≥ 0 and e^t·δ'(−t) for t < 0: the part of H that is not already in 1 − e^t."""
    low, high = np.empty_like(t), np.empty_like(t)
    for side, pair, factor in ((t >= 0, loss, 0 * t), (t < 0, back, t)):
        if side.any():
            found = pair.worst(np.abs(t[side]), tolerance)
            low[side], high[side] = np.exp(factor[side]) * found.lower, np.exp(factor[side]) * found.upper
    return Enclosure(low, high)


def ceilings(t: Floats, low: Floats, high: Floats) -> Floats:
    """Upper bounds of a function that is concave in x = e^t on each cell, given enclosures of it at the points.

    The line through the lower value of the point before and the upper value of the left end, continued, lies above it;
    so does the one from the right. With y in [0, 1] across the cell: left + p·y and right + q·(1 − y).
    """
    width = np.expm1(np.diff(t))
    if not np.all(width > 0):  # the ends of the bracket are the same float
        return np.full(len(t) - 1, high.max())
    left, right = high[:-1], high[1:]
    p = np.full(len(width), 1e300)
    q = np.full(len(width), 1e300)
    p[1:] = np.maximum((high[1:-1] - low[:-2]) * np.exp(t[1:-1] - t[:-2]) * width[1:] / width[:-1], 0.0)
    q[:-1] = np.maximum((high[1:-1] - low[2:]) * np.exp(t[:-2] - t[1:-1]) * width[:-1] / width[1:], 0.0)
    y = np.clip((right - left + q) / np.maximum(p + q, 1e-300), 0.0, 1.0)  # where the two lines meet
    meeting = np.maximum(left + np.where(p < 1e300, p, 0.0) * y, right + np.where(q < 1e300, q, 0.0) * (1 - y))
    meeting = np.where((p < 1e300) | (q < 1e300), meeting, 1.0)
    return np.maximum(meeting, np.maximum(left, right))
