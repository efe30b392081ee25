"""What a count is seen through before noise: a concave function, along which large groups crowd together."""

from abc import ABC, abstractmethod
from enum import Enum

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.numeric import Floats, floats
from sfumato.noise.balls import Ball

NODES = np.linspace(-9.0, 9.0, 3601)
WEIGHTS = np.exp(-NODES * NODES / 2) / np.exp(-NODES * NODES / 2).sum()


class Estimator(Enum):
    """What is made of a noisy value. All of them are post-processing."""

    UNBIASED = "unbiased"  # right in the mean
    CLOSEST = "closest"  # the least mean absolute error of large groups
    MEDIAN = "median"  # as often too large as too small: the inverse function

    def __repr__(self) -> str:
        return self.value


class Transform(ABC):
    """A function g of counts 0, 1, 2, …, which rises and is concave, and its inverse.

    `ball` only says where an integer table is to lie. Privacy is read from the table itself (`table.Table`), so it does
    not depend on how well g is computed, nor on g being concave where doubles cannot tell.
    """

    estimators: tuple[Estimator, ...] = (Estimator.MEDIAN,)

    @abstractmethod
    def ball(self, count: int) -> Ball:
        """g(count) at the working precision."""

    @abstractmethod
    def back(self, y: Floats) -> Floats:
        """The x with g(x) = y, also between and below counts. Post-processing."""

    def estimate(self, y: Floats, sigma: float, estimator: Estimator) -> Floats:
        """The count, from y = g(x) + N(0, σ²)."""
        return self.back(y)

    def known(self, estimator: Estimator) -> Estimator:
        """`estimator`, if this transform has it."""
        if estimator not in self.estimators:
            raise InvalidParameter(
                f"{self!r} has no such estimator.\n  found:  {estimator}\n"
                f"  do:     use {' or '.join(str(e) for e in self.estimators)}"
            )
        return estimator

    def absolute_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        """E|x̂ − x|: here by a sum over noise; closed forms where there are any."""
        x = self.estimate(self._noisy(count, sigma), sigma, estimator)
        return float(np.sum(WEIGHTS * np.abs(x - count)))

    def square_error(self, count: float, sigma: float, estimator: Estimator) -> float:
        """E(x̂ − x)²."""
        x = self.estimate(self._noisy(count, sigma), sigma, estimator)
        return float(np.sum(WEIGHTS * (x - count) ** 2))

    def _noisy(self, count: float, sigma: float) -> Floats:
        return floats(self.forth(count) + sigma * NODES)

    @abstractmethod
    def forth(self, count: float) -> float:
        """g(count) as a double: for errors and pictures, never for a release."""
