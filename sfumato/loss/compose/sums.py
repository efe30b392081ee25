"""Sums of losses: composition as an expression."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.base import TOLERANCE, PrivacyLoss, same_relation
from sfumato.loss.bound import Bound
from sfumato.loss.compose.choose_engine import engine
from sfumato.loss.compose.facts import Composite, Facts, facts
from sfumato.loss.compose.moment_bounds import step_by_step
from sfumato.loss.numeric import ULP, Enclosure, Floats
from sfumato.rounding import leak_up
from sfumato.sensitivity import Relation

FEW = 4  # repetitions of a loss that may outweigh all others
MOST = 10**15  # repetitions beyond which counts are no longer exact in a float


@dataclass(frozen=True)
class Sum(Composite):
    """A composition of independent losses, each with its count; the empty sum reveals nothing.

    The privacy loss of the whole is the sum of the losses, also when each mechanism is chosen in the light of earlier
    answers, as long as each step's pair is fixed in advance.

    Theorem: dominating pairs compose, adaptively, to their product [Zhu, Dong & Wang 2022, Thm 10]
    """

    terms: tuple[tuple[int, PrivacyLoss], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = isinstance(self.terms, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in self.terms)
        if not pairs or not all(isinstance(term, PrivacyLoss) for _, term in self.terms):
            raise InvalidParameter("a Sum is made of (count, loss) pairs; write a + b or k * a")
        for count, _ in self.terms:
            checks.whole("the number of repetitions", count, 1)
        if self.terms and same_relation(tuple(term for _, term in self.terms)) is not self.relation:
            raise MixedRelations(f"these losses are not about {self.relation.value}")

    @property
    def method(self) -> str:  # type: ignore[override]  # the engine that answers depends on the terms
        return engine(self).method

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.cut(engine(self).forward(eps, tolerance), eps, tolerance)

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.reverse.forward(eps, tolerance)

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        near = engine(self).near(delta, tolerance, eps)
        return lambda t: self.cut(near(t), t, tolerance)

    def least(self, goal: float, tolerance: float) -> Bound | None:
        # δ(0) ≤ Σ k·δᵢ(0): tiny losses need no engine
        if math.fsum(count * total_variation_ceiling(term) for count, term in self.terms) * (1 + 4 * ULP) <= goal:
            return Bound(0.0, 0.0, "sum of single steps")
        return engine(self).least(goal, tolerance)

    def cut(self, found: Enclosure, eps: Floats, tolerance: float) -> Enclosure:
        """A profile, cut to the leak beyond the largest finite loss: engines need not know where the sum ends.

        Where a lattice is not sharp, because losses are of very different sizes, single steps may give sharper bounds,
        if one of them is repeated a few times only.
        """
        low, high = found.lower.copy(), found.upper.copy()
        loose = high > (1 + 4 * tolerance) * low
        engineered = np.any(loose) and self.method in ("lattice", "contour")
        some_alone = engineered and any(count <= FEW for count, _ in self.terms)
        if some_alone and all(term.method == "closed form" for _, term in self.terms):
            one = step_by_step(self.terms, eps[loose])
            low[loose], high[loose] = np.maximum(low[loose], one.lower), np.minimum(high[loose], one.upper)
        beyond = eps >= facts(self).supremum[0]
        return Enclosure(low, np.where(beyond, np.minimum(high, facts(self).leak[0]), high) if np.any(beyond) else high)

    def gather_facts(self) -> Facts:
        """Suprema and leaks add up, the latter as 1 − Π(1 − leak)^count, both rounded up."""
        known = [(count, term, facts(term)) for count, term in self.terms]
        top, bottom = (math.fsum(k * fact.supremum[i] for k, _, fact in known) * (1 + 4 * ULP) for i in (0, 1))
        leak = leak_up((k, fact.leak[0]) for k, _, fact in known), leak_up((k, fact.leak[1]) for k, _, fact in known)
        reverse: PrivacyLoss = self
        if self.relation.one_way or any(fact.reverse is not term for _, term, fact in known):
            relation = self.relation.reversed if self.relation.one_way else self.relation
            reverse = total(*((k, fact.reverse) for k, _, fact in known), relation=relation)
        attained: PrivacyLoss = self  # what the terms surely reveal together, each to an adversary of its own
        if any(fact.attained is not term for _, term, fact in known):
            attained = total(*((k, fact.attained) for k, _, fact in known), relation=self.relation)
        return Facts(
            supremum=(top, bottom),
            leak=leak,
            sharp_ends=all(fact.sharp_ends for _, _, fact in known),
            atoms=None,
            renyi_curve=None,
            transform=None,
            reverse=reverse,
            attained=attained,
            reveals_nothing=(top, bottom) == leak == (0.0, 0.0),
        )

    @property
    def attained(self) -> PrivacyLoss:
        return facts(self).attained

    @property
    def sharp_ends(self) -> bool:
        return facts(self).sharp_ends

    @property
    def one_pair(self) -> bool:
        return all(term.one_pair for _, term in self.terms)

    def supremum(self) -> tuple[float, float]:
        return facts(self).supremum

    def leak(self) -> tuple[float, float]:
        return facts(self).leak

    def log_moment(self, s: float) -> Bound:
        parts = [(count, term.log_moment(s)) for count, term in self.terms]
        if not parts:
            return Bound(0.0, 0.0, "closed form")
        low, high = math.fsum(k * b.lower for k, b in parts), math.fsum(k * b.upper for k, b in parts)
        slip = 4 * ULP * max(abs(low), abs(high)) if math.isfinite(high - low) else 0.0
        slip += 1e-320 * math.fsum(k for k, term in self.terms if max(term.supremum()) > 0)  # moments may underflow
        return Bound(low - slip, high + slip, "sum of " + parts[0][1].method)

    def mean(self) -> Bound:
        parts = [(count, term.mean()) for count, term in self.terms]
        low, high = math.fsum(k * b.lower for k, b in parts), math.fsum(k * b.upper for k, b in parts)
        return Bound(low * (1 - 4 * ULP), high * (1 + 4 * ULP), parts[0][1].method if parts else "closed form")

    def rho_ceiling(self) -> float:
        return math.fsum(count * term.rho_ceiling() for count, term in self.terms) * (1 + 4 * ULP)

    def rho_beyond(self, order: float) -> float:
        return math.fsum(count * term.rho_beyond(order) for count, term in self.terms) * (1 + 4 * ULP)

    @property
    def reverse(self) -> PrivacyLoss:
        return facts(self).reverse

    def group(self, size: int) -> PrivacyLoss:
        """Groups step by step: each step's pair for the group, composed."""
        size = checks.whole("size", size, 0)
        return total(*((count, term.group(size)) for count, term in self.terms), relation=self.relation)


