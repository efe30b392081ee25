"""Losses on an interval, perhaps sampled: atoms at both ends and an exponential density between them.

Under Q the inner loss l has mass `top` at ε, `bottom` at −ε, and the density `density`·e^{−(l+ε)/2} between: Laplace
noise, bounded range, coins. Sampled at a rate q, G = 1 − q + qe^l, and
    M(z) = E_Q[G^s],  s = z + 1 and L = log G for (P, Q),  s = −z and L = −log G for (Q, P).
The density is integrated by Gauss's rule, whose points are few: the integrand is analytic around the interval. M − 1 is
summed as E_Q[G^s − 1], so that its error is relative to the size of sL and not to 1: that lets counts reach 10¹².

Theorem: Gauss quadrature of functions analytic in an ellipse [Trefethen 2019, Approximation Theory, Thm 19.3]
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from sfumato.loss.compose.transforms.base import Discs, Refused, Tilted, Transform, powers
from sfumato.loss.compose.transforms.sampled_gaussian import TiltedSampledGaussian, drop, turn_minus_one
from sfumato.loss.numeric import ULP, Floats, floats

SIZES = (8, 12, 16, 24, 32, 48, 64, 96, 192)  # points of Gauss's rule
BELOW = 1.5 * 2.0 ** -np.arange(0.0, 60.0)  # how far the ellipse reaches off the real axis: less than π/2
LONG = np.longdouble
POINT = 2 * ULP  # error of the points
WEIGHT = (8 if np.finfo(LONG).eps < 1e-18 else 2.0**20) * ULP  # of their weights, relatively
MOST_WORK = 20_000_000  # frequencies × points
CELLS = 128
LARGEST = 20.0  # ε: beyond, e^ε costs too many digits


@dataclass(frozen=True)
class BoundedTransform(Transform):
    """`count` steps; `sign` is +1 for (P, Q), −1 for (Q, P)."""

    rate: float
    eps: float
    top: float
    bottom: float
    density: float
    sign: int = 1
    count: float = 1.0

    def times(self, count: int) -> "BoundedTransform":
        return replace(self, count=self.count * count)

    @property
    def reverse(self) -> "BoundedTransform":
        return replace(self, sign=-self.sign)

    def power(self, theta: Floats) -> Floats:
        """The real part of s."""
        return theta + 1 if self.sign > 0 else -theta

    def losses(self, inner: Floats) -> Floats:
        """log G."""
        return floats(np.log1p(self.rate * np.expm1(inner)))

    def points(self, size: int) -> tuple[Floats, Floats]:
        """Inner losses and their Q-masses: the two atoms, then Gauss's points."""
        if self.density == 0:
            return floats([self.eps, -self.eps]), floats([self.top, self.bottom])
        x, w = gauss(size)
        masses = w * (self.eps * self.density) * np.exp(-self.eps * (x + 1) / 2)
        return np.append([self.eps, -self.eps], self.eps * x), np.append([self.top, self.bottom], masses)

    def log_error(self, size: int, s: float, omega: float) -> float:
        """log of the error of Gauss's rule, for all frequencies up to ω.

        On the ellipse |Re l| ≤ a = ε(ρ + 1/ρ)/2, |Im l| ≤ b = ε(ρ − 1/ρ)/2 < π/2, so 1 − q + qe^{−a}cos b ≤ |G| ≤
        1 − q + qe^a and |arg G| ≤ qe^a sin b/(1 − q + qe^a cos b), also ≤ b. With n points the rule errs by at most
        64/15·max|f|·ρ^{2−2n}/(1 − ρ⁻²).
        """
        if self.density == 0:
            return -math.inf
        q, ratio = self.rate, BELOW / self.eps
        log_rho = np.arcsinh(ratio)  # b = ε·sinh(log ρ), a = ε·cosh(log ρ)
        a = self.eps * np.sqrt(1 + ratio * ratio)
        grown = q * np.exp(a)
        turn = np.minimum(BELOW, grown * np.sin(BELOW) / (1 - q + grown * np.cos(BELOW)))
        size_of = s * (np.log1p(q * np.expm1(a)) if s > 0 else np.log(1 - q + q * np.exp(-a) * np.cos(BELOW)))
        log_f = math.log(self.eps * self.density) + (a - self.eps) / 2 + size_of + omega * turn
        return float((1.46 + log_f - (2 * size - 2) * log_rho - np.log(-np.expm1(-2 * log_rho))).min())

    def log_moments(self, theta: Floats) -> Floats:
        inner, masses = self.points(SIZES[-1] if self.eps > 1 else 24)
        powers_ = np.multiply.outer(self.power(theta), self.losses(inner))
        excess = np.expm1(np.minimum(powers_, 200.0)) @ masses
        peak = powers_.max(axis=1)
        large = peak + np.log(np.exp(powers_ - peak[:, None]) @ masses)
        return floats(self.count * np.where(peak < 100, np.log1p(np.maximum(excess, -0.999)), large))

    def tilt(self, theta: float) -> Tilted:
        return tilted_term(self, theta)


