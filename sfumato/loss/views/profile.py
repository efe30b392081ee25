"""δ(ε) and ε(δ), read off the profile with certified sides.

The profile is non-increasing, so an ε with δ(ε) certified ≤ target bounds ε(target) from above, and one with δ(ε)
certified > target from below. So the search itself needs no proof: only its last evaluations count.
"""

import math
from collections.abc import Callable
from typing import SupportsFloat

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound, worst
from sfumato.loss.compose.facts import Composite, facts
from sfumato.loss.numeric import ULP, Enclosure, Floats, maximum

Curve = Callable[[Floats], Enclosure]
Side = Callable[[Floats], Floats]
WAYS = 17  # points per round of the search
ROUGH, ROUGHEST = 0.1, 0.5  # relative gaps of the other direction in a first look, and where it does not count


def checked_tolerance(tolerance: float) -> float:
    """A relative gap between 1e-12 and 0.5."""
    return checks.number("tolerance", tolerance, 1e-12, 0.5, allowed="a relative gap between 1e-12 and 0.5, e.g. 1e-6")


def checked_array(name: str, values: object, high: float, allowed: str) -> Floats:
    """An array of numbers from 0 to `high`, from a user."""
    try:
        if np.asarray(values).dtype.kind not in "fiuO":
            raise TypeError("not real numbers")
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise InvalidParameter(f"{name} must be one number or an array of them.\n  do:     give {allowed}") from problem
    if not np.all((found >= 0) & (found <= high)):
        raise InvalidParameter(
            f"every {name} must be in range.\n  found:  NaN, or a number out of range, in the array\n"
            f"  do:     give {allowed}"
        )
    return found


def profile(loss: PrivacyLoss, eps: Floats, tolerance: float) -> Enclosure:
    """δ at many ε ≥ 0 at once."""
    eps = checked_array("epsilon", eps, math.inf, "numbers ≥ 0")
    checked_tolerance(tolerance)
    finite = np.isfinite(eps)
    leak = most_leak(loss)
    low, high = np.zeros_like(eps), np.full_like(eps, leak)
    low[~finite] = least_leak(loss)
    if finite.any():
        found = loss.worst(eps[finite], tolerance)
        low[finite], high[finite] = found.lower, found.upper
    if isinstance(loss, Composite) and (least := facts(loss).attained) is not loss:
        return Enclosure(np.minimum(profile(least, eps, tolerance).lower, high), high)
    return Enclosure(low, high)


def worst_near(loss: PrivacyLoss, delta: float, eps: float | None, tolerance: float) -> Curve:
    """The worse direction, sharp around one ε; one that is certainly not the worse there is known roughly."""
    ahead = loss.near(delta, tolerance, eps)
    if loss.relation.one_way or loss.reverse == loss:
        return ahead
    if eps is None:
        other = loss.reverse.near(delta, max(tolerance, ROUGH))
        return lambda t: maximum(ahead(t), other(t))
    other = loss.reverse.near(delta, max(tolerance, ROUGHEST))  # where it is as large: at ε itself it may have ended
    if other(np.array([eps])).upper[0] > ahead(np.array([eps])).lower[0]:
        other = loss.reverse.near(delta, tolerance, eps)
    return lambda t: maximum(ahead(t), other(t))


def most_leak(loss: PrivacyLoss) -> float:
    """δ(∞), never below the truth."""
    ahead, back = loss.leak()
    return ahead if loss.relation.one_way else max(ahead, back)


def least_leak(loss: PrivacyLoss) -> float:
    """δ(∞) from below."""
    return most_leak(loss) * (1 - 16 * ULP) if loss.sharp_ends else 0.0


def top_of(loss: PrivacyLoss) -> float:
    """The largest finite loss in the directions that count."""
    ahead, back = loss.supremum()
    return ahead if loss.relation.one_way else max(ahead, back)


def delta(loss: PrivacyLoss, epsilon: SupportsFloat, tolerance: float) -> Bound:
    """δ at one ε."""
    eps = checks.extended_number("epsilon", epsilon)
    found = profile(loss, np.array([eps]), tolerance)
    return Bound(float(found.lower[0]), float(found.upper[0]), loss.method)


