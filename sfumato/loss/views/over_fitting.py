"""The interface of over-fitting bounds; `generalisation.py` computes them, which needs concrete losses."""

from typing import Protocol, SupportsFloat

from sfumato.loss.bound import Bound


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
