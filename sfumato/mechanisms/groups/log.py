"""ln(x + a): an error in proportion to x + a."""

import math
from dataclasses import dataclass

import numpy as np
from flint import arb

from sfumato import checks
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.groups.asinh import FAR, kappa, relative
from sfumato.mechanisms.groups.transform import Estimator, Transform
from sfumato.noise.balls import Ball


@dataclass(frozen=True)
class Log(Transform):
    """g(x) = ln(x + a) with a > 0, so that an empty group has a value too. x̂ = κ·e^Y − a, and x̂ + a is a multiple of
    x + a whose law does not depend on x: E|x̂ − x| = Λ·(x + a), Λ = E|κe^{sN} − 1|.

    Theorem: among all multiples of e^Y that with κ = e^{−s²} has the least mean absolute error, 2Φ(s) − 1
        [docs/theorems/groups.md, Theorem 3]
    """

    offset: float = 1.0  # a
    estimators = (Estimator.UNBIASED, Estimator.CLOSEST, Estimator.MEDIAN)

    def __post_init__(self) -> None:
        checks.number("offset", self.offset, 1e-6, 1e9, allowed="a number of people, from a millionth to a billion")
        object.__setattr__(self, "offset", float(self.offset))

    def ball(self, count: int) -> Ball:
        return (arb(count) + arb(self.offset)).log()

    def back(self, y: Floats) -> Floats:
        return floats(np.exp(np.clip(y, -FAR, FAR)) - self.offset)

    def forth(self, count: float) -> float:
        return math.log(count + self.offset)

    def estimate(self, y: Floats, sigma: float, estimator: Estimator) -> Floats:
        return floats(kappa(sigma, estimator) * np.exp(np.clip(y, -FAR, FAR)) - self.offset)

    def absolute_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        return (count + self.offset) * relative(sigma, estimator)

    def square_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        """E(κe^{sN} − 1)² = m²e^{s²} − 2m + 1, m = κe^{s²/2}; written without cancellation."""
        m, t = kappa(sigma, estimator) * math.exp(sigma * sigma / 2), sigma * sigma
        return (count + self.offset) ** 2 * (m * m * math.expm1(t) + (m - 1) ** 2)