def epsilon(loss: PrivacyLoss, target: SupportsFloat, tolerance: float) -> Bound:
    """Least ε with δ(ε) ≤ target, in the worse direction."""
    goal = checks.probability("delta", target)
    checked_tolerance(tolerance)
    found, back = epsilon_one_way(loss, goal, tolerance), loss if loss.relation.one_way else facts(loss).reverse
    worse = back != loss and (facts(back).leak[0] > goal or facts(back).supremum[0] > found.lower)
    if worse and 0 < found.lower < math.inf:  # the other direction is looked at roughly: mostly it is not the worse one
        if (rough := back.least(goal, ROUGH)) is not None:
            worse = rough.upper > found.lower
        else:
            worse = bool(back.near(goal, ROUGHEST, found.lower)(np.array([found.lower])).upper[0] > goal)
    if worse:
        found = worst(found, epsilon_one_way(back, goal, tolerance))
    if isinstance(loss, Composite) and (least := facts(loss).attained) is not loss:
        return Bound(min(epsilon(least, goal, tolerance).lower, found.upper), found.upper, found.method)
    return found


def epsilon_one_way(loss: PrivacyLoss, goal: float, tolerance: float) -> Bound:
    """Least ε with H_{e^ε}(P‖Q) ≤ goal.

    A composed profile is first looked at roughly: the slope there says how sharp δ must be for ε to be sharp.
    """
    known = facts(loss)
    top, leak = known.supremum[0], known.leak[0]
    if known.sharp_ends and goal < leak * (1 - 16 * ULP):
        return Bound(math.inf, math.inf, loss.method)
    if goal == 0 and leak == 0:
        return Bound(least_top(loss), top, loss.method)
    if goal < leak:
        return Bound(0.0, math.inf, loss.method)
    if goal < 1e-290 and loss.method != "closed form":  # below what engines resolve: between a larger δ's ε and the top
        return Bound(epsilon_one_way(loss, 1e-290, tolerance).lower, top, loss.method)
    if (found := loss.least(goal, tolerance)) is not None:
        return found
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


def least_top(loss: PrivacyLoss) -> float:
    """The largest finite loss from below: where the profile is certainly still positive, term by term."""
    if isinstance(loss, Composite):
        return math.fsum(count * least_top(term) for count, term in loss.terms) * (1 - 4 * ULP)
    top = loss.supremum()[0]
    if not loss.sharp_ends or not math.isfinite(top):
        return top if loss.sharp_ends else 0.0
    return crossing(lambda t: loss.forward(t), 0.0, top)[0]


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
    upper = narrow(lambda t: curve(t).upper, goal, low, high, fine)[1]
    # a curve that is sharp only near the goal knows nothing far below it: step back from the upper side
    back = upper * (1 - 2.0 ** -np.arange(52.0, -1.0, -1.0))
    above = np.flatnonzero(curve(back).lower > goal)
    if not len(above):
        return low, upper
    first = int(above[0])
    after = float(back[first - 1]) if first else upper
    return max(low, narrow(lambda t: curve(t).lower, goal, float(back[first]), after, fine)[0]), upper


def narrow(side: Side, goal: float, low: float, high: float, fine: float) -> tuple[float, float]:
    """Shrink [low, high] around the first point with side ≤ goal (as it is at high) to relative width `fine`.

    The first rounds cut evenly, or by magnitude if the root may be near 0; the later ones around the point where the
    chord of the logarithm meets the goal.
    """
    guess = math.nan
    while high - low > fine * high and high > 1e-300:
        if low == 0:
            points = np.concatenate([[0.0], high * 2.0 ** np.arange(-16, 1.0)])
        elif low < guess < high:
            steps = (high - low) * 16.0 ** np.arange(-8.0, 0.0)
            points = np.unique(np.clip(np.concatenate([guess - steps, guess + steps, [low, high]]), low, high))
        else:
            points = np.linspace(low, high, WAYS)
        values = side(points)
        hit = values <= goal
        hit[-1] = True
        index = int(np.argmax(hit))
        if index == 0:
            return low, float(points[0])
        before, after = float(points[index - 1]), float(points[index])
        if (before, after) == (low, high):
            break
        quick = after - before < (high - low) / 4  # else the next round cuts evenly
        low, high = before, after
        guess = meeting(low, high, float(values[index - 1]), float(values[index]), goal) if quick else math.nan
    return low, high


def meeting(low: float, high: float, at_low: float, at_high: float, goal: float) -> float:
    """Where the chord of the logarithm between two points meets the goal; NaN if there is none."""
    if not at_low > goal >= at_high > 0:
        return math.nan
    return low + (high - low) * math.log(at_low / goal) / math.log(at_low / at_high)