@lru_cache(maxsize=len(SIZES))
def gauss(size: int) -> tuple[Floats, Floats]:
    """Points and weights 2/((1 − x²)P′(x)²) on [−1, 1]: numpy's points and one of Newton's steps in extended
    precision. Numpy's own weights are off by thousands of units in the last place."""
    x = np.polynomial.legendre.leggauss(size)[0].astype(LONG)
    for last in (False, True):
        before, here = np.ones_like(x), x
        for k in range(2, size + 1):
            before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / LONG(k)
        slope = size * (x * here - before) / (x * x - 1)
        if last:
            return floats(x), floats(2 / ((1 - x * x) * slope * slope))
        x = x - here / slope
    raise AssertionError("unreachable")


@lru_cache(maxsize=16)
def tilted_term(term: BoundedTransform, theta: float) -> "TiltedBounded":
    """The certified view: planning asks for it, and so does the contour."""
    return TiltedBounded(term, theta)


class Rule:
    """The points for frequencies up to ω, their weights under the tilt, and how well these are known."""

    def __init__(self, term: BoundedTransform, theta: float, omega: float) -> None:
        s = float(term.power(floats(theta)))
        need = math.log(max(term.count, 1.0))  # M(θ) ≥ 1 for θ ≥ 0: errors need not be less than its rounding
        errors = [term.log_error(size, s, omega) for size in SIZES]
        size = next((size for size, error in zip(SIZES, errors, strict=True) if error < -38 - need), SIZES[-1])
        if errors[SIZES.index(size)] > -25 - need:
            raise Refused("the quadrature would take too many points")
        inner, masses = term.points(size)
        losses = term.losses(inner)
        slips = loss_slips(term, inner, losses)
        a = s * losses
        known = WEIGHT + 64 * ULP  # of the masses, relatively: Gauss's weights, ε, exponentials
        self.relative = known + abs(s) * slips + ULP * (16 + 2 * np.abs(a))
        quadrature = 2 * math.exp(min(errors[SIZES.index(size)], 0.0))  # of G^s and of 1
        growth = masses * np.expm1(np.minimum(a, 600.0))
        excess = math.fsum(growth)
        if float(a.max()) < 100 and -0.5 < excess < 0.5:
            total = 1 + excess
            self.log_moment = math.log1p(excess)
            weights = (masses + growth) / total
            # masses sum to 1 in truth: their errors count by |G^s − 1| only
            slip = float(np.abs(growth) @ (known + ULP * (16 + 2 * np.abs(a)))) / total + float(weights @ slips) * abs(
                s
            )
        else:
            peak = float(a.max())
            weights = masses * np.exp(a - peak)
            total = float(weights.sum())
            weights = weights / total
            self.log_moment = peak + math.log(total)
            slip = float(weights @ self.relative) + ULP * (32 + len(a) + 4 * abs(peak))
        lost = quadrature * math.exp(min(-self.log_moment, 700.0))
        self.slip = 1.01 * (slip + lost) + 4 * ULP * abs(self.log_moment)
        self.error = 2 * lost
        self.weights, self.losses, self.slips = weights / float(weights.sum()), losses, slips


def loss_slips(term: BoundedTransform, inner: Floats, losses: Floats) -> Floats:
    """Errors of log G at most: of l = εx, whose share in G is r = qe^l/G ≤ 1; of q(e^l − 1), relatively, and of the
    logarithm: |q(e^l − 1)/G| = |1 − 1/G|."""
    share = np.minimum(term.rate * np.exp(inner - losses), 1.0)
    moved = (POINT * term.eps + 2 * ULP * np.abs(inner)) * share
    return floats(moved + ULP * (4 * np.abs(losses) + 8 * np.abs(np.expm1(-losses))))


