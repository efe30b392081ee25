"""The base of all local randomizers: integer odds, four classes of reports, and what follows from these alone.

A report supports a set of values. Seen from two values u and v it supports u only, v only, both or neither, and each
report is e^ε times as likely if the sender's value is supported. These masses give the loss, the shuffled loss and,
for frequencies, the estimate with its covariance, its intervals and what hostile reports can do.
"""

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.local.draws import Below, below
from sfumato.local.odds import MOST, Odds
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.signed_pair import SignedPairLoss
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.rounding import round_up
from sfumato.sensitivity import Relation, ReplaceOne

Reports = NDArray[Any]
CHUNK = 1 << 15  # values at a time: their words and reports stay in the cache


@dataclass(frozen=True)
class Classes:
    """How likely the blanket's report supports one value and not the other (`one`, each way), both, or neither.

    The blanket of a randomizer is the part of its law that does not depend on the value: Σ over reports of the least
    probability under any value. It has mass γ = 2·one + both + neither. Under the value that they support, reports are
    `ratio` = e^ε times as likely as here.
    """

    one: Fraction
    both: Fraction
    neither: Fraction

    @property
    def blanket(self) -> Fraction:
        """γ: the probability that a report does not depend on the value."""
        return 2 * self.one + self.both + self.neither


@dataclass(frozen=True)
class Randomizer(ABC):
    """A randomizer: it runs on a person's own value before anything leaves the device.

    `answer` defines the randomizer: whole numbers in, draws below a bound, a report out. `randomize` does the same for
    one value or an array of them.
    """

    source: Source = field(default=SYSTEM, repr=False, compare=False, kw_only=True)  # other than SYSTEM: for tests only

    scheme: ClassVar[str]  # its name in a survey design
    known: ClassVar[dict[str, type["Randomizer"]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not inspect.isabstract(cls) and "scheme" in cls.__dict__:
            Randomizer.known[cls.scheme] = cls

    @property
    def weights(self) -> Odds:
        """The odds of the truth: the field `odds` of most randomizers."""
        found: Odds = getattr(self, "odds")  # noqa: B009  # a property of that name would become the field's default
        return found

    @property
    def ratio(self) -> Fraction:
        """e^ε: how much likelier a report is under a value that it supports than under one that it does not."""
        return self.weights.ratio

    @property
    def epsilon(self) -> float:
        """ε of one report, rounded up."""
        return self.weights.epsilon

    @property
    @abstractmethod
    def classes(self) -> Classes:
        """The classes of reports, for the two values that are easiest to distinguish."""

    @property
    @abstractmethod
    def bits(self) -> float:
        """Size of a report in bits."""

    @abstractmethod
    def answer(self, value: int, below: Below) -> int:
        """The report of one value, as an integer; `below(bound)` draws uniformly below the bound."""

    @property
    def weight(self) -> Fraction:
        """P[L = ε]: the probability that a report supports the sender's value and not the other one in question."""
        return self.classes.one * self.ratio

    def loss(self, relation: Relation = ReplaceOne) -> PrivacyLoss:
        """The loss of one report, exactly: ±ε and 0. Neighbours differ in one person's value.

        That somebody reports at all is not protected. Where those who stay away report some fixed value, the same loss
        is about `AddRemove`.
        """
        return SignedPairLoss(self.epsilon, round_up(self.weight), relation=relation)

    def with_source(self, source: Source) -> Self:
        """This randomizer, drawing from this source of bits."""
        return replace(self, source=source)

    @property
    def below(self) -> Below:
        """Draws from this randomizer's source."""
        return below(self.source)

    @property
    @abstractmethod
    def description(self) -> dict[str, object]:
        """Scheme and whole numbers: what a survey design holds, and a client needs."""


def check_total(total: int) -> int:
    """A total weight that all clients can draw below."""
    if total > MOST:
        raise InvalidParameter(
            "the weights of all outcomes must add up to at most 2⁵³, so that every client can draw with them.\n"
            f"  found:  {total:,}\n  do:     give smaller odds, or fewer values"
        )
    return total


def read_values(values: ArrayLike, k: int) -> NDArray[np.int64]:
    """Values of a domain 0, …, k − 1 as int64; refused outside of it, without naming the value."""
    found = np.asarray(values)
    if found.dtype.kind == "O" and all(type(x) in (int, bool) for x in found.flat):
        found = np.array([x if 0 <= x < k else -1 for x in found.flat], np.int64).reshape(found.shape)
    if not found.size and found.dtype.kind == "f":
        found = found.astype(np.int64)  # an empty list has no kind of its own
    if found.dtype.kind not in "iub":
        raise InvalidParameter(
            f"a value must be a whole number from 0 to {k - 1:,}.\n  found:  values of type {found.dtype}\n"
            "  do:     number the possible answers and give the numbers"
        )
    if found.size and (found.min() < 0 or found.max() >= k):
        raise InvalidParameter(
            f"a value must be a whole number from 0 to {k - 1:,}.\n  found:  a number outside\n"
            "  do:     map every answer to a number of the domain before it is randomised"
        )
    return found.astype(np.int64, copy=False)
