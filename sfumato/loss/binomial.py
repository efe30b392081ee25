"""Equal randomized responses, composed: a binomial law, exactly."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.loss.base import TOLERANCE
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Enclosure, Floats


@dataclass(frozen=True)
class Binomial:
    """k-fold randomized response with ε₀, of which `leak` gives everything away.

    L = (2X − k)ε₀ with X ~ Bin(k, e^ε₀/(1+e^ε₀)) under P;
    δ(t) = leak + (1 − leak)·Σ_{(2i−k)ε₀ > t} P[X = i](1 − e^{t−(2i−k)ε₀}): positive terms only.

    Theorem: optimal composition of equal (ε, δ) [Kairouz, Oh & Viswanath 2015, Thm 3.3]
    """

    eps: float
    count: int
    leak: float

    method = "closed form"

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        sums = np.array([self.finite(float(t)) for t in eps.ravel()]).reshape(*eps.shape, 2)
        value = self.leak + (1 - self.leak) * sums[..., 0]
        error = sums[..., 1] + ULP * (400 + 16 * math.log(self.count + 2) + 8 * np.minimum(eps, 1e3)) * value
        return Enclosure(np.maximum(value - error, 0.0), np.minimum(value + error, 1.0))

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        """Sharp everywhere."""
        return self.forward

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """Between two atoms δ = A − e^t·B with A = P[L > t] and B = Q[L > t]: solve there, then certify both sides."""
        wanted = (goal - self.leak) / (1 - self.leak) if self.leak < 1 else 0.0
        if wanted <= 0 or self.eps * self.count > 600:
            return None
        if self.forward(np.zeros(1)).upper[0] <= goal:
            return Bound(0.0, 0.0, self.method)
        i, pmf = self.law
        losses = (2 * i - self.count) * self.eps
        above = np.cumsum(pmf[::-1])[::-1]
        below = np.cumsum((pmf * np.exp(-losses))[::-1])[::-1]
        first = int(np.argmax(above - np.exp(losses) * below <= wanted))  # δ at the atoms falls, to 0 at the last one
        fall = float(above[first]) - wanted  # the slope, −dδ/dt = e^t·B
        if fall <= 0 or below[first] <= 0:
            return None
        t = math.log(fall / float(below[first]))
        here = self.forward(np.array([max(t, 0.0)]))
        step = 1.5 * float(max(here.upper[0] - goal, goal - here.lower[0])) / fall + 2 * ULP * abs(t)
        points = np.array([t - step, t + step])
        found = self.forward(np.maximum(points, 0.0))
        if points[0] > 0 and found.lower[0] > goal and found.upper[1] <= goal:
            return Bound(float(points[0]), float(points[1]), self.method)
        return None

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """P[X = i] for i from k/2 − 1 on, within 40 standard deviations and some of the mode.

        Theorem: P[X ≥ kp + x] ≤ e^{−x²/2kp(1−p)} for p ≥ ½: what lies beyond is below e^{−800} [Okamoto 1959, Thm 1]
        """
        k, p, rest = self.count, *self.odds
        mode = min(k, math.floor((k + 1) * p))
        reach = math.ceil(40 * math.sqrt(k * p * rest) + 60)
        i = np.arange(max(k // 2 - 1, mode - reach, 0), min(k, mode + reach) + 1, dtype=np.float64)
        return i, binomial_pmf(i, k, p, rest)

    @property
    def odds(self) -> tuple[float, float]:
        """P[X = 1] and P[X = 0] of one coin."""
        small = math.exp(-self.eps)
        return 1 / (1 + small), small / (1 + small)

    def finite(self, t: float) -> tuple[float, float]:
        """The sum for the part that does not leak, from its first term on until terms no longer matter, and its error.

        p and 1 − p are rounded: that moves log P[X = i] by 6 ulps of |i − kp|. A loss (2i−k)ε₀ − t is off by its ulps.
        """
        k, e = self.count, self.eps
        if e == 0 or t > k * e * (1 + 8 * ULP):
            return 0.0, 0.0
        i, pmf = self.law
        # one more at the left: rounding may have put it on the wrong side of t
        first = math.floor((t / e + k) / 2) - int(i[0])
        i, pmf = i[max(first, 0) :], pmf[max(first, 0) :]
        gap = np.maximum((2 * i - k) * e - t, 0.0)
        terms = -pmf * np.expm1(-gap)
        error = terms * (6 * np.abs(i - k * self.odds[0])) + pmf * np.exp(-gap) * (4 * ((2 * i - k) * e + t))
        return float(terms.sum()), float(error.sum()) * ULP + 1e-300


def binomial_pmf(i: Floats, k: int, p: float, q: float) -> Floats:
    """P[X = i] with relative accuracy for any k: Stirling's series for factorials and deviances without cancellation.

    The saddle-point form of Loader 2000: log P = σ(k) − σ(i) − σ(k−i) − D(i; kp) − D(k−i; kq) + ½log(k/(2πi(k−i))).
    """
    rest = k - i
    with np.errstate(divide="ignore", invalid="ignore"):
        log_pmf = stirling_error(np.array([float(k)])) - stirling_error(i) - stirling_error(rest)
        log_pmf = log_pmf - deviance(i, k * p) - deviance(rest, k * q)
        log_pmf += 0.5 * np.log(k / (2 * math.pi * i * rest))
    log_pmf = np.where(rest == 0, -k * math.log1p(q / p), log_pmf)
    result: Floats = np.exp(np.where(i == 0, k * math.log(q) if q > 0 else -np.inf, log_pmf))
    return result


def stirling_error(n: Floats) -> Floats:
    """log n! − [½log(2πn) + n log n − n], by its series for n ≥ 16 and from exact factorials below."""
    n = np.asarray(n, dtype=np.float64)
    m = np.maximum(n, 1.0)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / (1188 * m * m)) / (m * m)) / (m * m)) / (m * m)) / m
    small = np.minimum(n, 15).astype(int)
    result: Floats = np.where(n >= 16, series, SMALL[small])
    return result


SMALL = np.array(
    [0.0] + [math.lgamma(n + 1) - (0.5 * math.log(2 * math.pi * n) + n * math.log(n) - n) for n in range(1, 16)]
)


def deviance(x: Floats, m: float) -> Floats:
    """x log(x/m) + m − x, by its series where x is near m."""
    r = (x - m) / (x + m)
    series = np.zeros_like(x)
    for j in range(8, 0, -1):  # r² < 0.01: the ninth term is below 10⁻¹⁸ of the first
        series = series * r * r + 1 / (2 * j + 1)
    near = (x - m) * r + 2 * x * r**3 * series
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(x > 0, x * np.log(x / m) + m - x, m)
    result: Floats = np.where(np.abs(r) < 0.1, near, far)
    return result
