"""Batches that cover the data once in each epoch: what fixed cycles and shuffled epochs share, and cost."""

from dataclasses import dataclass

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.sampling.base import Sampling, check_relation
from sfumato.sensitivity import ReplaceOne


@dataclass(frozen=True)
class DisjointBatches(Sampling):
    """All n rows in batches of m, each row in one batch of an epoch; about replace-one neighbours, so n is public.

    An epoch costs what one batch costs: the other batches are the same on both sides, also where later batches are
    used in a way that depends on earlier outputs.

    Theorem: disjoint batches cost what one of them does [McSherry 2009, Thm 4, parallel composition]
    """

    n: int
    m: int
    relation = ReplaceOne

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.whole("n", self.n, 1))
        object.__setattr__(self, "m", checks.whole("m", self.m, 1, self.n))

    @property
    def span(self) -> int:
        """The number of batches in an epoch."""
        return -(-self.n // self.m)

    @property
    def share(self) -> float:
        return self.m / self.n

    def amplify(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The loss of a whole epoch: that of one batch."""
        check_relation(loss, ReplaceOne, type(self).__name__)
        return loss
