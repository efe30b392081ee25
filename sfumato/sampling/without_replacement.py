"""Sampling without replacement: a batch of fixed size, all subsets equally likely."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.loss.kinds.subsampled import WithoutReplacementLoss
from sfumato.sampling.base import Batch, SampledRows, Sampling, SamplingExample, check_relation
from sfumato.sensitivity import ReplaceOne, Sensitivity

if TYPE_CHECKING:
    from sfumato.noise.entropy import Source


@dataclass(frozen=True)
class WithoutReplacement(Sampling):
    """`m` of `n` people, all subsets alike; about replace-one neighbours.

    Theorem: sampling without replacement [Balle, Barthe & Gaboardi 2018, Thm 9; Zhu, Dong & Wang 2022, Thm 11]
    """

    n: int
    m: int
    relation = ReplaceOne

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.whole("n", self.n, 1))
        object.__setattr__(self, "m", checks.whole("m", self.m, 0, self.n))

    def batches(self, *, source: "Source | None" = None) -> Iterator[Batch]:
        """`m` row numbers below `n`; `source` is for tests only.

        Floyd's algorithm: for last = n − m, …, n − 1, add a uniform number up to `last`, or `last` itself if that one
        is there already. By induction all subsets of this size of the numbers up to `last` are equally likely.
        """
        from sfumato.noise.entropy import SYSTEM  # here, as pricing needs no noise
        from sfumato.noise.uniform import below_each

        lasts = np.arange(self.n - self.m, self.n, dtype=np.int64)
        while True:
            batch: set[int] = set()
            for last, drawn in zip(lasts.tolist(), below_each(lasts + 1, source or SYSTEM).tolist(), strict=True):
                batch.add(last if drawn in batch else drawn)
            yield np.array(sorted(batch), np.int64)

    def amplify(self, loss: PrivacyLoss) -> PrivacyLoss:
        """Both directions diluted to q = m/n; m = n changes nothing, m = 0 reveals nothing."""
        check_relation(loss, ReplaceOne, "WithoutReplacement")
        if self.m in (0, self.n):
            return loss if self.m else nothing(loss.relation)
        return WithoutReplacementLoss(loss, self.n, self.m, relation=loss.relation)

    @property
    def share(self) -> float:
        return self.m / self.n

    @classmethod
    def examples(cls) -> tuple[SamplingExample, ...]:
        one = Sensitivity(l0=1, linf=1, relation=ReplaceOne)
        return (
            SamplingExample(cls(2, 1), SampledRows((), (1, 0)), SampledRows((), (0, 0)), one),
            SamplingExample(cls(4, 3), SampledRows((), (0, 0, 1, 1)), SampledRows((), (0, 0, 1, 0)), one),
        )
