"""Shuffled epochs: a fresh random order in each epoch, cut into batches. The usual way to train, and no better known
than fixed batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato.sampling.base import Batch, SampledRows, SamplingExample
from sfumato.sampling.disjoint_batches import DisjointBatches
from sfumato.sensitivity import ReplaceOne, Sensitivity

if TYPE_CHECKING:
    from sfumato.noise.entropy import Source


@dataclass(frozen=True)
class ShuffledEpochs(DisjointBatches):
    """All n rows in a uniformly random order, cut into batches of m; about replace-one neighbours.

    Priced as fixed batches: given the order, which does not depend on the data, the row is in one batch of the epoch,
    and a mixture over the order that both sides share is dominated by its worst case (joint convexity). Prices by the
    formula of Poisson sampling would be wrong: a shuffled epoch can cost many times as much.

    Theorem: disjoint batches cost what one of them does [McSherry 2009, Thm 4, parallel composition]
    Theorem: the true price of shuffled batches is above that of Poisson sampling [Chua et al. 2024, a lower
        bound: no upper bound below the one used here is proved]
    """

    def batches(self, *, source: "Source | None" = None) -> Iterator[Batch]:
        """A new order in each epoch, all equally likely (Fisher and Yates); `source` is for tests only."""
        from sfumato.noise.entropy import SYSTEM  # here, as pricing needs no noise
        from sfumato.noise.uniform import below_each

        while True:
            order = np.arange(self.n, dtype=np.int64)
            places = below_each(np.arange(self.n, 0, -1, dtype=np.int64), source or SYSTEM)
            for i, place in enumerate(places.tolist()):
                order[i], order[i + place] = order[i + place], order[i]
            for start in range(0, self.n, self.m):
                yield np.sort(order[start : start + self.m])

    @classmethod
    def examples(cls) -> tuple[SamplingExample, ...]:
        one = Sensitivity(l0=1, linf=1, relation=ReplaceOne)
        return (SamplingExample(cls(4, 2), SampledRows((), (1, 0, 0, 0)), SampledRows((), (0, 0, 0, 0)), one),)
