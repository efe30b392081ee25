"""A loss that now and then gives everything away."""

import math
from dataclasses import dataclass

from sfumato import checks
from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.base import TOLERANCE, PrivacyLoss, Wrapped
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Enclosure, Floats
from sfumato.loss.views.profile import epsilon_one_way
from sfumato.rounding import mixture_up, rest_down


@dataclass(frozen=True)
class LeakyLoss(Wrapped):
    """With probability `failure` the output names its data set; otherwise the inner loss is all there is.

    H = failure + (1 − failure)·(inner H): a hockey stick is a sum over outcomes, and whether it failed is seen.

    Theorem: (ε, δ)-DP is the case of randomized response that leaks [Kairouz, Oh & Viswanath 2015, Thm 3.1]
    """

    inner: PrivacyLoss
    failure: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.inner, PrivacyLoss):
            raise InvalidParameter(f"LeakyLoss needs a loss inside, found {type(self.inner).__name__}")
        if self.relation is not self.inner.relation:
            raise MixedRelations(
                f"a loss about {self.inner.relation.value} that leaks is not about {self.relation.value}"
            )
        object.__setattr__(self, "failure", checks.probability("failure", self.failure))

    def mix(self, found: Enclosure) -> Enclosure:
        """failure + (1 − failure)·found."""
        low, high = (self.failure + (1 - self.failure) * side for side in found)
        return Enclosure(low * (1 - 4 * ULP), (high * (1 + 4 * ULP)).clip(max=1.0))

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.mix(self.inner.forward(eps, tolerance))

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.mix(self.inner.backward(eps, tolerance))

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """H ≤ goal where the inner profile is at most (goal − failure)/(1 − failure), rounded to either side."""
        if not self.failure <= goal or self.failure == 1:
            return None
        rest = rest_down(goal, self.failure)
        found = epsilon_one_way(self.inner, rest, tolerance)
        if mixture_up(self.failure, rest) == goal and rest == 0:
            return found
        eased = epsilon_one_way(self.inner, min(math.nextafter(rest, 1.0), 1.0), tolerance)
        return Bound(min(eased.lower, found.lower), found.upper, found.method)

    def supremum(self) -> tuple[float, float]:
        return self.inner.supremum()

    def leak(self) -> tuple[float, float]:
        ahead, back = (mixture_up(self.failure, inside) for inside in self.inner.leak())
        return ahead, back

    def log_moment(self, s: float) -> Bound:
        """That of the inner loss and log(1 − failure): what leaks is infinite, and not counted where s ≤ 0."""
        if self.failure == 0:
            return self.inner.log_moment(s)
        if s > 0 or self.failure == 1:
            return Bound(math.inf, math.inf, self.method) if s > 0 else Bound(-math.inf, -math.inf, self.method)
        found, kept = self.inner.log_moment(s), math.log1p(-self.failure)
        slip = 8 * ULP * abs(kept)
        return Bound(found.lower + kept - slip, found.upper + kept + slip, found.method)

    def mean(self) -> Bound:
        return Bound(math.inf, math.inf, self.method) if self.failure else self.inner.mean()

    @property
    def reverse(self) -> PrivacyLoss:
        return LeakyLoss(self.inner.reverse, self.failure, relation=self.relation.reversed)

    def atoms(self) -> tuple[float, float] | None:
        return self.inner.atoms()
