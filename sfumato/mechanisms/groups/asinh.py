"""asinh(x/c): a straight line for counts below c, a logarithm above."""

import math
from dataclasses import dataclass

import numpy as np
from flint import arb

from sfumato import checks
from sfumato.loss.numeric import Floats, floats, ndtr
from sfumato.mechanisms.groups.transform import Estimator, Transform
from sfumato.noise.balls import Ball

FAR = 700.0  # beyond, e^y is no double


@dataclass(frozen=True)
class Asinh(Transform):
    """g(x) = asinh(x/c). With Y = g(x) + N(0, s²) and x̂ = κ·c·sinh Y:

    κ = e^{−s²/2}: E x̂ = x and Var x̂ = x²(e^{s²} − 1) + c²·sinh s².
    κ = e^{−s²}: E|x̂ − x| ≤ (2Φ(s) − 1)·√(x² + c²), nearly with equality for x ≫ c, where no multiple does better.

    Theorem: mean and variance, and E|x̂ − x| ≤ Λ·√(x² + c²) with Λ = E|κe^{sN} − 1| [docs/theorems/groups.md, Theorem 3]
    """

    scale: float  # c
    estimators = (Estimator.UNBIASED, Estimator.CLOSEST, Estimator.MEDIAN)

    def __post_init__(self) -> None:
        checks.number("scale", self.scale, 1e-6, 1e9, allowed="a number of people, from a millionth to a billion")
        object.__setattr__(self, "scale", float(self.scale))

    def ball(self, count: int) -> Ball:
        return (arb(count) / arb(self.scale)).asinh()

    def back(self, y: Floats) -> Floats:
        return self._sinh(y, self.scale)

    def forth(self, count: float) -> float:
        return math.asinh(count / self.scale)

    def estimate(self, y: Floats, sigma: float, estimator: Estimator) -> Floats:
        return self._sinh(y, self.scale * kappa(sigma, estimator))

    def _sinh(self, y: Floats, factor: float) -> Floats:
        """factor·sinh y as (e^y − e^{−y})/2: off by less than 1e-15·c near 0, and much quicker."""
        up = np.exp(np.clip(y, -FAR, FAR))
        up *= factor / 2
        up -= (factor / 2) ** 2 / up
        return floats(up)

    def square_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        """Var + bias²: E sinh Y = e^{s²/2} sinh g and E sinh² Y = (e^{2s²} cosh 2g − 1)/2."""
        k, t = kappa(sigma, estimator), sigma * sigma
        mean = k * math.exp(t / 2)
        spread = mean * mean * (count * count * math.expm1(t) + self.scale**2 * math.sinh(t))
        return spread + ((mean - 1) * count) ** 2

    def absolute_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        """E|x̂ − x| = m·c(e^g Φ(s − n) − e^{−g} Φ(−s − n)) − 2xΦ(−n) − (m − 1)x, with m = κe^{s²/2} and n the noise at
        which x̂ = x."""
        c, k, g = self.scale, kappa(sigma, estimator), math.asinh(count / self.scale)
        m, n = k * math.exp(sigma * sigma / 2), (math.asinh(count / (k * c)) - g) / sigma
        inside, outside, half = ndtr(floats([sigma - n, -sigma - n, -n]))
        return float(m * c * (math.exp(g) * inside - math.exp(-g) * outside) - 2 * count * half - (m - 1) * count)


def kappa(sigma: float, estimator: Estimator) -> float:
    """What e^Y is multiplied by."""
    share = {Estimator.UNBIASED: 0.5, Estimator.CLOSEST: 1.0, Estimator.MEDIAN: 0.0}[estimator]
    return math.exp(-share * sigma * sigma)


def relative(sigma: float, estimator: Estimator) -> float:
    """Λ = E|κe^{sN} − 1|: the mean relative error of large groups.

    With k = κ and m = ln(1/k)/s: k·e^{s²/2}(1 − 2Φ(m − s)) + 2Φ(m) − 1.
    """
    k = kappa(sigma, estimator)
    m = -math.log(k) / sigma
    at, moved = ndtr(floats([m, m - sigma]))
    return float(k * math.exp(sigma * sigma / 2) * (1 - 2 * moved) + 2 * at - 1)
