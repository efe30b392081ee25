"""Answers over time: memoised reports, and what repeated collection costs."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.frequency import FrequencyOracle, require_information
from sfumato.local.odds import Odds
from sfumato.local.response import Response
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.numeric import Floats, floats
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.rounding import product_up
from sfumato.sensitivity import Relation, ReplaceOne


@dataclass
class Memoised:
    """One permanent report for each value that a device ever holds: repeats cost nothing, new values cost ε again.

    The memo belongs to one question of one device and is as secret as the value. Without fresh noise it shows *when* a
    value changes. A device that runs out of budget must stop by a public schedule, not because its memo is full.
    """

    randomizer: FrequencyOracle
    question: str
    memo: dict[int, int] = field(default_factory=dict, repr=False)

    def report(self, value: int, question: str) -> int:
        """The stored report of this value, or a fresh one, which is then stored."""
        if question != self.question:
            raise InvalidParameter(
                "a memo belongs to one question: used for another it would link the answers.\n"
                "  found:  another question\n  do:     make a Memoised for each question"
            )
        if value not in self.memo:
            found = self.randomizer.randomize(value)
            assert isinstance(found, int)
            self.memo[value] = found
        return self.memo[value]

    def loss(self, distinct: int, relation: Relation = ReplaceOne) -> PrivacyLoss:
        """The loss of any number of reports while at most so many different values are held: that many reports."""
        return checks.whole("distinct", distinct, 1, self.randomizer.k) * self.randomizer.loss(relation)

    def worst_epsilon(self) -> float:
        """ε if every value is held at some time: k·ε."""
        return product_up(self.randomizer.k, self.randomizer.epsilon)


@dataclass(frozen=True)
class Loloha:
    """A hash to `buckets` = g numbers, fixed for the device; a memoised permanent answer; fresh noise on each report.

    However often the value changes, only g permanent answers exist: the cost over time is at most g·ε_∞, and that of
    the first report ε_1 < ε_∞. With two rounds of randomized response p = p₁p₂ + (1−p₁)q₂; another value has the
    reported bucket with 1/g.

    Theorem: LOLOHA costs at most g·ε_∞ over time [Arcolezi, Pinzón, Palamidessi & Gambs 2023, Thm 3.5]
    """

    k: int
    buckets: int
    permanent: Odds
    instantaneous: Odds
    source: Source = field(default=SYSTEM, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 2, 1 << 16))
        object.__setattr__(self, "buckets", checks.whole("buckets", self.buckets, 2, 1 << 12))
        for odds in (self.permanent, self.instantaneous):
            require_information(odds)

    @staticmethod
    def of(k: int, eps: float, first: float, buckets: int = 2) -> "Loloha":
        """ε_∞ = eps for each permanent answer, and about ε_1 = first < eps for the first report.

        With E = e^{ε_∞} and F = e^{ε_1} the second round has the odds (EF + (g−2)F − (g−1))/(E − F), rounded down.
        """
        g = checks.whole("buckets", buckets, 2, 1 << 12)
        outer, inner = Odds.of(eps), Odds.of(first)
        if not outer.ratio > inner.ratio > 1:
            raise InvalidParameter(
                f"the first report must cost less than the permanent answer.\n  found:  {first} against {eps}\n"
                "  do:     give 0 < first < eps"
            )
        E, F = outer.ratio, inner.ratio
        ratio = (E * F + (g - 2) * F - (g - 1)) / (E - F)
        return Loloha(k, buckets, outer, Odds(int(ratio * (1 << 20)), 1 << 20))

    @cached_property
    def rounds(self) -> tuple[Response, Response]:
        """The two rounds of randomized response over the buckets."""
        g, source = self.buckets, self.source
        return Response(g, self.permanent, source=source), Response(g, self.instantaneous, source=source)

    @property
    def limit(self) -> float:
        """ε over all time, whatever values are held: g·ε_∞."""
        return product_up(self.buckets, self.permanent.epsilon)

    def loss(self, relation: Relation = ReplaceOne) -> PrivacyLoss:
        """The loss over all time."""
        return PureLoss(self.limit, relation=relation)

    def cost(self, reports: int) -> str:
        """The notice that is printed with every collection."""
        T = checks.whole("reports", reports, 1)
        fresh = product_up(T, self.permanent.epsilon)
        total = min(self.limit, fresh)
        return f"{T:,} reports of a device: ε ≤ {total:.3g} (fresh noise each time would cost {fresh:.3g})"

    def device(self) -> "LolohaDevice":
        """A device with a hash of its own."""
        a, b = self.source.bits(32), self.source.bits(32)
        return LolohaDevice(self, a, b)

    @property
    def p(self) -> Fraction:
        """P[a report names the bucket of the sender's value]."""
        first, second = self.rounds
        return first.p * second.p + (1 - first.p) * second.q

    def estimate(self, seeds: NDArray[np.uint32], reports: NDArray[np.int64]) -> Floats:
        """Shares of all values: (C_v/n − 1/g)/(p − 1/g), where C_v counts reports in the bucket of v."""
        counts = np.array([np.count_nonzero(bucket(seeds, v, self.buckets) == reports) for v in range(self.k)])
        q = 1 / self.buckets
        return floats((counts / len(reports) - q) / (float(self.p) - q))


@dataclass
class LolohaDevice:
    """The state of one device: its hash and its permanent answers. It is as secret as the value."""

    scheme: Loloha
    a: int
    b: int
    memo: dict[int, int] = field(default_factory=dict, repr=False)

    def report(self, value: int) -> int:
        """One report: the memoised permanent answer of the value's bucket, with fresh noise."""
        first, second = self.scheme.rounds
        own = int(bucket(np.array([[self.a, self.b]], np.uint32), value, self.scheme.buckets)[0])
        if own not in self.memo:
            self.memo[own] = first.answer(own, first.below)
        return second.answer(self.memo[own], second.below)


def bucket(seeds: NDArray[np.uint32], value: int, buckets: int) -> NDArray[np.int64]:
    """The bucket of a value under each hash; see `LocalHashing`."""
    hashed = (seeds[:, 0] * np.uint32(value) + seeds[:, 1]) >> np.uint32(16)
    return ((hashed * np.uint32(buckets)) >> np.uint32(16)).astype(np.int64)
