"""Poisson sampling: each person is in the batch with the same probability, independently."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.sampling.base import Batch, SampledRows, Sampling, SamplingExample, check_relation
from sfumato.sensitivity import AddRemove

if TYPE_CHECKING:
    from sfumato.noise.entropy import Source


@dataclass(frozen=True)
class Poisson(Sampling):
    """Each person is in the batch with probability `rate`; about add/remove neighbours.

    Theorem: Poisson sampling of dominating pairs [Zhu, Dong & Wang 2022, Thm 11]
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.probability("rate", self.rate))

    def batches(self, people: int, *, source: "Source | None" = None) -> Iterator[Batch]:
        """Row numbers below `people`, each with probability `rate` exactly; `source` is for tests only."""
        from sfumato.noise.bernoulli import Bernoulli  # here, as pricing needs no noise
        from sfumato.noise.draw_table import USUAL
        from sfumato.noise.entropy import SYSTEM

        size = checks.whole("people", people, 0)
        coin = Bernoulli(self.rate, USUAL, source or SYSTEM)
        while True:
            yield np.flatnonzero(coin.draw(size))

    def amplify(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The pair ((1−q)Q + qP, Q) and its reverse; rate 1 changes nothing, rate 0 reveals nothing."""
        check_relation(loss, AddRemove, "Poisson")
        if self.rate in (0.0, 1.0):
            return loss if self.rate else nothing(loss.relation)
        return PoissonSampledLoss(loss, self.rate, relation=loss.relation)

    @property
    def share(self) -> float:
        return self.rate

    @classmethod
    def examples(cls) -> tuple[SamplingExample, ...]:
        return (
            SamplingExample(cls(0.5), SampledRows((1,), (1,)), SampledRows((0,), ())),
            SamplingExample(cls(0.25), SampledRows((3,), (0, 0, 1)), SampledRows((2,), (0, 0))),
        )
