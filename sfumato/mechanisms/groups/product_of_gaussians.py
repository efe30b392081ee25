"""Noise multiplied with noise: Algorithm 1 of the open problem on larger groups, with its true privacy loss.

Y = X·Z with X ~ N(x, σ²), σ² = 1/2ρ, and Z ~ N(1, r²). As post-processing of X it costs at most ρ. It costs at least
ρ/2 whatever the size of the group, because zCDP is about all orders and the tails of Y still depend on X.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from sfumato import checks
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.numeric import Floats, floats, logsumexp
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.laplace_gaussian import GaussianNoise
from sfumato.mechanisms.examples import WHOLE, Example, Inputs, Neighbours
from sfumato.mechanisms.groups.groupwise import GroupwiseLoss, Policy
from sfumato.mechanisms.groups.transformed import integer_counts, reshape_like
from sfumato.noise import Sampler, rounded_gaussian
from sfumato.noise.lazy import Draw
from sfumato.rounding import sqrt_up

FINE = 20  # X lies on a lattice with a step of at most σ/2^FINE
NODES = np.linspace(0.0, 1.0, 121)
DEEP = 42.0  # terms below e^-42 of the largest are left out
CHUNK = 4000
FINER = 4  # factor of points for profiles, whose integrand is cut where it changes sign


@dataclass(frozen=True)
class ProductPolicy(Policy):
    """v = ρ for everybody; the true v is at least ρ/2 for every size."""

    rho: float

    def member(self, size: int) -> GaussianLoss:
        return GaussianLoss(sqrt_up(2, self.rho))

    def zcdp(self, size: int) -> tuple[Bound, Bound]:
        return Bound(self.rho / 2, self.rho, "tails and post-processing"), Bound(0.0, 0.0, "post-processing")

    def everyone(self) -> GaussianLoss:
        return self.member(0)


@dataclass(frozen=True)
class ProductOfGaussians(Mechanism[ArrayLike, float | Floats]):
    """round(X + r·|X|·N) with X = x + N(0, 1/2ρ), for each count x. It is charged ρ, the price of X.

    Theorem: liminf D_a(Y_{x+1}‖Y_x)/a ≥ ρ/2 as a → ∞, for every x; so v ≥ ρ/2 in any (v, ξ) that holds for all orders
        [docs/theorems/groups.md, Theorem 7]
    """

    rho: float
    relative_error: float
    use = "to compare with: noise that is multiplied, not added"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checks.number("rho", self.rho, 1e-9, 1e6, allowed="a number from 1e-9 to 1e6"))
        r = checks.number("relative_error", self.relative_error, 1e-4, 1.0, allowed="a number from 1e-4 to 1")
        object.__setattr__(self, "relative_error", r)

    @property
    def policy(self) -> GroupwiseLoss:
        return GroupwiseLoss((ProductPolicy(self.rho),))

    def loss(self) -> GaussianLoss:
        return ProductPolicy(self.rho).everyone()

    @cached_property
    def sigma(self) -> float:
        """The standard deviation of X: 1/√2ρ, rounded up."""
        return sqrt_up(1 / (2 * Fraction(self.rho)))

    @cached_property
    def bits(self) -> int:
        """X lies on the multiples of 2^−bits. These include all counts, so rounding X is post-processing."""
        return max(0, FINE + 1 - math.frexp(self.sigma)[1])

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(rounded_gaussian(Fraction(self.sigma) * 2**self.bits), source=self.source)

    def release(self, value: ArrayLike) -> float | Floats:
        counts = integer_counts(value)
        r = Fraction(self.relative_error)
        found = []
        for x in counts.reshape(-1).tolist():
            first = x + Fraction(self.sampler.one(), 2**self.bits)
            found.append(Draw(GaussianNoise(), self.source).round_to_integer(first, r * abs(first)))
        return reshape_like(found, counts)

    def law(self, size: int) -> "Product":
        """The law of Y, for numerical study: its numbers are estimates, not bounds."""
        return Product(size, 1 / math.sqrt(2 * self.rho), self.relative_error)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        pairs = (Neighbours(4, 3), Neighbours(0, 1), Neighbours(9, 8))
        return (Example(cls(0.5, 0.3), pairs, Inputs("integers", WHOLE), step=Fraction(1)),)


@dataclass(frozen=True)
class Product:
    """Y = X·Z, X ~ N(x, σ²), Z ~ N(1, r²).

    Y/(σr) = (U² − V²)/2 with independent U, V of variance 1 and means (x/σ ± 1/r)/√2. On the hyperbola of one y, with
    w = 2|y|/(σr): f(y) = (1/2πσr)·∫ Σ exp(C − (w/2)cosh 2t + √w(a cosh t + b sinh t)) dt, over two branches (a, b).

    Theorem: the product of two normal variables has this density; it is also a double series of Bessel functions
        [Cui, Yu, Iommelli & Kong 2016, Thm 2.1]
    """

    x: float
    sigma: float
    r: float

    @property
    def means(self) -> tuple[float, float]:
        p, q = self.x / self.sigma, 1 / self.r
        return (p + q) / math.sqrt(2), (p - q) / math.sqrt(2)

    def log_density(self, y: Floats) -> Floats:
        """ln f at many y ≠ 0, by the trapezoid rule around the largest term."""
        return np.concatenate([self._part(y[i : i + CHUNK]) for i in range(0, y.size, CHUNK)])

    def _part(self, y: Floats) -> Floats:
        u, v = self.means
        w = 2 * np.abs(y) / (self.sigma * self.r)
        right = y > 0
        found = np.full(y.size, -np.inf)
        for sign in (1, -1):
            a, b = np.where(right, sign * u, sign * v), np.where(right, v, u)
            found = np.logaddexp(found, integral(w, a, b))
        return floats(found - (u * u + v * v) / 2 - math.log(2 * math.pi * self.sigma * self.r))

    def grid(self, order: float) -> tuple[Floats, Floats]:
        """Points y, evenly spaced in ln|y| as far out as this order needs, and the logarithms of their weights."""
        u, v = self.means
        more = order / (self.sigma * math.sqrt(2)) + 15
        step = min(math.hypot(self.r, self.sigma / max(self.x, 1.0)) / 12, 0.02)  # of the width of Y in ln|y|
        parts = []
        for centre, sign in ((u, 1), (abs(v), -1)):
            far = self.sigma * self.r * (centre + more) ** 2 / 2
            t = np.arange(math.log(1e-14 * max(self.x, self.sigma)), math.log(far) + step, step)
            parts.append((sign * np.exp(t), t + math.log(step)))
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def integral(w: Floats, a: Floats, b: Floats) -> Floats:
    """ln ∫ exp(−(w/2)cosh 2t + √w(a cosh t + b sinh t)) dt.

    With p = e^t the largest term is at a root of w(p⁴ − 1) − √w((a + b)p³ + (b − a)p).
    """
    root = np.sqrt(w)

    def exponent(t: Floats) -> Floats:
        shape = (-1,) + (1,) * (t.ndim - 1)
        scale, left, right = (x.reshape(shape) for x in (root, a, b))
        p = np.exp(t)
        even, odd = scale * (p + 1 / p) / 2, scale * (p - 1 / p) / 2  # √w·cosh t and √w·sinh t
        return floats(left * even + right * odd - (even * even + odd * odd) / 2)

    matrix = np.zeros((w.size, 4, 4))
    matrix[:, 0, 0], matrix[:, 0, 2], matrix[:, 0, 3] = (a + b) / root, (b - a) / root, 1.0
    matrix[:, 1, 0] = matrix[:, 2, 1] = matrix[:, 3, 2] = 1.0
    roots = np.linalg.eigvals(matrix)
    real = (np.abs(roots.imag) < 1e-6 * np.abs(roots)) & (roots.real > 0)
    t = np.log(np.where(real, roots.real, 1.0))
    height = np.where(real, exponent(t), -np.inf)
    best = t[np.arange(w.size), height.argmax(axis=1)]
    top = exponent(best)
    ends = []
    for sign in (-1.0, 1.0):
        reach = np.full(w.size, 1e-3)
        while np.any(low := exponent(best + sign * reach) > top - DEEP):
            reach = np.where(low, reach * 1.3, reach)
        ends.append(reach)
    width = ends[0] + ends[1]
    values = exponent((best - ends[0])[:, None] + width[:, None] * NODES)
    peak = values.max(axis=1)
    return floats(peak + np.log(np.exp(values - peak[:, None]).sum(axis=1) * width / (NODES.size - 1)))


@dataclass(frozen=True)
class ProductPair:
    """Rényi divergences and the profile of two such laws. Estimates, not bounds."""

    p: Product
    q: Product
    largest: float = 32.0  # the largest order that will be evaluated

    @cached_property
    def logs(self) -> tuple[Floats, Floats, Floats]:
        y, weight = self.p.grid(self.largest)
        return self.p.log_density(y), self.q.log_density(y), weight

    @property
    def missing(self) -> float:
        """The larger deviation of the two masses from 1: an indication of the numerical error."""
        p, q, weight = self.logs
        return max(abs(math.expm1(logsumexp(p + weight))), abs(math.expm1(logsumexp(q + weight))))

    def renyi(self, order: float) -> float:
        """D_a(P‖Q); the Kullback–Leibler divergence at a = 1."""
        p, q, weight = self.logs
        if order == 1:
            return float(np.sum(np.exp(p + weight) * (p - q)))
        return logsumexp(order * p + (1 - order) * q + weight) / (order - 1)

    def delta(self, epsilon: float) -> float:
        """H_{e^ε}(P‖Q): the integral of a spline over the intervals where the integrand is positive."""
        return sum(self._positive(sign, epsilon) for sign in (1, -1))

    def _positive(self, sign: int, epsilon: float) -> float:
        y, _ = self.p.grid(self.largest)
        side = np.sign(y) == sign
        t = np.log(np.abs(y[side]))
        fine = np.linspace(t[0], t[-1], FINER * t.size)
        p, q = (CubicSpline(t, one[side])(fine) + fine for one in self.logs[:2])
        over = CubicSpline(fine, np.exp(p) * -np.expm1(np.minimum(q - p + epsilon, 700.0)))
        cuts = [t[0], *over.roots(extrapolate=False), t[-1]]
        return sum(float(over.integrate(a, b)) for a, b in pairwise(cuts) if over((a + b) / 2) > 0)
