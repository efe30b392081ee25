"""Laws of a random number of runs, as far as the price of the best run depends on them; `noise` draws from them."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.describe import Part
from sfumato.loss.numeric import ULP, Floats, floats

LEAST_STOP = 1e-6
MOST_MEAN = 1e5


class RunLaw(Part, ABC):
    """The law of the number K of runs, known by f′(x)/f′(1), where f(x) = E[x^K].

    `slope(y)` is f′(1 − y)/f′(1): it falls from 1 at y = 0. `turn(a, c, weight)` is the only y, if any, where
    slope(y) − weight·slope(a·y + c) has derivative 0.
    """

    @property
    @abstractmethod
    def mean(self) -> float:
        """E[K], rounded up a little."""

    @property
    @abstractmethod
    def doubt(self) -> float:
        """Relative rounding error of `slope`, in generous terms."""

    @abstractmethod
    def slope(self, y: Floats) -> Floats:
        """f′(1 − y)/f′(1)."""

    @abstractmethod
    def turn(self, a: Floats, c: Floats, weight: Floats) -> Floats:
        """Where the difference of two slopes turns; NaN or outside [0, 1] where it does not."""

    @abstractmethod
    def miss_chance(self, share: float) -> float:
        """f(1 − share): the chance that no run falls on a given share of the candidates."""


@dataclass(frozen=True)
class NegativeBinomialRuns(RunLaw):
    """P(K = k) ∝ Γ(k + shape)/k!·(1 − stop)^k for k ≥ 1: at least one run, then as if each had a chance to be the last.

    f′(x) ∝ (1 − (1 − stop)x)^{−shape−1}. Shape 1 is the geometric law, shape 0 the logarithmic one; the smaller the
    shape, the smaller the price at one mean, and the more K varies.

    Theorem: a truncated negative binomial number of runs costs (2 + shape)·ε for ε-DP runs
        [Papernot & Steinke 2022, Thm 2; Liu & Talwar 2019, Thm 3.5]
    """

    stop: float
    shape: float = 0.0

    def __post_init__(self) -> None:
        allowed = "a probability from 1e-6 to 1 - 1e-6"
        object.__setattr__(self, "stop", checks.number("stop", self.stop, LEAST_STOP, 1 - LEAST_STOP, allowed=allowed))
        allowed = "a number from -0.9 to 1"
        object.__setattr__(self, "shape", checks.number("shape", self.shape, -0.9, 1.0, allowed=allowed))

    @staticmethod
    def of_mean(mean: float, shape: float = 0.0) -> "NegativeBinomialRuns":
        """The law with this mean, nearly: `stop` is found by bisection, and what is then used is `stop`."""
        goal = checks.number("mean", mean, 1.001, MOST_MEAN, allowed="a number of runs above 1")
        low, high = math.log(LEAST_STOP), math.log1p(-LEAST_STOP)
        if NegativeBinomialRuns(LEAST_STOP, shape).mean < goal:
            raise InvalidParameter(
                f"no law of shape {shape} has so many runs.\n  found:  a mean of {mean:g}\n"
                "  do:     ask for fewer, or for a larger shape"
            )
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if NegativeBinomialRuns(math.exp(middle), shape).mean > goal else (low, middle)
        return NegativeBinomialRuns(math.exp(high), shape)

    @property
    def normal(self) -> float:
        """shape/(1 − stop^shape), which is 1/ln(1/stop) at shape 0."""
        log = -math.log(self.stop)
        return 1 / log if self.shape == 0 else self.shape / -math.expm1(-self.shape * log)

    @property
    def mean(self) -> float:
        return self.normal * (1 - self.stop) / self.stop * (1 + 64 * ULP)

    @property
    def doubt(self) -> float:
        return 64 * ULP

    def slope(self, y: Floats) -> Floats:
        return floats((self.stop / (self.stop + (1 - self.stop) * y)) ** (self.shape + 1))

    def turn(self, a: Floats, c: Floats, weight: Floats) -> Floats:
        power = (weight * a) ** (1 / (self.shape + 2))
        going = 1 - self.stop
        return floats((self.stop * (power - 1) - going * c) / (going * (a - power)))

    def miss_chance(self, share: float) -> float:
        kept = 1 - self.stop
        if self.shape == 0:
            return math.log1p(-kept * (1 - share)) / math.log(self.stop)
        log = math.log1p(-kept * (1 - share))
        return math.expm1(-self.shape * log) / math.expm1(-self.shape * math.log(self.stop))


@dataclass(frozen=True)
class PoissonRuns(RunLaw):
    """P(K = k) = e^{−λ}λ^k/k!: K varies least, and may be 0, which releases nothing. f′(x) = λe^{λ(x−1)}.

    Theorem: a Poisson number of runs [Papernot & Steinke 2022, Thm 6]
    """

    rate: float

    def __post_init__(self) -> None:
        allowed = "a number of runs, at most 100,000"
        object.__setattr__(self, "rate", checks.number("rate", self.rate, 1e-3, MOST_MEAN, allowed=allowed))

    @property
    def mean(self) -> float:
        return self.rate

    @property
    def doubt(self) -> float:
        return 64 * ULP * (1 + self.rate)

    def slope(self, y: Floats) -> Floats:
        return floats(np.exp(-self.rate * y))

    def turn(self, a: Floats, c: Floats, weight: Floats) -> Floats:
        return floats((np.log(weight * a) / self.rate - c) / (a - 1))

    def miss_chance(self, share: float) -> float:
        return math.exp(-self.rate * share)
