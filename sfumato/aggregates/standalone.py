"""Aggregates with a mechanism of their own, such as a value by its rank or the most common one.

Theorem: each has the price that its mechanism states, (μ², slack) or (ε, slack), and slacks add up beside it
    [`LeakyLoss`; docs/theorems/price.md]
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from sfumato.aggregates.linear import Estimate
from sfumato.aggregates.price import Price
from sfumato.sql.aggregate import StandaloneAggregate
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Scalar
from sfumato.sql.emit.bounding import key_names
from sfumato.sql.emit.norm import RankBound
from sfumato.sql.emit.request import Row, TableRequest
from sfumato.sql.plan import Plan

SURE = 0.95


class Standalone(StandaloneAggregate):
    """An aggregate that is released on its own."""

    @abstractmethod
    def needs_slack(self, price: type[Price]) -> bool:
        """Must its mechanism be allowed to fail with a small probability, if it is paid in this currency?"""

    @abstractmethod
    def release(self, plan: Plan, price: Price, slack: float) -> "StandaloneRelease":
        """Its mechanism for this share of a price, by public facts alone."""

    def weighted_release(self, plan: Plan, price: Price, bound: RankBound) -> "StandaloneRelease":
        """The release for all groups together, where rows count with the weights of their units (`weighted`)."""
        raise AssertionError(f"{self.name} has no weights")


@dataclass(frozen=True)
class StandaloneRelease(ABC):
    """The statement, the mechanism and the reader of one aggregate, for one group; `slack` is 0 if none is needed."""

    plan: Plan
    price: Price
    slack: float

    @property
    def batch(self) -> Hashable:
        """Releases of one class and one batch are asked of the engine in one statement."""
        return id(self)

    @classmethod
    def request(cls, batch: "Sequence[StandaloneRelease]", salt: int, dialect: str | Dialect) -> TableRequest:
        """The table that the engine is asked for: keys first, then the columns of a batch."""
        (alone,) = batch
        return TableRequest(alone.statement(salt, dialect), tuple(key_names(alone.plan)))

    @abstractmethod
    def statement(self, salt: int, dialect: str | Dialect) -> str:
        """The statement for this release alone."""

    @abstractmethod
    def prepare(self) -> None:
        """Compute everything that follows from public facts, so that it cannot fail after the charge."""

    @abstractmethod
    def release(self, rows: Sequence[Row]) -> list[Scalar]:
        """The values to store, from the exact rows of one group: the only place where noise is drawn."""

    @abstractmethod
    def read(self, stored: Sequence[Scalar]) -> Estimate:
        """(value, low, high) from what is stored."""

    @abstractmethod
    def promise(self) -> str:
        """The accuracy of an answer, in words for a preview."""


def integers(numbers: object) -> list[int]:
    """The exact integers that an engine returned."""
    assert isinstance(numbers, Iterable)
    return [int(x) for x in numbers]
