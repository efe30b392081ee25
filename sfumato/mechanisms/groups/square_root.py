"""√(x + a): an error in proportion to √x, as counting errors are."""

import math
from dataclasses import dataclass

import numpy as np
from flint import arb

from sfumato import checks
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.groups.transform import Estimator, Transform
from sfumato.noise.balls import Ball


@dataclass(frozen=True)
class SquareRoot(Transform):
    """g(x) = √(x + a). x̂ = Y² − a − s² has E x̂ = x and Var x̂ = 4s²(x + a) + 2s⁴.

    Theorem: moments of the square of a normal variable [immediate]
    """

    offset: float = 0.0  # a
    estimators = (Estimator.UNBIASED, Estimator.MEDIAN)

    def __post_init__(self) -> None:
        checks.number("offset", self.offset, 0.0, 1e9, allowed="a number of people, from 0 to a billion")
        object.__setattr__(self, "offset", float(self.offset))

    def ball(self, count: int) -> Ball:
        return (arb(count) + arb(self.offset)).sqrt()

    def back(self, y: Floats) -> Floats:
        return floats(y * np.abs(y) - self.offset)

    def forth(self, count: float) -> float:
        return math.sqrt(count + self.offset)

    def estimate(self, y: Floats, sigma: float, estimator: Estimator) -> Floats:
        if estimator is Estimator.MEDIAN:
            return self.back(y)
        return floats(y * y - (self.offset + sigma * sigma))
