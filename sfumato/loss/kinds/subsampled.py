"""Losses amplified by subsampling: the person is probably not in the batch."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from sfumato import checks
from sfumato.loss.base import TOLERANCE, PrivacyLoss, Symmetric, Wrapped, must_be_about
from sfumato.loss.bound import Bound
from sfumato.loss.compose.transforms.base import Transform, spectral_moment
from sfumato.loss.compose.transforms.sampled_gaussian import SampledGaussianTransform
from sfumato.loss.kinds.bounded_range import BoundedRangeLoss
from sfumato.loss.kinds.coins import SignedLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.loss.kinds.renyi import log_choose, poisson_curve, without_replacement_curve
from sfumato.loss.kinds.wrappers import Reversed
from sfumato.loss.numeric import ULP, Enclosure, Floats, logsumexp
from sfumato.loss.views.divergences import log_moment
from sfumato.loss.views.profile import worst_near
from sfumato.loss.views.renyi_curve import RenyiCurve
from sfumato.rounding import product_up
from sfumato.sensitivity import Relation

LEAST = 1e-320  # a product that underflows is not zero
MOST_WHOLE = 1000  # terms of a binomial sum


def dilute(inner: Callable[[Floats], Enclosure], rate: float, eps: Floats) -> Enclosure:
    """rate·H at log(1 + (e^ε − 1)/rate) = log((e^ε − 1 + rate)/rate), with rounding."""
    small = np.minimum(eps, 30.0)
    large = eps - math.log(rate) + np.log1p((rate - 1) * np.exp(-np.maximum(eps, 30.0)))
    beta = np.where(eps <= 30, np.log1p(np.expm1(small) / rate), large)
    error = 8 * ULP * (beta + 1.0) * (beta > 0)
    low, high = inner(beta + error).lower, inner(np.maximum(beta - error, 0.0)).upper
    return Enclosure(rate * low * (1 - 2 * ULP), np.minimum(rate * high * (1 + 2 * ULP) + LEAST * (high > 0), 1.0))


def inner_epsilon(eps: float | None, rate: float) -> float | None:
    """About where the inner profile is asked for: it guides a search, and proves nothing."""
    return None if eps is None else math.log1p(math.expm1(min(eps, 700.0)) / rate)


def mixed_top(top: float, rate: float) -> float:
    """log(1 + rate·(e^top − 1)), rounded up."""
    if rate == 0 or top == 0:
        return 0.0
    if top < 700:
        return math.log1p(rate * math.expm1(top)) * (1 + 8 * ULP)
    # top and log(rate) may cancel: the error is relative to each of them
    value = top + math.log(rate) + math.log1p((1 / rate - 1) * math.exp(-top))
    return value + 8 * ULP * (top - math.log(rate)) if math.isfinite(top) else top


@dataclass(frozen=True)
class PoissonSampledLoss(Wrapped):
    """Each person is in the batch with probability `rate`, independently: the pair ((1−q)Q + qP, Q).

    forward: H_{e^ε} = q·H_β(P‖Q) with β = 1 + (e^ε − 1)/q. backward: (1 − e^ε(1−q))·H_{1/β'}(Q‖P) with
    β' = (e^{−ε} − 1 + q)/q, and 0 from ε = −log(1−q) on: the person's absence can be hidden that well, no better.

    Theorem: Poisson sampling keeps dominating pairs, direction by direction [Zhu, Dong & Wang 2022, Thm 11]
    Theorem: a profile under sampling is the diluted profile [Li, Qardaji & Su 2012; Balle, Barthe & Gaboardi 2018,
        Thm 8]
    """

    inner: PrivacyLoss
    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        must_be_about(self, self.inner, Relation.AddRemove)
        object.__setattr__(self, "rate", checks.number("rate", self.rate, 1e-200, 1.0, allowed="a rate in (0, 1]"))

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return dilute(lambda t: self.inner.forward(t, tolerance), self.rate, eps)

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        inner = self.inner.near(min(delta / self.rate, 1.0), tolerance, inner_epsilon(eps, self.rate))
        return lambda t: dilute(inner, self.rate, t)

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.dilute_backward(lambda t: self.inner.backward(t, tolerance), eps)

    def near_backward(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        growth = math.expm1(min(eps or 0.0, 700.0))
        factor = self.rate - (1 - self.rate) * growth
        guess = None if eps is None or factor <= 0 else math.log1p(growth) - math.log(factor / self.rate)
        inner = self.inner.reverse.near(min(delta / max(factor, 1e-3 * self.rate), 1.0), tolerance, guess)
        return lambda t: self.dilute_backward(inner, t)

    def dilute_backward(self, inner: Callable[[Floats], Enclosure], eps: Floats) -> Enclosure:
        """The backward profile, from that of the inner loss."""
        q = self.rate
        if q == 1:
            return inner(eps)
        end = -math.log1p(-q) if q < 1 else math.inf
        inside = eps < end
        # x = −log β' ≥ 0 and the factor 1 − e^ε(1−q), both from e^ε − 1 so that small ε keeps its digits
        growth = np.expm1(np.where(inside, eps, 0.0))
        factor = q - (1 - q) * growth
        # β' = (e^{−ε} − 1 + q)/q = e^{−ε}(q − (1−q)growth)/q, which rounding may bring down to 0
        x = np.log1p(growth) - np.log1p(np.maximum(-growth * (1 - q) / q, ULP / 2 - 1))
        error = 8 * ULP * (x + 1 + 1 / np.maximum(factor / q, ULP)) * (x > 0)
        upper = inner(np.maximum(x - error, 0.0)).upper * (factor + 4 * ULP * q) * (1 + 8 * ULP)
        lower = inner(x + error).lower * (factor - 4 * ULP * q) * (1 - 8 * ULP)
        edge = np.where(eps <= end * (1 + 4 * ULP), 8 * ULP * q, 0.0)  # the end itself is rounded
        upper = np.where(inside, np.clip(upper + LEAST, 0.0, 1.0), edge)
        return Enclosure(np.where(inside, np.maximum(lower, 0.0), 0.0), upper)

    def supremum(self) -> tuple[float, float]:
        """The person's absence is hidden: Q/((1−q)Q + qP) is at most 1/(1 − q + q·min P/Q)."""
        top, bottom = self.inner.supremum()
        least = math.inf if self.inner.leak()[1] > 0 else bottom
        if self.rate == 1:
            return top * (1 + 8 * ULP), bottom * (1 + 8 * ULP)
        if self.rate <= 0.5 or least < 1:
            back = -math.log1p(self.rate * math.expm1(-least))
        else:
            back = -math.log(1 - self.rate + self.rate * math.exp(-least))
        return mixed_top(top, self.rate), back * (1 + 8 * ULP)

    def leak(self) -> tuple[float, float]:
        return product_up(self.rate, self.inner.leak()[0]), 0.0

    def transform(self) -> Transform | None:
        if self.rate == 1:
            return self.inner.transform()
        if isinstance(self.inner, GaussianLoss) and self.inner.mu > 0:
            return SampledGaussianTransform(self.rate, self.inner.mu, 1)
        whole = (
            self.inner.bounded_transform()
            if isinstance(self.inner, LaplaceLoss | BoundedRangeLoss | SignedLoss)
            else None
        )
        return whole and replace(whole, rate=self.rate)

    def log_moment(self, s: float) -> Bound:
        """A Gaussian's by quadrature, where that is sharp. Of others, and for tiny rates, at whole orders the binomial
        sum; between them what convexity leaves, and the integral of the profiles."""
        if curve := self.renyi_curve():
            return curve.log_moment(s)
        if self.rate == 1:
            return self.inner.log_moment(s)
        # moments of a class belong to no one pair
        if self.one_pair and (found := spectral_moment(self.transform(), s)) is not None:
            return found
        if s <= 0:
            return log_moment(self, s)
        if s > MOST_WHOLE:
            return self.large_moment(s)
        if s == round(s):
            return self.whole_moment(round(s))
        below, above = math.floor(s), math.ceil(s)
        at = {j: self.whole_moment(j) for j in (below - 1, below, above, above + 1) if j >= 0}
        chord = at[below].upper + (s - below) * (at[above].upper - at[below].upper)
        before = at[below].lower + (s - below) * (at[below].lower - at[below - 1].upper) if below else 0.0
        after = at[above].lower - (above - s) * (at[above + 1].upper - at[above].lower)
        if not math.isfinite(chord):
            return Bound(0.0, math.inf, "binomial sum")
        whole = Bound(max(before, after, 0.0), chord, "binomial sum")
        if s > 12:  # the chord is sharp by now, and the integral would need profile values that underflow
            return whole
        fine = log_moment(self, s)
        return Bound(max(whole.lower, fine.lower), min(whole.upper, fine.upper), fine.method)

    def large_moment(self, s: float) -> Bound:
        """K(s)/s does not fall, is at most sup L, and E_Q[(1−q+qe^L)^{s+1}] ≥ q^{s+1}·E_Q[e^{(s+1)L}]."""
        inner = self.inner.log_moment(s)
        floor = self.whole_moment(MOST_WHOLE).lower / MOST_WHOLE * s
        low = max(floor, (s + 1) * math.log(self.rate) * (1 + 8 * ULP) + inner.lower)
        high = min(self.supremum()[0] * s, self.moment_ceiling(s)) if self.leak()[0] == 0 else math.inf
        return Bound(low * (1 - 8 * ULP), high * (1 + 8 * ULP), "bounds for large orders")

    def whole_moment(self, s: int) -> Bound:
        """log Σ_j C(a,j)(1−q)^{a−j}q^j E_Q[e^{jL}], a = s + 1.

        Theorem: binomial expansion of a sampled moment at whole orders [Mironov, Talwar & Zhang 2019, Sec. 3.3]
        """
        if s == 0:
            return Bound(0.0, 0.0, "closed form")
        j = np.arange(s + 2, dtype=np.float64)
        weights = log_choose(s + 1.0, j) + (s + 1 - j) * math.log1p(-self.rate) + j * math.log(self.rate)
        inner = [self.inner.log_moment(float(i - 1)) for i in range(2, s + 2)]
        low, high = np.zeros(s + 2), np.zeros(s + 2)
        low[2:], high[2:] = [b.lower for b in inner], [b.upper for b in inner]
        # Σ of the weights alone is 1: sum the excess, so that small rates keep their digits
        sides = [log_one_plus_sum(weights[2:] + log_expm1(side[2:])) for side in (low, high)]
        error = ULP * (64 + 16 * math.log(s + 2) + 8 * float(np.abs(weights).max()))
        return Bound(sides[0] * (1 - error), sides[1] * (1 + error), "binomial sum")

    def rho_ceiling(self) -> float:
        """Sampling never raises a Rényi divergence (joint convexity)."""
        return self.inner.rho_ceiling()

    def rho_beyond(self, order: float) -> float:
        return min(super().rho_beyond(order), self.inner.rho_beyond(order))

    def moment_ceiling(self, s: float) -> float:
        """E_Q[(1−q+qe^L)^{s+1}] ≤ 1 − q + q·E_Q[e^{(s+1)L}], by convexity."""
        inner = self.inner.log_moment(s).upper
        return inner if self.rate == 1 else log_sum_up(math.log1p(-self.rate), math.log(self.rate) + inner)

    @property
    def reverse(self) -> PrivacyLoss:
        return Reversed(self, relation=self.relation.reversed)

    def renyi_curve(self) -> RenyiCurve | None:
        inner = self.inner.renyi_curve()
        return inner and poisson_curve(inner, self.rate)


@dataclass(frozen=True)
class WithoutReplacementLoss(Wrapped, Symmetric):
    """A batch of m out of n people, all subsets alike; neighbours have one person's data replaced. q = m/n.

    Both directions are q·H_β of the worse inner direction, β = 1 + (e^ε − 1)/q, for ε ≥ 0. (By advanced joint convexity
    the sampled pair mixes a pair with the person replaced and a pair with another person in the batch instead: both are
    replace-one neighbours of the batch.)

    Theorem: sampling without replacement under replace-one [Balle, Barthe & Gaboardi 2018, Thm 9; Zhu et al. 2022,
        Thm 11]
    """

    inner: PrivacyLoss
    n: int
    m: int
    relation: Relation = field(default=Relation.ReplaceOne, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        must_be_about(self, self.inner, Relation.ReplaceOne)
        object.__setattr__(self, "n", checks.whole("n", self.n, 1))
        object.__setattr__(self, "m", checks.whole("m", self.m, 1, self.n))

    @property
    def rate(self) -> float:
        """The chance that a given person is in the batch."""
        return self.m / self.n

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return dilute(lambda t: self.inner.worst(t, tolerance), self.rate, eps)

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        inner = worst_near(self.inner, min(delta / self.rate, 1.0), inner_epsilon(eps, self.rate), tolerance)
        return lambda t: dilute(inner, self.rate, t)

    def supremum(self) -> tuple[float, float]:
        top = mixed_top(max(self.inner.supremum()), self.rate)
        return top, top

    def leak(self) -> tuple[float, float]:
        share = product_up(Fraction(self.m, self.n), max(self.inner.leak()))
        return share, share

    def log_moment(self, s: float) -> Bound:
        if curve := self.renyi_curve():
            return curve.log_moment(s)
        if s <= 1 or not self.one_pair:
            return log_moment(self, s)
        large, small = self.large_moment(s), log_moment(self, s) if s <= MOST_WHOLE else Bound(0.0, math.inf, "")
        return Bound(max(large.lower, small.lower), min(large.upper, small.upper), small.method or large.method)

    def large_moment(self, s: float) -> Bound:
        """δ(t) ≥ q·δ_inner(t − log q), so M ≥ q^{s+1}·(M_inner − 1 − s − (s+1)q^{−s}), where the moments are integrals
        of profiles (divergences.py); the latter is M_inner up to e^{−40} if that is so large."""
        inner, power = self.inner.log_moment(s).lower, (s + 1) * math.log(self.rate)
        known = inner > 41 - power + math.log1p(s) and self.leak()[0] == 0
        low = power + inner - 1e-15 - 16 * ULP * (inner - power) if known else 0.0
        high = min(self.supremum()[0] * s, self.moment_ceiling(s)) if self.leak()[0] == 0 else math.inf
        return Bound(max(low, 0.0), max(high * (1 + 8 * ULP), low), "bounds for large orders")

    def rho_ceiling(self) -> float:
        """Sampling never raises a Rényi divergence (joint convexity)."""
        return self.inner.rho_ceiling()

    def rho_beyond(self, order: float) -> float:
        inner = max(self.inner.rho_beyond(order), self.inner.reverse.rho_beyond(order))
        return min(super().rho_beyond(order), inner)

    def moment_ceiling(self, s: float) -> float:
        """1 − q + q·M_inner(s) as for Poisson sampling, and at most s(s+1)·∫e^{−(s+1)t}dt = s from backwards."""
        inner = max(self.inner.log_moment(s).upper, self.inner.reverse.log_moment(s).upper)
        return log_sum_up(math.log(1 + s), math.log(self.rate) + inner)

    def renyi_curve(self) -> RenyiCurve | None:
        inner = self.inner.renyi_curve()
        return inner and without_replacement_curve(inner, self.rate)


def log_sum_up(a: float, b: float) -> float:
    """log(e^a + e^b) of logarithms that are off by some units in the last place, from above."""
    return float(np.logaddexp(a, b)) + 8 * ULP * (1 + max(abs(a), abs(b))) if math.isfinite(b) else b


def log_expm1(x: Floats) -> Floats:
    """log(e^x − 1) for x ≥ 0."""
    with np.errstate(divide="ignore"):
        return np.where(x > 30, x, np.log(np.expm1(np.clip(x, 0.0, 30.0))))


def log_one_plus_sum(logs: Floats) -> float:
    """log(1 + Σe^x)."""
    return float(np.logaddexp(0.0, logsumexp(logs)))
