"""The interface of a privacy loss as a random variable; `law.py` computes it, which needs concrete losses."""

from typing import Protocol, Self, SupportsFloat, overload

import numpy as np

from sfumato.loss.bound import Bound
from sfumato.loss.numeric import Enclosure, Floats


class RandomVariable(Protocol):
    """The law of a privacy loss L = log P/Q, of outputs drawn from P."""

    @overload
    def exceeds(self, t: float) -> Bound: ...
    @overload
    def exceeds(self, t: Floats) -> Enclosure: ...
    def exceeds(self, t: float | Floats) -> Bound | Enclosure:
        """P[L > t]."""

    @overload
    def cdf(self, t: float) -> Bound: ...
    @overload
    def cdf(self, t: Floats) -> Enclosure: ...
    def cdf(self, t: float | Floats) -> Bound | Enclosure:
        """P[L ≤ t]."""

    def quantile(self, share: SupportsFloat) -> Bound:
        """The least t with P[L ≤ t] ≥ share."""

    def mean(self) -> Bound:
        """E[L]."""

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Draws of the loss, for pictures and experiments."""

    @property
    def reverse(self) -> Self:
        """The law of log Q/P under Q."""
