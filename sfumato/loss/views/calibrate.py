"""The parameter that just meets a target: how much noise, how many steps, how large a rate.

A family maps a parameter p > 0 to a loss. Only two kinds of evaluation count in the answer: δ(ε) certified ≤ the target
(the parameter that is returned) and δ(ε) certified > the target (the other side). How they were found needs no proof.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NoReturn, Protocol

from sfumato import checks
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.loss.bound import Bound
from sfumato.progress import with_progress

REACH = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # the search looks at start·2^±these


class Priced(Protocol):
    """The values of a family: a loss, or anything else with a profile."""

    def delta(self, epsilon: float, /, *, tolerance: float = ...) -> Bound:
        """Enclosure of δ(ε), its relative gap about `tolerance`."""


@with_progress("calibrating")
def calibrate(
    family: Callable[[float], Priced],
    *,
    epsilon: float,
    delta: float,
    low: float | None = None,
    high: float | None = None,
    integer: bool = False,
    tolerance: float = 1e-6,
) -> Bound:
    """The parameter nearest to the target (ε, δ) whose loss is certified to meet it.

    `float()` of the answer meets the target; its other side is a parameter certified not to (0 or infinity if none was
    found). Noise scales, where more means less loss, are rounded up (safe = "upper"); steps and rates, where more means
    more loss, down (safe = "lower"): which of the two it is shows in the family itself. The two sides are `tolerance`
    apart, relatively, or neighbouring whole numbers for `integer=True`. The parameter is sought in [low, high], or
    within a factor 2^64 of 1; if all of a range that was asked for meets the target, the answer is its far end.

    The search compares δ(ε) with delta, never ε: δ is finite even where ε is not.

    Theorem: (ε, δ)-DP is a bound on the hockey-stick divergence [Barthe & Olmedo 2013; Balle & Wang 2018, Thm 5]
    """
    found = Search(
        family,
        checks.non_negative("epsilon", epsilon),
        checks.probability("delta", delta),
        *ends(low, high, integer),
        integer,
        checks.number("tolerance", tolerance, 1e-13, 0.5, allowed="a relative gap between 1e-13 and 0.5, e.g. 1e-6"),
    )
    rising = found.direction()
    good, poor = found.bracket(rising)
    for step in range(200):
        if poor is None or found.close(good, poor):
            break
        # profiles with jumps are halved
        point = found.next_parameter(good, poor) if step < 12 else found.middle(good, poor)
        if point in (good, poor):  # floats are exhausted
            break
        good, poor = (point, poor) if found.meets(point, abs(math.log(poor / good))) else (good, point)
    found.refuse_if_not_monotone(rising)
    return found.answer(good, poor, rising)


def failure(point: float, problem: Exception) -> InvalidParameter:
    """The family failed where it should have answered."""
    return InvalidParameter(
        f"the family cannot be evaluated.\n  found:  {type(problem).__name__} at parameter {point:g}: {problem}\n"
        "  do:     check that family(p) returns a loss for every p asked for, or give low= and high="
    )


def ends(low: float | None, high: float | None, integer: bool) -> tuple[float, float]:
    """The range to look in, as positive numbers; 0 and infinity where the caller said nothing."""
    bottom = 0.0 if low is None else checks.non_negative("low", low)
    top = math.inf if high is None else checks.positive("high", high)
    if integer:
        bottom, top = max(1, math.ceil(bottom)), top if math.isinf(top) else math.floor(top)
    if not bottom <= top:
        raise InvalidParameter(
            f"there is no parameter between low and high.\n  found:  low = {low}, high = {high}, integer = {integer}\n"
            "  do:     give low < high, or leave them out"
        )
    return bottom, top


@dataclass(frozen=True)
class Search:
    """A family, a target, and δ(ε) at every parameter that was tried."""

    family: Callable[[float], Priced]
    epsilon: float
    delta: float
    low: float
    high: float
    integer: bool
    tolerance: float
    seen: dict[float, Bound] = field(default_factory=dict)
    refused: dict[float, InvalidParameter] = field(default_factory=dict)

    # ---- evaluations ----------------------------------------------------------------------------------------------

    def meets(self, point: float, width: float = 1.0) -> bool:
        """Is δ(ε) certified ≤ the target? Asked roughly first, and more sharply only where that does not decide."""
        floor = max(1e-12, 0.05 * self.tolerance)
        sharp = max(floor, min(1e-2, 0.01 * width))  # interpolation needs δ as sharp as the bracket is narrow
        found, gap = self.seen.get(point) or self.look(point, sharp), math.inf
        while found.lower <= self.delta < found.upper and sharp > floor and found.gap <= 0.5 * gap:
            sharp, gap = max(floor, sharp / 100), found.gap
            found = self.look(point, sharp)
        return found.upper <= self.delta

    def look(self, point: float, tolerance: float) -> Bound:
        """One evaluation, remembered."""
        try:
            return self.evaluate(point, tolerance)
        except Exception as problem:
            raise failure(point, problem) from problem

    def is_allowed(self, point: float) -> bool:
        """Does the family take this parameter? What it refuses as invalid is taken for the end of its range."""
        if point in self.seen or point in self.refused:
            return point in self.seen
        try:
            self.evaluate(point, 1e-2)
        except InvalidParameter as problem:
            self.refused[point] = problem
        except Exception as problem:
            raise failure(point, problem) from problem
        return point in self.seen

    def evaluate(self, point: float, tolerance: float) -> Bound:
        """δ(ε) at one parameter; whatever the family raises passes."""
        found = self.family(int(point) if self.integer else point).delta(self.epsilon, tolerance=tolerance)
        if not isinstance(found, Bound):
            raise TypeError(f"delta(…) of what it returns is a {type(found).__name__}, not a Bound")
        self.seen[point] = found
        return found

    # ---- where to look --------------------------------------------------------------------------------------------

    def start(self) -> float:
        """1, or the allowed parameter nearest to it that is found by doubling and halving."""
        first = 1.0 if self.low == 0 or math.isinf(self.high) else math.sqrt(self.low) * math.sqrt(self.high)
        for point in self.around(self.move(first, 0)):
            if self.is_allowed(point):
                return point
        refusal = next(iter(self.refused.values()))
        raise InvalidParameter(
            f"the family refuses every parameter that was tried: {self.attempts()}.\n  found:  {refusal}\n"
            "  do:     give low= and high= such that family(p) is a loss for low ≤ p ≤ high"
        )

    def around(self, point: float) -> list[float]:
        """A point and its multiples up and down, nearest first."""
        return [point, *(p for power in REACH for p in (self.move(point, power), self.move(point, -power)))]

    def move(self, point: float, power: int) -> float:
        """point·2^power, kept within the ends."""
        moved = min(max(point * 2.0**power, self.low), self.high)
        return round(moved) if self.integer else moved

    def direction(self) -> bool:
        """Does a larger parameter mean a larger loss? Seen in δ(ε), or in δ(0) where δ(ε) is the same everywhere."""
        here = self.start()
        others = [point for point in self.around(here) if point != here]
        for curve in (self.upper, self.distance):
            for point in filter(self.is_allowed, others):
                first, second = curve(here), curve(point)
                if not 0.95 * first <= second <= 1.05 * first:  # more than the tolerance it was asked with
                    return (second > first) == (point > here)
        if self.low == self.high:
            return True
        if self.meets(here):
            self.everything_meets()
        self.nothing_meets()

    def upper(self, point: float) -> float:
        """δ(ε) at an allowed parameter, roughly."""
        return self.seen[point].upper

    def distance(self, point: float) -> float:
        """δ(0) there, roughly."""
        return self.family(int(point) if self.integer else point).delta(0.0, tolerance=1e-2).upper

    def bracket(self, rising: bool) -> tuple[float, float | None]:
        """A parameter that meets the target and one that does not; None if all of an asked range meets it."""
        here = self.start()
        met = self.meets(here)
        sign = 1 if met == rising else -1  # towards the other kind
        last, end = here, self.high if sign > 0 else self.low
        for power in REACH:
            point = self.move(here, sign * power)
            if point == last or not self.is_allowed(point):
                break
            if self.meets(point) != met:
                return (last, point) if met else (point, last)
            last = point
        if not met:
            self.nothing_meets()
        if last != end or math.isinf(end):
            self.everything_meets()
        return last, None

    def close(self, good: float, poor: float) -> bool:
        """Is the bracket narrow enough?"""
        return abs(poor - good) <= (1 if self.integer else self.tolerance * good)

    def next_parameter(self, good: float, poor: float) -> float:
        """Next parameter: log p interpolated as a function of log δ, or the middle where that leads out.

        The guess is moved a third of the tolerance towards the farther side, so that in the end that side comes in too.
        """
        a, b = math.log(good), math.log(poor)
        x = self.interpolate()
        if not min(a, b) < x < max(a, b):
            x = (a + b) / 2
        far = b if abs(b - x) > abs(a - x) else a
        x += math.copysign(min(self.tolerance / 3, abs(far - x) / 2), far - x)
        if abs(b - a) > 1e-3 and min(abs(x - a), abs(x - b)) < 0.02 * abs(b - a):  # the very edge teaches little
            x = a + 0.1 * (b - a) if abs(x - a) < abs(x - b) else b - 0.1 * (b - a)
        point = math.exp(x)
        if self.integer:
            return min(max(round(point), min(good, poor) + 1), max(good, poor) - 1)
        return point if min(good, poor) < point < max(good, poor) else self.middle(good, poor)

    def middle(self, good: float, poor: float) -> float:
        """Half way."""
        return (good + poor) // 2 if self.integer else good + (poor - good) / 2

    def interpolate(self) -> float:
        """log p where log δ should cross the target, through the three known points nearest to it; NaN if it cannot."""
        if self.delta == 0:
            return math.nan
        goal = math.log(self.delta)
        known = {math.log((b.lower + b.upper) / 2): math.log(p) for p, b in self.seen.items() if b.upper > 1e-300}
        near = sorted(known, key=lambda y: abs(y - goal))[:3]
        if len(near) < 2:
            return math.nan
        return sum(known[y] * math.prod((goal - z) / (y - z) for z in near if z != y) for y in near)

    # ---- answers --------------------------------------------------------------------------------------------------

    def answer(self, good: float, poor: float | None, rising: bool) -> Bound:
        """The parameter that meets the target, and the nearest one known to miss it."""
        method = f"calibrated to ε = {self.epsilon:g}, δ = {self.delta:g}"
        if poor is None:
            return Bound(float(good), float(good), method, "lower" if rising else "upper")
        other = self.find_miss(good, poor, rising)
        low, high = (good, other) if rising else (other, good)
        return Bound(float(low), float(high), method, "lower" if rising else "upper")

    def find_miss(self, good: float, poor: float, rising: bool) -> float:
        """A parameter certified to miss the target, close to one that is not certified to meet it."""
        known = [p for p, found in self.seen.items() if found.lower > self.delta and (p > good) == rising]
        if not known:
            return math.inf if rising else 0.0
        other, step = min(known) if rising else max(known), 2 * self.tolerance
        while not self.close(poor, other):
            near = poor + math.copysign(step * poor, other - poor)  # it is mostly close by: small steps first
            middle = self.middle(poor, other)
            point = middle if self.integer or abs(near - poor) > abs(middle - poor) else near
            if point in (poor, other):
                break
            self.meets(point, abs(math.log(other / poor)))
            poor, other = (poor, point) if self.seen[point].lower > self.delta else (point, other)
            step *= 4
        return other

    def refuse_if_not_monotone(self, rising: bool) -> None:
        """Two evaluations that certainly run against the direction show a family that cannot be calibrated."""
        points = sorted(self.seen, reverse=not rising)
        for p, q in pairwise(points):
            if self.seen[q].upper < self.seen[p].lower:
                raise InvalidParameter(
                    "the family is not monotone, so no single parameter just meets the target.\n"
                    f"  found:  δ({self.epsilon:g}) = {self.seen[p]} at {p:g} and {self.seen[q]} at {q:g}, against the "
                    f"direction elsewhere\n  do:     give low= and high= around a range where the loss only "
                    f"{'rises' if rising else 'falls'}"
                )

    def attempts(self) -> str:
        """The parameters that were asked, in words."""
        points = sorted([*self.seen, *self.refused])
        return f"{len(points)} between {points[0]:g} and {points[-1]:g}" if len(points) > 1 else f"{points[0]:g} only"

    def nothing_meets(self) -> NoReturn:
        """The target is too strict for all parameters."""
        best = min(self.seen, key=lambda p: self.seen[p].upper)
        raise OutOfReach(
            f"no parameter meets ε = {self.epsilon:g}, δ = {self.delta:g}.\n  tried:  {self.attempts()}\n"
            f"  found:  δ({self.epsilon:g}) = {self.seen[best]} at best, at {best:g}{self.refusals()}\n"
            "  do:     allow a larger epsilon or delta, or a wider range with low= and high="
        )

    def everything_meets(self) -> NoReturn:
        """The target is no constraint."""
        worst = max(self.seen, key=lambda p: self.seen[p].upper)
        raise OutOfReach(
            f"every parameter meets ε = {self.epsilon:g}, δ = {self.delta:g}, so none is nearest.\n"
            f"  tried:  {self.attempts()}\n"
            f"  found:  δ({self.epsilon:g}) = {self.seen[worst]} at worst, at {worst:g}{self.refusals()}\n"
            "  do:     ask for a stricter target, or give low= and high=: their far end is then the answer"
        )

    def refusals(self) -> str:
        """Why the search stopped early, if the family refused a parameter."""
        return "".join(f"\n  found:  {p:g} was refused: {str(why).splitlines()[0]}" for p, why in self.refused.items())