def total(*terms: tuple[int, PrivacyLoss], relation: Relation | None = None) -> PrivacyLoss:
    """The canonical sum: nested sums opened, equal terms merged, sorted; a single loss once is itself."""
    counts: dict[PrivacyLoss, int] = {}
    for times, loss in terms:
        if not isinstance(loss, PrivacyLoss):
            raise InvalidParameter(f"only losses can be summed, found {type(loss).__name__}")
        times = checks.whole("the number of repetitions", times, 0)
        for count, term in loss.terms if isinstance(loss, Sum) else ((1, loss),):
            counts[term] = counts.get(term, 0) + times * count
    relation = same_relation(tuple(loss for _, loss in terms)) if terms else relation or Relation.AddRemove
    terms_kept = [term for term, count in counts.items() if count]
    if len(terms_kept) > 1:
        terms_kept.sort(key=canonical_text)
    kept = [(counts[term], term) for term in terms_kept]
    return kept[0][1] if len(kept) == 1 and kept[0][0] == 1 else canonical(tuple(kept), relation)


@lru_cache(maxsize=256)
def canonical_text(loss: PrivacyLoss) -> str:
    """The JSON text, by which terms are sorted; the same for equal losses."""
    return loss.to_json()


@lru_cache(maxsize=256)
def total_variation_ceiling(loss: PrivacyLoss) -> float:
    """δ(0) from above, for a loss with a closed form; infinity for others."""
    return float(loss.forward(np.zeros(1)).upper[0]) if loss.method == "closed form" else math.inf


def one_more(sum_: Sum, loss: PrivacyLoss) -> Sum:
    """The canonical sum with one more loss, inserted among the sorted terms without sorting them again."""
    place = bisect_left(sum_.terms, loss.to_json(), key=lambda item: item[1].to_json())
    same = place < len(sum_.terms) and sum_.terms[place][1] == loss
    count = sum_.terms[place][0] + 1 if same else 1
    return canonical((*sum_.terms[:place], (count, loss), *sum_.terms[place + same :]), sum_.relation)


def add(first: PrivacyLoss, second: PrivacyLoss) -> PrivacyLoss:
    """The sum of two losses."""
    if isinstance(first, Sum) and not isinstance(second, Sum):
        same_relation((first, second))
        return one_more(first, second) if first.terms else total((1, second))
    return total((1, first), (1, second))


def canonical(terms: tuple[tuple[int, PrivacyLoss], ...], relation: Relation) -> Sum:
    """The sum of terms that are merged and sorted already, if their counts are exact in a float."""
    if any(count > MOST for count, _ in terms):
        raise InvalidParameter(
            f"too many repetitions of one loss.\n  found:  more than {MOST:,}\n  do:     compose at most {MOST:,} of it"
        )
    result = object.__new__(Sum)
    object.__setattr__(result, "terms", terms)
    object.__setattr__(result, "relation", relation)
    return result


def nothing(relation: Relation = Relation.AddRemove) -> PrivacyLoss:
    """The loss of revealing nothing."""
    return Sum((), relation=relation)
