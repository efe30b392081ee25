"""Losses about which only a Rényi curve is known: looser answers, the same interface."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, PrivacyLoss, Symmetric
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss
from sfumato.loss.numeric import ULP, Enclosure, Floats, gammaln, logsumexp
from sfumato.loss.views.profile import epsilon_one_way
from sfumato.loss.views.renyi_curve import RenyiCurve, curve_of
from sfumato.rounding import product_up
from sfumato.sensitivity import Relation

ORDERS = tuple(float(a) for a in np.concatenate([1 + np.geomspace(1e-3, 1, 40), np.geomspace(2.1, 4096, 120)]))
WHOLE_ORDERS = tuple(float(a) for a in sorted({*range(2, 65), *(round(x) for x in np.geomspace(65, 1024, 40))}))


class RenyiOnly(Symmetric):
    """A loss that answers from its Rényi curve alone: upper bounds, no lower ones."""

    method = "Rényi conversion"

    @abstractmethod
    def renyi_curve(self) -> RenyiCurve:
        """The curve."""

    @property
    def sharp_ends(self) -> bool:
        return False

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        curve = self.renyi_curve()
        return Enclosure(0 * eps, curve.profile(eps) if max(curve.divergences) > 0 else 0 * eps)

    def supremum(self) -> tuple[float, float]:
        return math.inf, math.inf

    def leak(self) -> tuple[float, float]:
        return 0.0, 0.0

    def log_moment(self, s: float) -> Bound:
        return self.renyi_curve().log_moment(s)

    def mean(self) -> Bound:
        """D₁ is at most the divergence of the least order."""
        return Bound(0.0, self.renyi_curve().divergences[0], self.method)


@dataclass(frozen=True)
class RenyiLoss(RenyiOnly):
    """Anything with D_a ≤ divergences at the given orders a > 1, in both directions.

    Theorem: Rényi differential privacy, composition by adding curves [Mironov 2017, Prop. 1]
    """

    orders: tuple[float, ...]
    divergences: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("orders", "divergences"):
            if isinstance(getattr(self, name), str) or not hasattr(getattr(self, name), "__iter__"):
                raise InvalidParameter(
                    f"{name} must be a sequence of numbers, found {type(getattr(self, name)).__name__}"
                )
        orders = tuple(
            checks.number("order", a, math.nextafter(1, 2), 1e12, allowed="an order > 1") for a in self.orders
        )
        divergences = tuple(checks.non_negative("divergence", d) for d in self.divergences)
        if len(orders) != len(divergences) or not orders:
            raise InvalidParameter(
                f"a Rényi curve needs one divergence per order, found {len(orders)} and {len(divergences)}"
            )
        if any(b <= a for a, b in pairwise(orders)):
            raise InvalidParameter("the orders of a Rényi curve must increase")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "divergences", divergences)

    def renyi_curve(self) -> RenyiCurve:
        return RenyiCurve(self.orders, self.divergences)


def from_renyi(curve: Callable[[float], float], orders: Sequence[float] = ORDERS) -> RenyiLoss:
    """The loss of a mechanism with D_a ≤ curve(a): tabulated at `orders`, and that table is what is described."""
    try:
        table = curve_of(lambda a: checks.extended_number("curve(order)", curve(a)) * (1 + 1e-15), orders)
    except TypeError as problem:
        raise InvalidParameter(f"curve must be a function of the order: {problem}") from problem
    return RenyiLoss(table.orders, table.divergences)


@dataclass(frozen=True)
class ZcdpLoss(RenyiOnly):
    """(ξ, ρ)-zero-concentrated DP: D_a ≤ ξ + ρa for all a > 1, and nothing else is known.

    With ρ = 0 every order is at most ξ, and so is their limit D_∞: that is ξ-DP, whose worst pair is known.

    Theorem: zero-concentrated differential privacy [Bun & Steinke 2016, Def. 1.1]
    Theorem: every ε-DP mechanism is post-processed randomized response [Kairouz, Oh & Viswanath 2015, Thm 3.1]
    """

    rho: float
    xi: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rho", checks.non_negative("rho", self.rho))
        object.__setattr__(self, "xi", checks.non_negative("xi", self.xi))

    @property
    def pure(self) -> PureLoss | None:
        """Pure ξ-DP, which the loss is if ρ = 0; else None."""
        return PureLoss(self.xi, relation=self.relation) if self.rho == 0 else None

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        pure = self.pure
        return pure.forward(eps, tolerance) if pure else super().forward(eps, tolerance)

    def least(self, goal: float, tolerance: float) -> Bound | None:
        pure = self.pure
        return epsilon_one_way(pure, goal, tolerance) if pure else None

    def renyi_curve(self) -> RenyiCurve:
        if pure := self.pure:
            return RenyiCurve(ORDERS, tuple(min(self.xi, pure.renyi(a).upper) for a in ORDERS))
        largest = min(1e9, max(4096, 400 / self.rho))
        orders = (*ORDERS, *(float(a) for a in np.geomspace(4096, largest, 60)[1:] if largest > 4096))
        return RenyiCurve(orders, tuple((self.xi + self.rho * a) * (1 + 2 * ULP) for a in orders))

    def log_moment(self, s: float) -> Bound:
        if pure := self.pure:
            return pure.log_moment(s)
        upper = s * (self.xi + self.rho * (s + 1)) * (1 + 8 * ULP) if s > 0 else 0.0
        return Bound(-math.inf if s < 0 else 0.0, upper, "zCDP")

    def mean(self) -> Bound:
        pure = self.pure
        return pure.mean() if pure else Bound(0.0, (self.xi + self.rho) * (1 + 4 * ULP), "zCDP")

    def rho_ceiling(self) -> float:
        pure = self.pure
        return min(pure.rho_ceiling(), self.xi) if pure else (self.xi + self.rho) * (1 + 4 * ULP)

    def supremum(self) -> tuple[float, float]:
        top = math.inf if self.rho > 0 else self.xi
        return top, top

    def group(self, size: int) -> "ZcdpLoss":
        """(k²ρ)-zCDP for k people when ξ = 0 [Bun & Steinke 2016, Prop. 1.9]; with ξ: ξ·k·Σ1/i + k²ρ; kξ when ρ = 0."""
        k = checks.whole("size", size, 0)
        if self.rho == 0:
            return ZcdpLoss(0.0, product_up(k, self.xi), relation=self.relation)
        harmonic = math.fsum(1 / i for i in range(1, min(k, 10**6) + 1)) + (math.log(k / 1e6) if k > 10**6 else 0)
        return ZcdpLoss(k * k * self.rho * (1 + 2 * ULP), self.xi * k * harmonic * (1 + 1e-12), relation=self.relation)


@dataclass(frozen=True)
class TcdpLoss(RenyiOnly):
    """(ρ, ω)-truncated concentrated DP: D_a ≤ ρa for 1 < a < ω, and nothing is known of larger orders.

    The order ω itself is included: D_a rises with a and is continuous from the left, so D_ω ≤ ρω.

    Theorem: truncated concentrated differential privacy [Bun, Dwork, Rothblum & Steinke 2018, Def. 1]
    """

    rho: float
    omega: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rho", checks.non_negative("rho", self.rho))
        allowed = "an order above 1, up to 1e12 (without a last order this is ZcdpLoss)"
        object.__setattr__(self, "omega", checks.number("omega", self.omega, 1 + 1e-9, 1e12, allowed=allowed))

    def renyi_curve(self) -> RenyiCurve:
        more = np.geomspace(ORDERS[-1], self.omega, 60)[1:-1] if self.omega > ORDERS[-1] else ()
        orders = (*(a for a in (*ORDERS, *(float(a) for a in more)) if a < self.omega), self.omega)
        return RenyiCurve(orders, tuple(self.rho * a * (1 + 2 * ULP) for a in orders))

    def log_moment(self, s: float) -> Bound:
        if s + 1 > self.omega and self.rho > 0:
            return Bound(0.0, math.inf, "truncated CDP")
        return Bound(-math.inf if s < 0 else 0.0, max(s * (s + 1) * self.rho * (1 + 4 * ULP), 0.0), "truncated CDP")

    def mean(self) -> Bound:
        """D₁ ≤ ρ: the limit of the orders above 1."""
        return Bound(0.0, self.rho * (1 + 2 * ULP), "truncated CDP")

    def group(self, size: int) -> PrivacyLoss:
        """(k²ρ, ω/k) for k people; nothing is known if ω ≤ k.

        Proof. By induction over m people, with the split of `zcdp_chain` at c = m/(m−1): the first step is read at the
        order (ca − 1)/(c − 1) ≤ ma, the other m − 1 at ca, which needs their orders up to (m−1)·ca = ma ≤ ω. Together
        D_a ≤ ca·(ρ/(c−1) + (m−1)²ρ) = m²ρa.

        Theorem: group privacy of truncated CDP [Bun, Dwork, Rothblum & Steinke 2018, Prop. 2]
        """
        k = checks.whole("size", size, 0)
        if k < 2:
            return self if k else TcdpLoss(0.0, self.omega, relation=self.relation)
        last = self.omega / k * (1 - 2 * ULP)
        if last <= 1 + 1e-9 and self.rho > 0:
            return ApproxLoss(0.0, 1.0, relation=self.relation)
        return TcdpLoss(
            k * k * self.rho * (1 + 2 * ULP), max(last, 2.0) if self.rho == 0 else last, relation=self.relation
        )


def zcdp_chain(*rhos: float, relation: Relation = Relation.AddRemove) -> ZcdpLoss:
    """The zCDP of a path P₀, P₁, …, P_m whose step i is ρ_i-zCDP: ρ = (√ρ₁ + √ρ₂ + … + √ρ_m)².

    Proof for D_a(P‖R) ≤ xa, D_a(R‖Q) ≤ ya. Hölder's inequality for E_R[(P/R)^a (R/Q)^{a−1}] gives, for every k > 1,
    D_a(P‖Q) ≤ ka·(x/(k−1) + y), with orders (ka−1)/(k−1) and ka; at k = 1 + √(x/y) that is a(√x + √y)². Steps need
    not be equal: equal ones are group privacy, k²ρ. Gaussian steps in one direction attain it.

    Theorem: zCDP along a path of unequal steps [Bun & Steinke 2016, Lemma 5.2; Bun & Steinke 2019, Lemma 11]

    >>> zcdp_chain(0.5, 0.02).rho
    0.720...
    """
    roots = [math.sqrt(checks.non_negative("rho", rho)) for rho in rhos]
    return ZcdpLoss(math.fsum(roots) ** 2 * (1 + 16 * ULP), relation=relation)


def poisson_curve(inner: RenyiCurve, rate: float) -> RenyiCurve:
    """Poisson sampling of a loss known by its Rényi curve, at whole orders a.

    Remove: E_Q[(1−q+qe^L)^a] = Σ_l C(a,l)(1−q)^{a−l}q^l·e^{(l−1)D_l}, exactly. Add: with x = e^L, E_Q x = 1, Taylor
    to second order around x = 1 gives E_Q[(1−q+qx)^{1−a}] ≤ 1 + ½a(a−1)q²(1−q)^{−a−1}(e^{D₂}−1). The curve is the
    larger.

    Theorem: binomial expansion of the sampled moment [Mironov, Talwar & Zhang 2019, Sec. 3.3; Zhu & Wang 2019, Thm 5]
    """
    if rate in (0.0, 1.0):
        return inner.times(int(rate))

    def divergence(a: float) -> float:
        j = np.arange(0, a + 1)
        logs = log_choose(a, j) + (a - j) * math.log1p(-rate) + j * math.log(rate)
        moments = np.array([0.0, 0.0, *(inner.upper(x - 1) for x in j[2:])])
        remove = logsumexp(logs + moments)
        taylor = math.log(a * (a - 1) / 2) + 2 * math.log(rate) - (a + 1) * math.log1p(-rate) + chi(inner.upper(1.0))
        add = float(np.logaddexp(0.0, taylor))
        return max(remove, add) / (a - 1) * (1 + 1e-12) + 1e-15 / (a - 1)

    usable = [a for a in WHOLE_ORDERS if math.isfinite(inner.upper(a - 1)) and (a + 1) * -math.log1p(-rate) < 600]
    return curve_of(divergence, usable or [2.0])


def without_replacement_curve(inner: RenyiCurve, rate: float) -> RenyiCurve:
    """Sampling without replacement of a loss known by its Rényi curve, at whole orders.

    (a−1)D'_a ≤ log(1 + q²C(a,2)·min{4(e^{D₂}−1), 2e^{D₂}} + Σ_{j≥3} 2q^jC(a,j)e^{(j−1)D_j}).

    Theorem: Rényi amplification without replacement [Wang, Balle & Kasiviswanathan 2019, Thm 9]
    """
    if rate in (0.0, 1.0):
        return inner.times(int(rate))

    def divergence(a: float) -> float:
        second = inner.upper(1.0)
        first = 2 * math.log(rate) + math.log(a * (a - 1) / 2) + min(math.log(4) + chi(second), math.log(2) + second)
        j = np.arange(3, a + 1)
        rest = math.log(2) + j * math.log(rate) + log_choose(a, j) + np.array([inner.upper(x - 1) for x in j])
        return float(np.logaddexp(0.0, logsumexp(np.concatenate([[first], rest])))) / (a - 1) * (1 + 1e-12)

    return curve_of(divergence, [a for a in WHOLE_ORDERS if math.isfinite(inner.upper(a - 1))] or [2.0])


def log_choose(n: float, k: Floats) -> Floats:
    """log of the binomial coefficient."""
    return gammaln(np.array(n + 1.0)) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def chi(second: float) -> float:
    """log(e^x − 1): the logarithm of χ² from D₂."""
    return -math.inf if second == 0 else math.log(math.expm1(second)) if second < 30 else second
