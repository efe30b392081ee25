"""Stable values: the exact value if a few people could not change it, otherwise None."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.loss.kinds.coins import ApproxLoss
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import below_one
from sfumato.mechanisms.dependent.private_test import Gate, whole_distance
from sfumato.mechanisms.examples import HUGE, Example, Inputs, Neighbours
from sfumato.mechanisms.keys.partition_selection import Keeping
from sfumato.mechanisms.private_inputs import sorted_counts
from sfumato.sensitivity import AddRemove, Relation


@dataclass(frozen=True)
class Stable:
    """A value of any type and its distance to instability: how many people may change without changing the value.

    The distance is 0 if one person can change the value. Both are private.
    """

    value: Any = field(repr=False)
    distance: int = field(repr=False)

    @property
    def replaced(self) -> "Stable":
        """The value for replace-one neighbours, a removal and an addition each: the distance becomes ⌊d/2⌋."""
        return Stable(self.value, whole_distance(self.distance) // 2)


@dataclass(frozen=True)
class StableValue(Mechanism[Stable, Any]):
    """The value itself, if it is stable enough; None otherwise. (ε, δ)-DP, whatever the value is.

    At distance d it answers with probability π(d + 1), the largest probability that (ε, δ) allows: the coins of optimal
    partition selection. π reaches 1, which no noise with a threshold does.

    Theorem: neighbours with different values both have distance 0 and answer with probability δ; other neighbours
        differ only in the coin [Thakurta & Smith 2013; docs/theorems/recipes.md, Theorem 3]
    Theorem: no (ε, δ)-DP coin with π(1) ≤ δ answers more often at any distance [Desfontaines, Voss & Gipson 2022]

    >>> StableValue(eps=1.0, delta=1e-6).release(Stable("blue", 100))
    'blue'
    """

    eps: float
    delta: float
    relation: Relation = AddRemove
    use = "for a value that does not change when a few people do: the value itself, or None"

    def __post_init__(self) -> None:
        keeping = Keeping(self.eps, self.delta)
        object.__setattr__(self, "eps", keeping.eps)
        object.__setattr__(self, "delta", keeping.delta)
        check_relation(self.relation)

    @cached_property
    def keeping(self) -> Keeping:
        return Keeping(self.eps, self.delta)

    def release(self, value: Stable) -> Any:
        checked = check_stable(value)
        steps = min(whole_distance(checked.distance), len(self.keeping.chances)) + 1
        return checked.value if self.keeping.flip_coins(np.array([steps], np.int64), self.source)[0] else None

    def loss(self) -> ApproxLoss:
        """(ε, δ)."""
        return ApproxLoss(self.eps, self.delta, relation=self.relation)

    def error(self, confidence: float = 0.95) -> int:
        """The least distance from which on the value is released with at least this probability."""
        return max(self.keeping.sure(below_one("confidence", confidence)) - 1, 0)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        distances: tuple[Any, ...] = (0, -5, HUGE, -HUGE, np.int64(3), True)
        values = Inputs("stable values", tuple(Stable(1, d) for d in distances))
        pairs = (Neighbours(Stable("a", 0), Stable("b", 0)), Neighbours(Stable("a", 3), Stable("a", 2)))
        return (Example(cls(0.5, 0.05), pairs, values, step=Fraction(1)),)


@dataclass(frozen=True)
class GaussianStableValue(Mechanism[Stable, Any]):
    """The value itself, if distance + rounded Gaussian noise reaches a threshold; None otherwise.

    Its loss is the larger of a Gaussian loss with μ = 1/σ (for the distance) and of the probability p₀ that an unstable
    value passes: on a Gaussian ledger it costs at most (μ², p₀). For the same price `StableValue` needs more than twice
    the distance.

    Theorem: neighbours with different values both have distance 0, so the test has the same law at both
        [Thakurta & Smith 2013; docs/theorems/recipes.md, Theorem 3]

    >>> GaussianStableValue(sigma=2.0, delta=1e-6).release(Stable(("a", "b"), 50))
    ('a', 'b')
    """

    sigma: float
    delta: float
    relation: Relation = AddRemove
    use = "for such a value, on a Gaussian ledger"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.positive("sigma", self.sigma))
        object.__setattr__(self, "delta", self.gate.delta)
        check_relation(self.relation)

    @cached_property
    def gate(self) -> Gate:
        return Gate(Gaussian(self.sigma, source=self.source), self.delta)

    def release(self, value: Stable) -> Any:
        checked = check_stable(value)
        return checked.value if self.gate.opens(whole_distance(checked.distance)) else None

    def ready(self, count: int) -> None:
        self.gate.ready(count)

    def loss(self) -> PrivacyLoss:
        return self.gate.loss(nothing(self.relation), self.relation)

    def error(self, confidence: float = 0.95) -> int:
        """The least distance from which on the value is released with at least this probability."""
        return self.gate.sure(confidence)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        distances: tuple[Any, ...] = (0, -5, HUGE, -HUGE, np.int64(3), True)
        values = Inputs("stable values", tuple(Stable(1, d) for d in distances))
        pairs = (Neighbours(Stable("a", 3), Stable("a", 2)), Neighbours(Stable("a", 0), Stable("b", 0)))
        return (Example(cls(3.0, 0.3), pairs, values, step=Fraction(1)),)


def check_stable(value: object) -> Stable:
    if not isinstance(value, Stable):
        raise InvalidParameter(
            "a stable value is given with its distance to instability.\n"
            f"  found:  a {type(value).__name__}\n  do:     give Stable(value, distance), or use mode(…) or top_set(…)"
        )
    return value


def check_relation(relation: object) -> None:
    if not isinstance(relation, Relation) or relation.one_way:
        raise InvalidParameter(
            f"relation must be a neighbour relation.\n  found:  a {type(relation).__name__}\n"
            "  do:     give sf.AddRemove or sf.ReplaceOne"
        )


def mode(votes: Iterable[Hashable] | Mapping[Hashable, int]) -> Stable:
    """The most frequent label and its distance to instability under add/remove; ties go to the first in order.

    One vote per person, or the count of each label. A label j overtakes the leader after gap_j + 1 additions and
    removals, or after gap_j if it precedes the leader in the order. A label without votes may precede it too, so the
    leader's own count is also a gap. Without votes: None, at distance 0.

    Theorem: each vote changes a gap by at most one, so the distance is min_j (gap_j − [j wins ties])
        [docs/theorems/recipes.md, Theorem 4]

    >>> mode(["tea", "tea", "ale", "tea"]).distance
    1
    """
    chosen, distance = _top(votes, 1)
    return Stable(chosen[0] if chosen else None, distance)


def top_set(votes: Iterable[Hashable] | Mapping[Hashable, int], k: int) -> Stable:
    """The k most frequent labels (or fewer, if there are fewer), sorted, and their distance to instability.

    Add/remove, one vote per person. The set changes only if a label outside overtakes one inside, so the distance is
    the least gap between such labels.

    >>> top_set({"tea": 9, "ale": 7, "gin": 1}, 2).distance
    6
    """
    return Stable(*_top(votes, checks.whole("k", k, 1)))


def _top(votes: Iterable[Hashable] | Mapping[Hashable, int], k: int) -> tuple[tuple[Hashable, ...], int]:
    keys, row = sorted_counts(votes if isinstance(votes, Mapping) else Counter(votes))
    order = sorted((-n, place) for place, n in enumerate(row.tolist()) if n > 0)
    inside, outside = order[:k], order[k:]
    chosen = tuple(keys[place] for place in sorted(place for _, place in inside))
    if len(inside) < k:
        return chosen, 0  # one vote for a new label puts it into the set
    least = -inside[-1][0]
    near = [other for other in outside if other[0] <= outside[0][0] + 1]  # all others have larger gaps, ties or not
    gaps = (o[0] - i[0] - (o[1] < i[1]) for i in inside if i[0] >= -least - 1 for o in near)
    return chosen, max(0, min((least - 1, *gaps)))  # least − 1: the gap of a label without votes that wins ties
