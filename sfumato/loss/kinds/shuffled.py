"""The loss of a shuffled report: what an adversary learns about one person from all reports in random order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsFloat, overload

import numpy as np
from scipy.special import ndtr

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, PrivacyLoss, Symmetric
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.binomial_tails import OUTSIDE
from sfumato.loss.kinds.blanket_sums import Crowd, binned_pair, lower_nodes, positive_part, upper_nodes
from sfumato.loss.kinds.finite import FinitePairLoss
from sfumato.loss.kinds.tabulated import TabulatedLoss, choose_nodes, table
from sfumato.loss.numeric import Enclosure, Floats, floats
from sfumato.loss.views import divergences

MANY = 40  # points at which a profile is asked at once, from which on a table answers
NODES = 400  # of that table
FLOOR = 1e-20
MOST_PEOPLE = 10**9
LARGE = 100_000  # people from whom on two classes of others are merged
SLACK = 1e-9  # relative: roundings of the incomplete beta function, of a window's masses and of long sums
NEAR = 1e-7  # how close log δ comes to that of a goal


@dataclass(frozen=True)
class ShuffledLoss(Symmetric):
    """n people randomise with an ε₀-LDP randomizer, and their reports come in random order.

    The blanket of the randomizer, γω ≤ R_x for all x, has the mass `one` in reports that support the victim's value and
    not the other one in question, as much the other way, `both` and `neither`; seen from the victim's value these are
    scale·e^ε₀, scale, e^ε₀ and 1 times as likely. Others who do not report from the blanket are shown to the adversary.
    Then δ(ε) = E[(1/n Σᵢ ℓ(Yᵢ))₊] with ℓ = V₀/O − e^ε V₁/O and Yᵢ independent from the blanket (0 outside of it): an
    upper bound whatever the others hold. The lower side of δ and ε of one round is exact for others who all hold the
    victim's value, or, for randomized response over k ≥ 3 values (`third` > 0), a third value. The lower side of a sum
    of rounds is that of the same attack in every round.

    Theorem: the privacy blanket bounds shuffled reports [Balle, Bell, Gascón & Nissim 2019, Lemma 5.3;
        docs/theorems/local.md, Theorems 4 and 5]
    """

    eps: float
    people: int
    one: float
    both: float
    neither: float
    scale: float = 1.0
    third: float = 0.0  # of the mass `neither`, what supports a given third value only

    method = "privacy blanket"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eps", checks.number("eps", self.eps, 0.0, 40.0, allowed="a number from 0 to 40"))
        object.__setattr__(self, "people", checks.whole("people", self.people, 1, MOST_PEOPLE))
        for name in ("one", "both", "neither", "third"):
            object.__setattr__(self, name, checks.probability(name, getattr(self, name)))
        object.__setattr__(self, "scale", checks.number("scale", self.scale, 1.0, 2.0, allowed="a number from 1 to 2"))
        E = math.exp(self.eps)
        whole = self.scale * self.one * (E + 1) + self.both * E + self.neither
        if abs(whole - 1) > 1e-9 or self.third > self.neither or not self.one > 0:
            raise InvalidParameter(
                "these are not the classes of a blanket: the victim's report must fall into one of them.\n"
                f"  found:  a total of {whole!r} under the victim's value\n"
                "  do:     use Shuffled(randomizer, n) of sf.local"
            )

    # ---- the profile ------------------------------------------------------------------------------------------------

    @cached_property
    def crowd(self) -> Crowd:
        """The blanket. In a large crowd `neither` is spread over 0 and e^ε₀ with the same mean: W is then binomial.

        Theorem: a mean-preserving spread raises the mean of a convex function [Rothschild & Stiglitz 1970, Thm 2]
        """
        E = math.exp(self.eps)
        rest: tuple[tuple[float, float], ...] = ((self.both, E), (self.neither, 1.0))
        if self.both and self.people > LARGE:
            rest = ((self.both + self.neither / E, E),)
        return Crowd(self.people, 2 * self.one, 0.5, tuple(part for part in rest if part[0]))

    def upper(self, t: float) -> float:
        """δ(t), never below the truth."""
        if t >= self.eps:
            return 0.0
        E = math.exp(self.eps)
        gain, cost = self.scale * -E * math.expm1(t - self.eps), self.scale * math.expm1(t + self.eps)
        found = positive_part(upper_nodes(self.crowd), self.crowd, gain, cost, math.expm1(t))
        return min(found * (1 + SLACK) + 2 * OUTSIDE * E * self.scale, 1.0)

    def lower(self, t: float) -> float:
        """δ(t) of others who all hold one value, rounded down."""
        if t >= self.eps:
            return 0.0
        E = math.exp(self.eps)
        kept, moved = -math.expm1(t - self.eps), math.expm1(t + self.eps)  # 1 − e^{t−ε₀} and e^{t+ε₀} − 1
        same = self.equal_crowd(E / (1 + E))
        found = positive_part(lower_nodes(same), same, kept, moved, math.expm1(t))
        swapped = self.equal_crowd(1 / (1 + E))
        gain, cost = E * kept, math.exp(t) * -math.expm1(-t - self.eps)  # E − e^t and e^t − 1/E
        found = max(found, positive_part(lower_nodes(swapped), swapped, gain, cost, math.expm1(t)))
        if self.third:
            rest = ((self.neither - self.third, 1.0),) if self.neither > self.third else ()
            third = Crowd(self.people, 2 * self.one, 0.5, rest, 1 / E)
            found = max(found, positive_part(lower_nodes(third), third, gain, moved, math.expm1(t)))
        return max(0.0, found * (1 - SLACK) - 2 * OUTSIDE)

    def equal_crowd(self, first: float) -> Crowd:
        """Others who all hold the victim's value, or all the other one in question."""
        return Crowd(self.people, min(1.0, self.scale * self.one * (math.exp(self.eps) + 1)), first, least=1.0)

    @cached_property
    def attained(self) -> PrivacyLoss:
        """The loss that an adversary attains: a crowd of equal others in each round, seen through the live classes."""
        E = math.exp(self.eps)
        if self.third:
            elsewhere = (1 - self.one * (E + 1)) / (1 - 2 * self.one)
            crowd = Crowd(self.people, 2 * self.one, 0.5)
            pair = binned_pair(crowd, (E, 1.0, elsewhere), (1.0, E, elsewhere), self.end)
        else:
            pair = binned_pair(self.equal_crowd(E / (1 + E)), (1.0, 1.0, 1.0), (1 / E, E, 1.0), self.end)
        return FinitePairLoss(*(tuple(law.tolist()) for law in pair), relation=self.relation)

    def sides(self, eps: Floats) -> Enclosure:
        """The profile of the blanket's pair, point by point."""
        high = floats([self.upper(float(t)) for t in eps.ravel()]).reshape(eps.shape)
        return Enclosure(np.maximum(high * (1 - 3 * SLACK) - 4 * OUTSIDE * math.exp(self.eps), 0.0), high)

    @cached_property
    def table(self) -> TabulatedLoss:
        """The profile at nodes, for those who ask for much of it, such as a composition."""
        nodes, found, _ = choose_nodes(self.sides, None, np.linspace(0.0, self.end, 65), NODES)
        return table(nodes, found, found, self.relation)

    @cached_property
    def end(self) -> float:
        """An ε from which on δ is nothing but a leak below FLOOR; at most ε₀.

        Losses beyond it are so unlikely that to count them as leaks costs nothing, while their size would decide what
        many rounds cost.
        """
        t = self.guess(FLOOR)
        while t < self.eps and self.upper(t) > FLOOR:
            t *= 1.1
        return min(t, self.eps)

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.sides(eps) if eps.size <= MANY else self.table.forward(eps, tolerance)

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """Where the profile meets the goal, by a secant on log δ."""
        high = meeting_point(self.upper, goal, self.guess(goal), self.eps, 1)
        return Bound(high * (1 - 1e-6), high, self.method)

    def guess(self, goal: float) -> float:
        """ε of the Gaussian limit: μ² = 2·scale·one·(e^ε₀ − 1)²/n, roughly."""
        mu = math.sqrt(2 * self.scale**2 * self.one / self.people) * math.expm1(self.eps)
        low, high = 0.0, max(1.0, 40 * mu)
        for _ in range(60):
            t = (low + high) / 2
            found = ndtr(mu / 2 - t / mu) - math.exp(min(t, 700.0)) * ndtr(-mu / 2 - t / mu)
            low, high = (low, t) if found <= goal else (t, high)
        return high

    @property
    def preconditions(self) -> tuple[str, ...]:
        """The condition of this loss; without it only the local ε is promised."""
        return (
            f"at least {self.people:,} honest people randomise, and all their reports are delivered at once",
            "the shuffler is trusted and does not work with the server",
            "nothing links a report to its sender: no order, time, address, identifier or chosen seed",
        )

    def statement(self, delta: float) -> str:
        """ε at δ with all that it depends on."""
        found = self.epsilon(delta)
        lines = [
            f"shuffled: ε = {found.upper:.4g} at δ = {delta:g} (at least {found.lower:.4g})",
            *(f"  if {words}" for words in self.preconditions),
            f"  otherwise: ε = {self.eps:.4g}, whatever the shuffler does",
        ]
        return "\n".join(lines)

    # ---- views of one round, with what an attack attains as their lower side ---------------------------------------

    @overload
    def delta(self, epsilon: float, *, tolerance: float = TOLERANCE) -> Bound: ...
    @overload
    def delta(self, epsilon: Floats | Sequence[float], *, tolerance: float = TOLERANCE) -> Enclosure: ...

    def delta(self, epsilon: float | Floats | Sequence[float], *, tolerance: float = TOLERANCE) -> Bound | Enclosure:
        """δ(ε): at most the blanket's, at least that of a crowd of equal others."""
        found = super().delta(epsilon, tolerance=tolerance)
        if isinstance(found, Bound):
            return Bound(min(self.lower(float(epsilon)), found.upper), found.upper, self.method)  # type: ignore[arg-type]
        low = floats([self.lower(float(t)) for t in np.asarray(epsilon).ravel()]).reshape(found.upper.shape)
        return Enclosure(np.minimum(low, found.upper), found.upper)

    def epsilon(self, delta: SupportsFloat, *, tolerance: float = TOLERANCE) -> Bound:
        """The least ε with δ(ε) ≤ delta, between that of a crowd of equal others and the blanket's; at most ε₀."""
        goal = checks.probability("delta", delta)
        most = self.blanket_epsilon(goal, tolerance)
        start = min(self.guess(max(goal, 1e-15)), most)
        return Bound(min(meeting_point(self.lower, max(goal, 1e-15), start, self.eps, -1), most), most, self.method)

    def blanket_epsilon(self, goal: float, tolerance: float) -> float:
        """The blanket's ε. Its far end leaks less than FLOOR, and is looked at only if the goal is there."""
        if goal > FLOOR:
            return meeting_point(self.upper, goal, self.guess(goal), self.eps, 1)
        return super().epsilon(goal, tolerance=tolerance).upper if goal > self.leak()[0] else self.eps

    # ---- the rest of a loss -----------------------------------------------------------------------------------------

    def supremum(self) -> tuple[float, float]:
        return self.end, self.end

    @property
    def sharp_ends(self) -> bool:
        """The largest loss has a chance that is lost in rounding."""
        return False

    @cached_property
    def beyond(self) -> float:
        """The probability that is counted as leak."""
        return self.upper(self.end)

    def leak(self) -> tuple[float, float]:
        return self.beyond, self.beyond

    def log_moment(self, s: float) -> Bound:
        return divergences.log_moment(self, s)


def meeting_point(curve: Callable[[float], float], goal: float, start: float, top: float, side: int) -> float:
    """A t just after (side 1) or just before (side −1) the one at which a falling curve meets the goal.

    A secant on log δ, kept inside a bracket. It aims at half of NEAR on the side that is wanted, so the answer is a
    point at which the curve is certainly at most, or above, the goal.
    """
    if curve(0.0) <= goal:
        return 0.0
    low, high, t, before = 0.0, top, min(start, 0.999 * top), None
    for _ in range(100):
        found = math.log(max(curve(t), 1e-300) / goal)
        low, high = (low, t) if found <= 0 else (t, high)
        if -NEAR <= found <= 0 if side > 0 else 0 < found <= NEAR:
            return t
        slope = (found - before[1]) / (t - before[0]) if before and t != before[0] else -20 / t
        before = (t, found)
        aim = t - (found + side * NEAR / 2) / slope if slope < 0 else low
        t = aim if low < aim < high else (low + high) / 2
        if high - low <= 1e-15 * high:
            break
    return high if side > 0 else low
