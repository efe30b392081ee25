"""Noise proportional to the count: Algorithm 2 of the open problem on larger groups, with its true privacy loss.

The divergences of N(x, (rx)²) decrease with the size of the group, but not for all orders: the scale of the noise
depends on the size, and beyond the order x²/(2x − 1) the divergence is infinite. There is no zCDP guarantee.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound, worst
from sfumato.loss.kinds.coins import ApproxLoss
from sfumato.loss.kinds.from_densities import from_cdfs
from sfumato.loss.kinds.renyi import TcdpLoss, ZcdpLoss
from sfumato.loss.kinds.wrappers import either
from sfumato.loss.numeric import ULP, Floats, floats, ndtr
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.laplace_gaussian import GaussianNoise
from sfumato.mechanisms.examples import WHOLE, Example, Inputs, Neighbours
from sfumato.mechanisms.groups.groupwise import GroupwiseLoss, Policy
from sfumato.mechanisms.groups.transformed import integer_counts, reshape_like
from sfumato.noise.lazy import Draw

REACH = 12.0  # σ: the mass beyond is less than 1e-32
NOTHING = ApproxLoss(0.0, 1.0)  # no guarantee at all


@dataclass(frozen=True)
class ScaledPair:
    """P = N(x, (rx)²) and Q = N(y, (ry)²), x ≠ y, both ≥ 1."""

    x: int
    y: int
    r: float

    def renyi(self, order: float) -> float:
        """D_a(P‖Q) = ln(y/x) + ln(y²/s)/(2(a − 1)) + a(x − y)²/(2r²s), s = a·y² + (1 − a)x²; infinite if s ≤ 0.

        Theorem: Rényi divergence of normal laws [Gil, Alajaji & Linder 2013, Table 2]
        """
        a, x, y = order, self.x, self.y
        s = a * (y - x) * (y + x) + x * x
        if s <= 0:
            return math.inf
        share = (1 - a) * (x - y) * (x + y) / (y * y)  # s = y²(1 + share)
        return math.log1p((y - x) / x) - math.log1p(share) / (2 * (a - 1)) + a * (x - y) ** 2 / (2 * self.r**2 * s)

    def delta(self, epsilon: float) -> float:
        """H_{e^ε}(P‖Q). As ln p/q is a parabola, ln p/q > ε on an interval or on the complement of one.

        ln p/q = A·z² + B·z + C in z = (t − x)/rx, the position in units of P.
        """
        k = self.x / self.y  # the position in units of Q is kz + d
        d = (self.x - self.y) / (self.r * self.y)
        a, b, c = (k * k - 1) / 2, k * d, d * d / 2 - math.log(k) - epsilon
        root = b * b - 4 * a * c
        if root <= 0:
            return 0.0 if a < 0 else -math.expm1(epsilon)
        q = -(b + math.copysign(math.sqrt(root), b)) / 2  # the roots without cancellation
        low, high = sorted((q / a, c / q))
        mine, others = (low, high), (k * low + d, k * high + d)
        inside = mass_between if a < 0 else mass_outside
        return max(inside(*mine) - math.exp(epsilon) * inside(*others), 0.0)

    def loss(self) -> PrivacyLoss:
        """The pair as a loss, in both directions."""
        wide = REACH * self.r * max(self.x, self.y)
        low, high = min(self.x, self.y) - wide, max(self.x, self.y) + wide
        turn = self.x * self.y / (self.x + self.y)  # the vertex of the parabola ln p/q

        def cdf(size: int) -> Callable[[Floats], Floats]:
            return lambda t: ndtr((t - size) / (self.r * size))

        def ratio(t: Floats) -> Floats:
            z, w = (t - self.x) / (self.r * self.x), (t - self.y) / (self.r * self.y)
            return floats((w - z) * (w + z) / 2 + math.log(self.y / self.x))

        return from_cdfs(cdf(self.x), cdf(self.y), ratio, low, high, turning_points=[turn])


def mass_between(low: float, high: float) -> float:
    """Φ(high) − Φ(low), computed in the lower tail to avoid cancellation."""
    if low > 0:
        low, high = -high, -low
    first, second = ndtr(floats([low, high]))
    return float(second - first)


def mass_outside(low: float, high: float) -> float:
    first, second = ndtr(floats([low, -high]))
    return float(first + second)


@dataclass(frozen=True)
class ProportionalPolicy(Policy):
    """The pairs (x, x − 1) and (x, x + 1), each both ways."""

    r: float

    def member(self, size: int) -> PrivacyLoss:
        if size < 2:  # an empty group is released exactly
            return NOTHING
        return either(ScaledPair(size, size - 1, self.r).loss(), ScaledPair(size + 1, size, self.r).loss())

    def zcdp(self, size: int) -> tuple[Bound, Bound]:
        return Bound(math.inf, math.inf, "no order beyond x²/(2x − 1)"), Bound(0.0, 0.0, "closed form")

    def everyone(self) -> PrivacyLoss:
        return NOTHING


@dataclass(frozen=True)
class ProportionalGaussian(Mechanism[ArrayLike, float | Floats]):
    """round(N(x, (rx)²)) for each count x, drawn exactly. For study, not for use: an empty group is released exactly.

    Theorem: D_a(N(x, (rx)²)‖N(x − 1, (r(x − 1))²)) is infinite from a = x²/(2x − 1) on, and D_a/a rises up to there; so
        it is (ρ, ω)-truncated CDP with ρ = D_ω/ω for every ω below, and zCDP for none
        [docs/theorems/groups.md, Theorem 6]
    """

    relative_error: float
    use = "to compare with: Gaussian noise in proportion to the count"

    def __post_init__(self) -> None:
        r = checks.number("relative_error", self.relative_error, 1e-4, 1.0, allowed="a number from 1e-4 to 1")
        object.__setattr__(self, "relative_error", r)

    @property
    def policy(self) -> GroupwiseLoss:
        return GroupwiseLoss((ProportionalPolicy(self.relative_error),))

    def loss(self) -> PrivacyLoss:
        """No guarantee holds for groups of every size."""
        return self.policy.everyone()

    def last_order(self, size: int) -> Fraction:
        """The divergences of a group of this size are finite below this order only."""
        return Fraction(size * size, 2 * size - 1) if size > 1 else Fraction(1)

    def truncated(self, size: int, order: float) -> Bound:
        """The least ρ with D_a ≤ ρa for 1 < a ≤ order, both ways and for both neighbours.

        Theorem: truncated concentrated differential privacy [Bun, Dwork, Rothblum & Steinke 2018, Def. 1]
        """
        last = self.last_order(checks.whole("size", size, 0))
        a = checks.number("order", order, 1 + 1e-9, 1e15, allowed="an order above 1")
        if not Fraction(a) < last:
            raise InvalidParameter(
                f"the divergence is infinite from order {float(last):.6g} on.\n  found:  order = {a:g}\n"
                "  do:     ask for a smaller order"
            )
        found = ScaledPair(size, size - 1, self.relative_error).renyi(a) / a
        spare = 1e-13 / float(1 - Fraction(a) / last)  # the rounding error grows as the order approaches the last one
        return Bound(found * (1 - spare), found * (1 + spare), "closed form")

    def truncated_loss(self, size: int, order: float) -> TcdpLoss:
        """The bound of `truncated` as a loss: (ρ, ω)-truncated CDP of a member of a group of this size, ω = order."""
        return TcdpLoss(self.truncated(size, order).upper, order)

    def delta(self, size: int, epsilon: float) -> Bound:
        """The exact profile of a member: the worst of both neighbours, both ways."""
        if checks.whole("size", size, 0) < 2:
            return Bound(1.0, 1.0, "closed form")
        eps = checks.non_negative("epsilon", epsilon)
        found = Bound(0.0, 0.0, "closed form")
        for x, y in ((size, size - 1), (size - 1, size), (size, size + 1), (size + 1, size)):
            value = ScaledPair(x, y, self.relative_error).delta(eps)
            error = 64 * ULP * (1 + math.exp(eps)) + 1e-300
            found = worst(found, Bound(max(0.0, value - error), min(1.0, value + error), "closed form"))
        return found

    def claimed(self, size: int) -> ZcdpLoss:
        """The claim of the open problem: v = 1/(2r²x²), ξ = 2 ln(1 + 1/x). It is false: see docs/larger-groups.md."""
        return ZcdpLoss(1 / (2 * self.relative_error**2 * size**2), xi=2 * math.log1p(1 / size))

    def release(self, value: ArrayLike) -> float | Floats:
        counts = integer_counts(value)
        r = Fraction(self.relative_error)
        sizes = [max(x, 0) for x in counts.reshape(-1).tolist()]
        found = [Draw(GaussianNoise(), self.source).round_to_integer(x, r * x) for x in sizes]
        return reshape_like(found, counts)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example(cls(0.5), (Neighbours(4, 3),), Inputs("integers", WHOLE), step=Fraction(1)),)
