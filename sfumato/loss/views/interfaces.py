"""The interfaces of what a loss returns beside bounds: its law as a random variable, and bounds on over-fitting.

`law.py` and `generalisation.py` compute them, which needs concrete losses.
"""

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


class OverFitting(Protocol):
    """Bounds on how far a private choice can be from what fresh data would show."""

    def expectation(self) -> Bound:
        """Of the difference between data and distribution."""

    def answers(self, beta: SupportsFloat, *, error: SupportsFloat = ..., miss: SupportsFloat = ...) -> Bound:
        """Of an answer that is close to the data, with probability 1 − beta."""

    def high_probability(self, beta: SupportsFloat) -> Bound:
        """Of the difference between data and distribution, with probability 1 − beta."""

    def max_information(self, beta: SupportsFloat) -> Bound:
        """How much more likely an event becomes, in nats, up to beta."""

    def mutual_information(self) -> Bound:
        """Between the data and the output, in nats."""
