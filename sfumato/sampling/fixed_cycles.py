"""Fixed cycles: the data in batches that are the same in every epoch, one after the other."""

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
class FixedCycles(DisjointBatches):
    """Rows 0 … m − 1, then m … 2m − 1, and so on to row n − 1, again and again; about replace-one neighbours.

    Nothing is random, so nothing is amplified. A person's row is in one batch of each cycle: a cycle costs what one
    batch costs, as the other batches are the same on both sides (parallel composition, and adaptive: later batches may
    depend on earlier outputs). Adding a row would move all later ones to other batches; so n is public.

    Theorem: disjoint batches cost what one of them does [McSherry 2009, Thm 4, parallel composition]
    """

    def batches(self, *, source: "Source | None" = None) -> Iterator[Batch]:
        """The same row numbers in every cycle."""
        while True:
            for start in range(0, self.n, self.m):
                yield np.arange(start, min(start + self.m, self.n), dtype=np.int64)

    @classmethod
    def examples(cls) -> tuple[SamplingExample, ...]:
        one = Sensitivity(l0=1, linf=1, relation=ReplaceOne)
        return (SamplingExample(cls(4, 2), SampledRows((), (1, 1, 0, 0)), SampledRows((), (1, 0, 0, 0)), one),)
