"""δ(ε), ε(δ) and trade-off, read off the profile with certified sides.

The profile is non-increasing, so an ε with δ(ε) certified ≤ target bounds ε(target) from above, and one with δ(ε)
certified > target from below: the search needs no proof, only the last evaluation counts.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, SupportsFloat

import numpy as np
import numpy.typing as npt

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.bound import Bound, worst
from sfumato.loss.divergences import least_top
from sfumato.loss.numeric import ULP, Enclosure, Floats

if TYPE_CHECKING:
    from sfumato.loss.base import PrivacyLoss

Curve = Callable[[Floats], Enclosure]
Flags = npt.NDArray[np.bool_]
WAYS = 17  # points per round of the search


def checked_tolerance(tolerance: float) -> float:
    """A relative gap between 1e-12 and 0.5."""
    return checks.number("tolerance", tolerance, 1e-12, 0.5, allowed="a relative gap between 1e-12 and 0.5, e.g. 1e-6")


def profile(loss: "PrivacyLoss", eps: Floats, tolerance: float) -> Enclosure:
    """δ at many ε ≥ 0 at once."""
    try:
        if np.asarray(eps).dtype.kind not in "fiuO":
            raise TypeError("not real numbers")
        eps = np.asarray(eps, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise InvalidParameter(
            "epsilon must be one number or an array of them.\n  do:     give numbers ≥ 0"
        ) from problem
    if not np.all(eps >= 0):
        raise InvalidParameter(
            "every epsilon must be ≥ 0.\n  found:  a negative number or NaN in the array\n  do:     give numbers ≥ 0"
        )
    checked_tolerance(tolerance)
    finite = np.isfinite(eps)
    leak = most_leak(loss)
    low, high = np.zeros_like(eps), np.full_like(eps, leak)
    low[~finite] = least_leak(loss)
    if finite.any():
        found = loss.worst(eps[finite], tolerance)
        low[finite], high[finite] = found.lower, found.upper
    return Enclosure(low, high)


def most_leak(loss: "PrivacyLoss") -> float:
    """δ(∞), never below the truth."""
    ahead, back = loss.leak()
    return ahead if loss.relation.one_way else max(ahead, back)


def least_leak(loss: "PrivacyLoss") -> float:
    """δ(∞) from below."""
    return most_leak(loss) * (1 - 16 * ULP) if loss.sharp_ends else 0.0


def top_of(loss: "PrivacyLoss") -> float:
    """The largest finite loss in the directions that count."""
    ahead, back = loss.supremum()
    return ahead if loss.relation.one_way else max(ahead, back)


def delta(loss: "PrivacyLoss", epsilon: SupportsFloat, tolerance: float) -> Bound:
    """δ at one ε."""
    eps = checks.extended("epsilon", epsilon)
    found = profile(loss, np.array([eps]), tolerance)
    return Bound(float(found.lower[0]), float(found.upper[0]), loss.method)


def epsilon(loss: "PrivacyLoss", target: SupportsFloat, tolerance: float) -> Bound:
    """Least ε with δ(ε) ≤ target, in the worse direction."""
    goal = checks.probability("delta", target)
    checked_tolerance(tolerance)
    ahead = epsilon_one_way(loss, goal, tolerance)
    return (
        ahead
        if loss.relation.one_way or loss.reverse == loss
        else worst(ahead, epsilon_one_way(loss.reverse, goal, tolerance))
    )


def epsilon_one_way(loss: "PrivacyLoss", goal: float, tolerance: float) -> Bound:
    """Least ε with H_{e^ε}(P‖Q) ≤ goal.

    A composed profile is first looked at roughly: the slope there says how sharp δ must be for ε to be sharp.
    """
    top, leak = loss.supremum()[0], loss.leak()[0]
    if loss.sharp_ends and goal < leak * (1 - 16 * ULP):
        return Bound(math.inf, math.inf, loss.method)
    if goal == 0 and leak == 0:
        return Bound(least_top(loss), top, loss.method)
    if goal < leak:
        return Bound(0.0, math.inf, loss.method)
    if goal < 1e-290 and loss.method != "closed form":  # below what engines resolve: between a larger δ's ε and the top
        return Bound(epsilon_one_way(loss, 1e-290, tolerance).lower, top, loss.method)
    if loss.method == "closed form":
        return Bound(*crossing(loss.near(goal, tolerance), goal, top), loss.method)
    sharp, best = 0.02, (0.0, math.inf)
    for _ in range(6):
        guess = best[1] if math.isfinite(best[1]) else None
        low, high = crossing(loss.near(goal, sharp, guess), goal, top, best, fine=1e-3 * tolerance)
        before, best = best[1] - best[0], (max(low, best[0]), min(high, best[1]))
        gap, goal_gap = best[1] - best[0], tolerance * best[1]
        if gap <= goal_gap or gap > 0.7 * before or math.isinf(gap):
            break
        sharp = max(1e-12, sharp * min(0.5, 0.7 * goal_gap / gap))  # the gap is proportional to what was asked of δ
    return Bound(*best, loss.method)


def crossing(
    curve: Curve, goal: float, top: float, known: tuple[float, float] = (0.0, math.inf), fine: float = 4 * ULP
) -> tuple[float, float]:
    """(largest ε found with δ certified > goal, least ε found with δ certified ≤ goal)."""
    low, high = known[0], min(top, known[1] * 1.01 if math.isfinite(known[1]) else 1.0)
    if curve(np.array([0.0])).upper[0] <= goal:
        return 0.0, 0.0
    while high < top and curve(np.array([high])).upper[0] > goal:
        if high > 1e300:
            return low, math.inf
        high = min(2 * high, top)
    upper = narrowed(curve, lambda found: found.upper <= goal, low, high, fine)[1]
    # a curve that is sharp only near the goal knows nothing far below it: step back from the upper side
    back = upper * (1 - 2.0 ** -np.arange(52.0, -1.0, -1.0))
    above = np.flatnonzero(curve(back).lower > goal)
    if not len(above):
        return low, upper
    first = int(above[0])
    after = float(back[first - 1]) if first else upper
    return max(low, narrowed(curve, lambda found: found.lower <= goal, float(back[first]), after, fine)[0]), upper


def narrowed(
    curve: Curve, done: Callable[[Enclosure], Flags], low: float, high: float, fine: float
) -> tuple[float, float]:
    """Shrink [low, high] around the first point where `done` holds (it holds at high) to relative width `fine`."""
    while high - low > fine * high and high > 1e-300:
        points = np.linspace(low, high, WAYS)
        if low == 0 and high > 0:  # a root near 0 is found by magnitude first
            points = np.concatenate([[0.0], high * 2.0 ** np.arange(-16, 1.0)])
        hit = done(curve(points))
        hit[-1] = True
        index = int(np.argmax(hit))
        if index == 0:
            return low, float(points[0])
        before, after = float(points[index - 1]), float(points[index])
        if (before, after) == (low, high):
            break
        low, high = before, after
    return low, high


def trade_off(loss: "PrivacyLoss", alpha: SupportsFloat, tolerance: float) -> Bound:
    """f(a) = sup over x ≥ 0 of 1 − H_x − x·a, where x = e^t and H_x = 1 − x + x·δ'(−t) for t < 0.

    The function is concave in x. Any point gives a lower bound. On each cell the chords of the cells next door,
    continued, bound it from above; cells that cannot hold the maximum are dropped and the rest is cut finer.
    """
    a = checks.probability("alpha", alpha)
    checked_tolerance(tolerance)
    back = loss.reverse if loss.relation.one_way else loss
    low, high = -min(top_of(back), 700.0), min(top_of(loss), -math.log(a) if a > 0 else math.inf, 700.0)
    best, roof, sharp = 0.0, 1.0 - a, max(tolerance, 0.02 if loss.method != "closed form" else 0.0)
    for _ in range(80):
        t = np.linspace(low, high, WAYS)
        found = two_sided(loss, back, t, sharp)
        stay = np.where(t < 0, np.exp(t) * (1 - a), 1 - np.exp(t) * a)
        best = max(best, float((stay - found.upper).max()))
        roofs = ceilings(t, stay - found.upper, stay - found.lower)
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


def two_sided(loss: "PrivacyLoss", back: "PrivacyLoss", t: Floats, tolerance: float) -> Enclosure:
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
