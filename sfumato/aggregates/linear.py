"""Aggregates made of sums over units: all sums of a question share one bounding step and one joint noise.

A linear aggregate names its sums and says how it is read from noisy ones. An interval always holds its value. Counts
and sums are unbiased and may be below 0; a mean stays in the range of its column, a variance in what that range allows,
and so do their intervals: the truth is there.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from sfumato.aggregates.noisy_sums import NoisySums, Number
from sfumato.sql.aggregate import Aggregate
from sfumato.sql.domains import Scalar
from sfumato.wording import short_number

NumberEstimate = tuple[Number, Number, Number]  # value, low, high
Estimate = tuple[Scalar, Scalar, Scalar]  # the same for any aggregate; without an interval, low and high are None


class Reader(ABC):
    """Reads an aggregate from noisy parts: post-processing."""

    @property
    @abstractmethod
    def coverage(self) -> float:
        """The coverage probability of its interval: exact, or a lower bound."""

    @property
    def error(self) -> float | None:
        """± at 95 %; None where that depends on private numbers, such as how many values there are."""
        return None

    @property
    def coefficients(self) -> tuple[Fraction, ...] | None:
        """The value as a combination of noisy parts; None if it is none."""
        return None

    @abstractmethod
    def read(self, row: Sequence[Number]) -> NumberEstimate:
        """(value, low, high), from the noisy parts of a group."""

    def read_all(self, rows: Sequence[Sequence[Number]]) -> list[NumberEstimate]:
        return [self.read(row) for row in rows]

    def promise(self) -> str:
        """The accuracy of an answer, in words for a preview."""
        error = self.error
        return f"± {short_number(error)} at 95 %" if error is not None else "± depends on how many values there are"


class Linear(Aggregate):
    """An aggregate that is read from sums."""

    @abstractmethod
    def reader(self, sums: NoisySums) -> Reader:
        """The reader of this aggregate, from its noisy sums."""
