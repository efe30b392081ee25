"""Losses known by samples: certified values at nodes, what convexity says between them, and how nodes are chosen.

Beyond the last node a profile lies below its last value, which therefore counts as leak. Losses given by Python
functions become tables at construction: a table is plain data, a function is not.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsFloat

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import Enclosure, Floats, floats
from sfumato.loss.views import divergences
from sfumato.loss.views.convex_bounds import CAP, Side, both_sides, convex, monotone, unfold
from sfumato.loss.views.divergences import Curve, merge
from sfumato.progress import may_take_long
from sfumato.sensitivity import Relation


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

    def __repr__(self) -> str:
        """A short form: the nodes are counted, not listed. `to_json` has all of them."""
        ends = f"<{len(self.nodes)} nodes up to {self.nodes[-1]!r}>, leak={self.leak()!r}"
        return f"{type(self).__name__}({ends}, relation={self.relation!r})"


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


Function = Callable[[float], SupportsFloat] | Callable[[Floats], Floats]

BELIEF = 1e-12  # relative error of what a user's function returns


def evaluate_function(name: str, function: Function, points: Floats) -> Floats:
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


GAP = 1e-6  # relative gap asked of a table
MOST = 3000  # nodes of a table
FLOOR = 1e-18  # a profile below this has ended


def tabulate(ahead: Curve, back: Curve | None, end: float, relation: Relation, most: int = MOST) -> TabulatedLoss:
    """Two enclosed profiles as a table on [0, end]; without `back` both are the same."""
    return table(*choose_nodes(ahead, back, first_nodes(ahead, back, end), most), relation)


def table(nodes: Floats, ahead: Enclosure, back: Enclosure, relation: Relation) -> TabulatedLoss:
    """The loss with these values at the nodes, its upper side made convex."""
    ahead, back = monotone(ahead), monotone(back)
    t, upper = unfold((nodes, ahead.upper), (nodes, back.upper))
    middle = len(nodes) - 1
    upper[middle] = min(ahead.upper[0], back.upper[0])
    upper = convex(t, upper)
    ahead = monotone(Enclosure(ahead.lower, upper[middle:]))
    back = monotone(Enclosure(back.lower, upper[middle::-1]))
    columns = (ahead.upper, np.minimum(ahead.lower, ahead.upper), back.upper, np.minimum(back.lower, back.upper))
    return TabulatedLoss(tuple(nodes.tolist()), *(tuple(values.tolist()) for values in columns), relation=relation)


def profile_end(curve: Curve, floor: float = FLOOR) -> float:
    """Where the profile has ended, roughly: below the floor, or at what it never falls below."""

    def has_ended(eps: float) -> bool:
        here, last = curve(np.array([eps, CAP])).upper
        return bool(here <= max(floor, last * (1 + 1e-9)))

    low, high = 0.5, 1.0
    while high < CAP and not has_ended(high):
        low, high = high, min(2 * high, CAP)
    while low > 1e-12 and has_ended(low):
        low, high = low / 2, low
    for _ in range(5):
        middle = (low + high) / 2
        low, high = (low, middle) if has_ended(middle) else (middle, high)
    return high


def first_nodes(ahead: Curve, back: Curve | None, end: float) -> Floats:
    """Even cells; if there is leak, a node beyond the end, so that the last chord is as flat as the profile."""
    nodes = np.linspace(0.0, end, 65)
    leaks = any(curve(nodes[-2:]).lower[-1] > FLOOR for curve in (ahead, back) if curve)
    return np.append(nodes, end + 1) if leaks else nodes


def choose_nodes(
    ahead: Curve, back: Curve | None, nodes: Floats, most: int = MOST, gap: float = GAP
) -> tuple[Floats, Enclosure, Enclosure]:
    """Nodes halved where the gap is largest until it is small everywhere; if they do not suffice, spread evenly."""
    may_take_long()
    values = [ahead(nodes), (back or ahead)(nodes)]
    while True:
        first, second = both_sides(nodes, *map(monotone, values))
        excess = gaps(first, gap) if back is None else np.maximum(gaps(first, gap), gaps(second, gap))
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


def gaps(side: Side, gap: float = GAP) -> Floats:
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
        asked = gap * (1 + (np.log10(np.maximum(high, 1e-300)) / np.log10(FLOOR)) ** 2)
        size = (high - low) / np.maximum(asked * high + noise, 1e-300)
        worst = np.maximum(worst, np.where(width > 1e-13 * nodes[-1], size, 0.0))
    return worst
