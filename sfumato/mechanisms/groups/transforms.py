"""Concave transforms of counts, applied before noise: identity, square root, asinh, logarithm, or your own.

Along a concave function large counts lie closer together, so the same noise protects members of large groups better.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from flint import arb

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.numeric import Floats, floats, ndtr
from sfumato.noise.balls import Ball

NODES = np.linspace(-9.0, 9.0, 3601)
WEIGHTS = np.exp(-NODES * NODES / 2) / np.exp(-NODES * NODES / 2).sum()


class Estimator(Enum):
    """How a count is estimated from a noisy value. All estimators are post-processing."""

    UNBIASED = "unbiased"  # E x̂ = x
    CLOSEST = "closest"  # least mean absolute error for large groups
    MEDIAN = "median"  # the inverse function: too large and too small with equal probability

    def __repr__(self) -> str:
        return self.value


class Transform(ABC):
    """An increasing concave function g of counts 0, 1, 2, …, and its inverse.

    `ball` is only the target of an integer table. The privacy loss is computed from the table itself
    (`IntegerTable`), so it does not depend on how accurately g is computed, nor on g being exactly concave.
    """

    estimators: tuple[Estimator, ...] = (Estimator.MEDIAN,)

    @abstractmethod
    def ball(self, count: int) -> Ball:
        """g(count) at the working precision."""

    @abstractmethod
    def invert(self, y: Floats) -> Floats:
        """The real x with g(x) = y. Post-processing."""

    def estimate(self, y: Floats, sigma: float, estimator: Estimator) -> Floats:
        """The estimate of the count x from y = g(x) + N(0, σ²)."""
        return self.invert(y)

    def check_estimator(self, estimator: Estimator) -> Estimator:
        """The estimator itself; raises InvalidParameter if this transform does not have it."""
        if estimator not in self.estimators:
            raise InvalidParameter(
                f"{self!r} does not have this estimator.\n  found:  {estimator}\n"
                f"  do:     use {' or '.join(str(e) for e in self.estimators)}"
            )
        return estimator

    def absolute_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        """E|x̂ − x| by numerical integration over the noise; subclasses use closed forms where they exist."""
        x = self.estimate(self._noisy(count, sigma), sigma, estimator)
        return float(np.sum(WEIGHTS * np.abs(x - count)))

    def square_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        """E(x̂ − x)²."""
        x = self.estimate(self._noisy(count, sigma), sigma, estimator)
        return float(np.sum(WEIGHTS * (x - count) ** 2))

    def _noisy(self, count: float, sigma: float) -> Floats:
        return floats(self.evaluate(count) + sigma * NODES)

    @abstractmethod
    def evaluate(self, count: float) -> float:
        """g(count) as a double: for errors and figures, never for a release."""


@dataclass(frozen=True)
class Identity(Transform):
    """g(x) = x: the Gaussian mechanism, with the same error and v = rows²/2σ² for every group."""

    estimators = (Estimator.UNBIASED, Estimator.CLOSEST, Estimator.MEDIAN)

    def ball(self, count: int) -> Ball:
        return arb(count)

    def invert(self, y: Floats) -> Floats:
        return y

    def evaluate(self, count: float) -> float:
        return count


@dataclass(frozen=True)
class SquareRoot(Transform):
    """g(x) = √(x + a): an error proportional to √x. x̂ = Y² − a − s² has E x̂ = x and Var x̂ = 4s²(x + a) + 2s⁴.

    Theorem: moments of the square of a normal variable [immediate]
    """

    offset: float = 0.0  # a
    estimators = (Estimator.UNBIASED, Estimator.MEDIAN)

    def __post_init__(self) -> None:
        checks.number("offset", self.offset, 0.0, 1e9, allowed="a number of people, from 0 to a billion")
        object.__setattr__(self, "offset", float(self.offset))

    def ball(self, count: int) -> Ball:
        return (arb(count) + arb(self.offset)).sqrt()

    def invert(self, y: Floats) -> Floats:
        return floats(y * np.abs(y) - self.offset)

    def evaluate(self, count: float) -> float:
        return math.sqrt(count + self.offset)

    def estimate(self, y: Floats, sigma: float, estimator: Estimator) -> Floats:
        if estimator is Estimator.MEDIAN:
            return self.invert(y)
        return floats(y * y - (self.offset + sigma * sigma))


FAR = 700.0  # e^y overflows a double beyond


@dataclass(frozen=True)
class Asinh(Transform):
    """g(x) = asinh(x/c): linear for counts below c, logarithmic above. With Y = g(x) + N(0, s²) and x̂ = κ·c·sinh Y:

    κ = e^{−s²/2}: E x̂ = x and Var x̂ = x²(e^{s²} − 1) + c²·sinh s².
    κ = e^{−s²}: E|x̂ − x| ≤ (2Φ(s) − 1)·√(x² + c²), nearly with equality for x ≫ c, where this κ is optimal.

    Theorem: mean and variance, and E|x̂ − x| ≤ Λ·√(x² + c²) with Λ = E|κe^{sN} − 1| [docs/theorems/groups.md, Theorem 3]
    """

    scale: float  # c
    estimators = (Estimator.UNBIASED, Estimator.CLOSEST, Estimator.MEDIAN)

    def __post_init__(self) -> None:
        checks.number("scale", self.scale, 1e-6, 1e9, allowed="a number of people, from a millionth to a billion")
        object.__setattr__(self, "scale", float(self.scale))

    def ball(self, count: int) -> Ball:
        return (arb(count) / arb(self.scale)).asinh()

    def invert(self, y: Floats) -> Floats:
        return self._sinh(y, self.scale)

    def evaluate(self, count: float) -> float:
        return math.asinh(count / self.scale)

    def estimate(self, y: Floats, sigma: float, estimator: Estimator) -> Floats:
        return self._sinh(y, self.scale * kappa(sigma, estimator))

    def _sinh(self, y: Floats, factor: float) -> Floats:
        """factor·sinh y as factor·(e^y − e^{−y})/2: much faster, with an error below 1e-15·c near 0."""
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
    """The factor κ of e^Y for this estimator."""
    share = {Estimator.UNBIASED: 0.5, Estimator.CLOSEST: 1.0, Estimator.MEDIAN: 0.0}[estimator]
    return math.exp(-share * sigma * sigma)


def relative_mean_error(sigma: float, estimator: Estimator) -> float:
    """Λ = E|κe^{sN} − 1|: the mean relative error of large groups.

    With k = κ and m = ln(1/k)/s: k·e^{s²/2}(1 − 2Φ(m − s)) + 2Φ(m) − 1.
    """
    k = kappa(sigma, estimator)
    m = -math.log(k) / sigma
    at, moved = ndtr(floats([m, m - sigma]))
    return float(k * math.exp(sigma * sigma / 2) * (1 - 2 * moved) + 2 * at - 1)


@dataclass(frozen=True)
class Log(Transform):
    """g(x) = ln(x + a) with a > 0, which is finite for an empty group: an error proportional to x + a.

    x̂ = κ·e^Y − a, and the law of (x̂ + a)/(x + a) does not depend on x: E|x̂ − x| = Λ·(x + a), Λ = E|κe^{sN} − 1|.

    Theorem: among all estimators κ·e^Y the one with κ = e^{−s²} has the least mean absolute error, 2Φ(s) − 1
        [docs/theorems/groups.md, Theorem 3]
    """

    offset: float = 1.0  # a
    estimators = (Estimator.UNBIASED, Estimator.CLOSEST, Estimator.MEDIAN)

    def __post_init__(self) -> None:
        checks.number("offset", self.offset, 1e-6, 1e9, allowed="a number of people, from a millionth to a billion")
        object.__setattr__(self, "offset", float(self.offset))

    def ball(self, count: int) -> Ball:
        return (arb(count) + arb(self.offset)).log()

    def invert(self, y: Floats) -> Floats:
        return floats(np.exp(np.clip(y, -FAR, FAR)) - self.offset)

    def evaluate(self, count: float) -> float:
        return math.log(count + self.offset)

    def estimate(self, y: Floats, sigma: float, estimator: Estimator) -> Floats:
        return floats(kappa(sigma, estimator) * np.exp(np.clip(y, -FAR, FAR)) - self.offset)

    def absolute_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        return (count + self.offset) * relative_mean_error(sigma, estimator)

    def square_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        """E(κe^{sN} − 1)² = m²e^{s²} − 2m + 1, m = κe^{s²/2}, in a form without cancellation."""
        m, t = kappa(sigma, estimator) * math.exp(sigma * sigma / 2), sigma * sigma
        return (count + self.offset) ** 2 * (m * m * math.expm1(t) + (m - 1) ** 2)


MOST = 10**15  # larger sizes count as this


@dataclass(frozen=True)
class Given(Transform):
    """Your own increasing concave function of counts, and its inverse if there is a closed form.

    Doubles are accurate enough: the table consists of integers, and the privacy loss is computed from these. A function
    that is not concave is refused when the table is built. Without `inverse`, values are interpolated from 0 to 10¹⁵.
    """

    function: Callable[[float], float] = field(repr=False)
    inverse: Callable[[float], float] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.function) or not (self.inverse is None or callable(self.inverse)):
            raise InvalidParameter(
                f"function must be callable with a count.\n  found:  a {type(self.function).__name__}\n"
                "  do:     give such as lambda x: math.log1p(x / 50)"
            )

    def ball(self, count: int) -> Ball:
        return arb(self.evaluate(float(count)))

    def evaluate(self, count: float) -> float:
        found = self.function(count)
        if isinstance(found, complex) or not math.isfinite(float(found)):
            raise InvalidParameter(
                f"function must return a finite number for every count from 0 to 1e15.\n"
                f"  found:  {found!r} at {count:g}\n  do:     give a function such as lambda x: math.log1p(x / 50)"
            )
        return float(found)

    def invert(self, y: Floats) -> Floats:
        if self.inverse is not None:
            return floats([self.inverse(float(one)) for one in y.reshape(-1)]).reshape(y.shape)
        x = np.concatenate([np.arange(256.0), np.geomspace(256, MOST, 8192)])
        return floats(np.interp(y, [self.evaluate(float(one)) for one in x], x))
