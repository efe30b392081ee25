"""Trade-off functions: the least type II error of any test with a given type I error, with certified sides.

f(a) = sup over x ≥ 0 of 1 − H_x − x·a, where x = e^t and H_x = 1 − x + x·δ'(−t) for t < 0. The function under the sup
is concave in x: any point bounds f from below, and chords continued beyond their ends bound it from above.
"""

import math
from typing import SupportsFloat

import numpy as np

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Enclosure, Floats, floats
from sfumato.loss.views.profile import WAYS, checked_array, checked_tolerance, epsilon, top_of

GRID = 257  # points of the first look at a whole curve
ROUNDS = 6  # of moving three points towards each maximum
FEW = 4  # values for which a lattice is laid around each maximum, and not along the whole curve
ROUGH, NEAR = 1e-2, 4  # relative gap of a first look, and how many of its points lie around a maximum on each side
NARROW = 1e-9  # a stretch of t on which the points of a grid, as e^t, would be the same float


def trade_off_curve(loss: PrivacyLoss, alpha: Floats, tolerance: float) -> Enclosure:
    """f at many type I errors at once.

    One evaluation of the profile shows about where each maximum is; three close points then certify it: if the middle
    one is highest, concavity keeps the maximum between the outer two. The rest (ends, kinks of atomic laws) is searched
    one by one.
    """
    a = checked_array("alpha", alpha, 1.0, "numbers in [0, 1]")
    checked_tolerance(tolerance)
    lower, upper = np.zeros_like(a), np.ones_like(a)
    rest = (a > 0) & (a < 1)
    if rest.any():
        back, low, high = reach(loss, float(a[rest].min()))
        low, high = (
            max(low, -left_end(back, float(1 - a[rest].max()))),
            min(high, right_end(loss, float(a[rest].min()))),
        )
    if rest.any() and high - low > NARROW:
        t = np.linspace(low, high, GRID)
        sharp = max(tolerance / 20, 1e-10)
        if loss.method == "lattice" and rest.sum() <= FEW:
            t, sharp = closer(loss, back, t, a[rest], tolerance)
        centre, step = maxima(t, two_sided(loss, back, t, sharp).upper, a[rest], tolerance)
        for _ in range(ROUNDS):
            points = centre[:, None] + step[:, None] * np.array([-1.0, 0.0, 1.0])
            found = two_sided(loss, back, points.ravel(), sharp)
            worth = worths(points, a[rest, None], Enclosure(*(side.reshape(points.shape) for side in found)))
            best, roof = highest(points, worth)
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
    rest |= (a <= 0) | (a >= 1)
    lower[rest], upper[rest] = one_by_one(loss, a[rest], tolerance)
    return Enclosure(lower, upper)


def closer(loss: PrivacyLoss, back: PrivacyLoss, t: Floats, a: Floats, tolerance: float) -> tuple[Floats, float]:
    """Points around the maxima, from a rough look at all of them, and how sharp the profile must be there: a lattice
    serves only its neighbourhood, so that a sharp look at everything would take dozens of them.

    H is subtracted from 1 − xa: the smaller it is, the less sharply it must be known. This only steers the search.
    """
    rough = two_sided(loss, back, t, ROUGH).upper
    best = (gains(t, a[:, None]) - rough).argmax(axis=1)
    near = np.unique(np.clip(best[:, None] + np.arange(-NEAR, NEAR + 1), 0, len(t) - 1))
    value = np.maximum((gains(t, a[:, None]) - rough).max(axis=1), 1e-12)
    return t[near], max(tolerance / 200 * max(1.0, float((value / np.maximum(rough[best], 1e-12)).min())), 1e-10)


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


def highest(t: Floats, worth: Enclosure) -> tuple[Floats, Floats]:
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


def one_by_one(loss: PrivacyLoss, alpha: Floats, tolerance: float) -> Enclosure:
    """f at each type I error on its own."""
    found = [search(loss, a, tolerance) for a in alpha.tolist()]
    return Enclosure(floats([bound.lower for bound in found]), floats([bound.upper for bound in found]))


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


def reach(loss: PrivacyLoss, alpha: float) -> tuple[PrivacyLoss, float, float]:
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
    """f at one type I error. Closed forms cost nothing, so they are searched to the last digit; for compositions it is
    a curve of one point, so that one value takes no longer than many."""
    a = checks.probability("alpha", alpha)
    if loss.method == "closed form":
        checked_tolerance(tolerance)
        return search(loss, a, tolerance)
    found = trade_off_curve(loss, np.array([a]), tolerance)
    return Bound(float(found.lower[0]), float(found.upper[0]), loss.method, "lower")


def search(loss: PrivacyLoss, a: float, tolerance: float) -> Bound:
    """f at one type I error: cells that cannot hold the maximum are dropped and the rest is cut finer.

    On each cell the chords of the cells next door, continued, bound the function from above.
    """
    back, low, high = reach(loss, a)
    best, roof, sharp = 0.0, 1.0 - a, max(tolerance, 0.02 if loss.method != "closed form" else 0.0)
    for _ in range(80):
        t = np.linspace(low, high, WAYS)
        found = two_sided(loss, back, t, sharp)
        worth = worths(t, a, found)
        best = max(best, float(worth.lower.max()))
        roofs = ceilings(t, *worth)
        roof = min(roof, max(best, float(roofs.max())))
        cells = np.flatnonzero(roofs > best)
        done = not len(cells) or roof - best <= 1e-15 or high - low <= 1e-13
        if not done:
            narrower = float(t[cells[0]]), float(t[cells[-1] + 1])
            done = narrower == (low, high)
            low, high = narrower
        if done and sharp == tolerance:
            break
        if done or high - low < 0.05:
            sharp = tolerance
    return Bound(best * (1 - 8 * ULP), min(max(roof * (1 + 8 * ULP), best), 1.0), loss.method, "lower")


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
    if not np.all(width > 0):  # the bracket is a point, as far as floats can tell
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