class TiltedBounded(Tilted):
    """Discs from Gauss's rule; ceilings from the variance, and from the density and its variation."""

    def __init__(self, term: BoundedTransform, theta: float) -> None:
        self.term, self.theta = term, theta
        self.rule = rule = Rule(term, theta, 0.0)
        self.log_moment, self.slip = term.count * rule.log_moment, term.count * rule.slip
        self.mean = term.sign * float(rule.weights @ rule.losses)
        self.centre = term.count * self.mean
        self.drift = abs(self.centre)

    def discs(self, omega: Floats) -> Discs:
        """φe^{−iωc} − 1 = Σ w(e^{iωy} − 1), y = L − c: weights sum to one, so their errors count by |e^{iωy} − 1|."""
        rule = Rule(self.term, self.theta, float(omega[-1]))
        w, y = rule.weights, self.term.sign * rule.losses - self.mean
        if len(omega) * len(w) > MOST_WORK:
            raise Refused("too many frequencies")
        known = float(w @ rule.relative)
        reach = np.minimum(2.0, omega * math.sqrt(float(w @ (y * y))))
        slip = float(w @ rule.slips) + 4 * ULP * (float(w @ np.abs(y)) + abs(self.mean))
        if len(omega) * len(w) < 300_000:
            base = turn_minus_one(np.multiply.outer(omega, y)) @ w
            error = ULP * (len(w) + 32) * reach
        else:
            base = TiltedSampledGaussian.matrix(omega, w, y)
            error = 10 * ULP * (len(w) + 32) * reach
        error = error + np.minimum(2 * known, omega * float(w @ (rule.relative * np.abs(y)))) + known * reach
        return powers(base, 1.01 * (error + omega * slip + rule.error), self.term.count)

    def log_ceiling(self, omega: Floats) -> Floats:
        """The least of three bounds, to the power of the count. Let R be the length of the interval of losses.

        Layer: the tilted density is at least g on all of it, so |φ| ≤ 1 − gR(1 − σ(ωR/2)) as in sampled_gaussian.py.
        Variation: (log density)′ = −3/2 + (s+1)r in l, and r = qe^l/G rises: the density falls and then rises, or only
        falls, so its variation is at most twice the sum of its ends, and |φ| ≤ atoms + variation/ω.
        Variance: |φ|² = E cos ω(L − L') ≤ 1 − 4ω²Var/π² for ωR ≤ π; beyond that the others hold.
        """
        edge = math.pi / self.length
        near = 0.5 * np.log1p(-np.minimum((2 / math.pi * np.minimum(omega, edge)) ** 2 * self.variance, 1 - 1e-12))
        later = self.beyond(np.maximum(omega, edge))
        result = np.minimum(self.beyond(omega), np.where(omega < edge, np.maximum(near, later), 0.0))
        return floats(self.term.count * np.minimum(result, 0.0))

    def beyond(self, omega: Floats) -> Floats:
        """log of the lesser of what the layer and the variation say."""
        layer = np.log1p(-np.minimum(self.layer * drop(omega * (self.length / 2)), 1 - 1e-12))
        variation = np.log(np.minimum(self.atoms + self.variation / omega, 1.0))
        return floats(np.minimum(layer, variation))

    @cached_property
    def length(self) -> float:
        ends = self.term.losses(floats([self.term.eps, -self.term.eps]))
        return float(ends[0] - ends[1])

    @cached_property
    def variance(self) -> float:
        """Of the tilted loss, from below."""
        rule = self.rule
        y = rule.losses - float(rule.weights @ rule.losses)
        value = float(rule.weights @ (y * y))
        return max(value * (1 - 1e-9) - 4 * self.length**2 * (float(rule.weights @ rule.relative) + rule.error), 0.0)

    @cached_property
    def atoms(self) -> float:
        """Tilted mass at both ends, from above."""
        return min(float(self.rule.weights[:2] @ (1 + 2 * self.rule.relative[:2])) + 2 * self.rule.error + 1e-12, 1.0)

    @cached_property
    def log_density(self) -> Floats:
        """log of the tilted density of the loss at equal steps of l from end to end."""
        term = self.term
        s = float(term.power(floats(self.theta)))
        inner = np.linspace(-term.eps, term.eps, CELLS + 1)
        losses = term.losses(inner)
        log_g = (s + 1) * losses - (inner + term.eps) / 2 - inner
        return floats(log_g + math.log(term.density / term.rate) - self.rule.log_moment)

    @cached_property
    def layer(self) -> float:
        """gR: |(log density)′| ≤ 3/2 + |s + 1| between points; from below."""
        if self.term.density == 0:
            return 0.0
        slope = 1.5 + abs(float(self.term.power(floats(self.theta))) + 1)
        lowest = float(self.log_density.min()) - slope * self.term.eps / CELLS
        return min(math.exp(min(lowest, 700.0)) * self.length, 1.0) * (1 - 1e-6)

    @cached_property
    def variation(self) -> float:
        if self.term.density == 0:
            return 0.0
        ends = np.minimum(self.log_density[[0, -1]], 600.0)
        return 2 * float(np.exp(ends).sum()) * (1 + 1e-6)
