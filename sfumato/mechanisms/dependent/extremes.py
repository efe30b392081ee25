"""The least and the largest value of people whose number is private."""

from dataclasses import dataclass

import numpy as np

from sfumato.mechanisms.dependent.ordered import Ordered
from sfumato.mechanisms.dependent.statistic import OneOfThem


@dataclass(frozen=True)
class Minimum(OneOfThem):
    """x_1; `high` where there is nobody. Add/remove.

    LS_k = max(x_{k+1} − low, x_{k+2} − x_1). Proof. Let a neighbour of y have z more, z < min y = v, so that the jump
    is v − z (v = high if y is empty). If y is within k steps of x, v ≤ x_{k+1}. If only the larger one is, z is a value
    of x that y lacks, so z ≥ x_1, and v ≤ x_{k+2}. Both are attained: add `low` to x without its k least values, or
    take x_1 from x without x_2, …, x_{k+1}. LS_0 ≥ x_1 − low: an extreme quantile is mostly the better question.

    Theorem: LS_k = max(x_{k+1} − low, x_{k+2} − x_1) [the proof above; cf. Nissim, Raskhodnikova & Smith 2007]
    """

    def middle(self, x: Ordered) -> int:
        return int(x.at([1])[0])

    def steps(self, x: Ordered, most: int) -> list[int]:
        k = np.arange(most + 1)
        return [int(size) for size in np.maximum(x.at(k + 1) - x.low, x.at(k + 2) - x.at([1]))]

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        return ((1, most + 2),)


@dataclass(frozen=True)
class Maximum(OneOfThem):
    """x_n; `low` where there is nobody. Add/remove: `Minimum` of −x.

    Theorem: LS_k = max(high − x_{n−k}, x_n − x_{n−k−1}) [the proof of `Minimum`, mirrored; Nissim et al. 2007]
    """

    def middle(self, x: Ordered) -> int:
        return int(x.at([x.size])[0])

    def steps(self, x: Ordered, most: int) -> list[int]:
        k = np.arange(most + 1)
        top = x.at([x.size])
        return [int(size) for size in np.maximum(x.high - x.at(x.size - k), top - x.at(x.size - k - 1))]

    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        return ((size - most - 1, size),)
