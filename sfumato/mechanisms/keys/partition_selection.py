"""Partition selection with private keys: keeps the most that (ε, δ) allows."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import ApproxLoss
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import KEY_COUNTS, Example, Neighbours
from sfumato.mechanisms.keys.key_types import read_counts, sorted_counts
from sfumato.mechanisms.keys.optimal_coins import Keeping


@dataclass(frozen=True)
class PartitionSelection(Mechanism[Mapping[Hashable, int], list[Hashable]]):
    """Each key with n people is kept with probability π(n), the largest there is under (ε, δ) for one key.

    Give how many people have each key, where each person counts once for a key, and for at most `groups` keys. A person
    more or less changes so many independent coins, each from π(n) to π(n ± 1): `groups` times (ε, δ), composed. Keys
    that nobody has are kept with probability π(0) = 0, so they need not be listed. Keys come out sorted.

    Theorem: no (ε, δ)-DP rule for one key keeps more at any n [Desfontaines, Voss & Gipson 2022]

    >>> PartitionSelection(eps=1.0, delta=1e-6).release({"Rome": 700, "Oslo": 12_000, "hamlet": 1})
    ['Oslo', 'Rome']
    """

    eps: float
    delta: float
    groups: int = 1
    use = "for private keys alone: it keeps the most that (ε, δ) allows"

    def __post_init__(self) -> None:
        keeping = Keeping(self.eps, self.delta)
        object.__setattr__(self, "eps", keeping.eps)
        object.__setattr__(self, "delta", keeping.delta)
        object.__setattr__(self, "groups", checks.whole("groups", self.groups, 1))

    @cached_property
    def keeping(self) -> Keeping:
        return Keeping(self.eps, self.delta)

    def release(self, value: Mapping[Hashable, int]) -> list[Hashable]:
        """The kept keys, sorted."""
        keys, counts = sorted_counts(value)
        return [key for key, kept in zip(keys, self.keep(counts), strict=True) if kept]

    def keep(self, counts: ArrayLike) -> NDArray[np.bool_]:
        """Which keys to keep, given a row of counts; its order must not depend on data other than the keys."""
        return self.keeping.flips(read_counts(counts), self.source)

    def loss(self) -> PrivacyLoss:
        """`groups` times (ε, δ), composed; add/remove."""
        return self.groups * ApproxLoss(self.eps, self.delta)

    def error(self, confidence: float = 0.95) -> int:
        """A key with more people than this is kept with at least this probability: the least such number."""
        return max(self.keeping.sure(confidence) - 1, 0)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        one_key = (
            Neighbours({"a": 1}, {}),
            Neighbours({"a": 4}, {"a": 3}),
            Neighbours({"a": 3, "b": 1}, {"a": 3}),
        )
        two_keys = (Neighbours({"a": 4, "b": 1}, {"a": 3}), Neighbours({"a": 1, "b": 1}, {}))
        return (
            Example(cls(0.5, 0.05), one_key, KEY_COUNTS),
            Example(cls(0.5, 0.05, 2), two_keys, KEY_COUNTS),
        )
