"""Optimal partition selection: keep each private key with the largest probability that (ε, δ) allows."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.errors import OutOfReach
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import ApproxLoss
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import KEY_COUNTS, Example, Neighbours
from sfumato.mechanisms.private_inputs import read_counts, sorted_counts
from sfumato.noise.balls import ball, ceiling, floor, precision
from sfumato.noise.draw_table import Integers
from sfumato.noise.entropy import Source

BITS = 128  # of a probability
ONE = 1 << BITS
FINE = 192  # bits after the point of e^ε and e^{−ε}
LEAST_DELTA = 1e-30
MOST_STEPS = 1 << 20


@dataclass(frozen=True)
class Keeping:
    """Keep with probability π(n), n = 0, 1, 2, …: the largest π with π(0) = 0 and neighbours n, n + 1 alike by (ε, δ).

    π(n+1) = min(e^ε·π(n) + δ, 1 − e^{−ε}(1 − π(n) − δ), 1). It never falls, so that the two inequalities of the other
    direction hold by themselves. Probabilities are whole multiples of 2⁻¹²⁸, rounded down at each step with e^ε from
    below and e^{−ε} from above: both inequalities hold exactly, and a coin is a comparison of integers.

    Theorem: no (ε, δ)-DP rule with π(0) = 0 keeps more at any n [Desfontaines, Voss & Gipson 2022]
    """

    eps: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))
        allowed = f"a number from {LEAST_DELTA:g} to 1: with delta = 0 nothing could be kept"
        object.__setattr__(self, "delta", checks.number("delta", self.delta, LEAST_DELTA, 1.0, allowed=allowed))
        assert self.chances  # refuses what is out of reach

    @property
    def chances(self) -> tuple[int, ...]:
        """2¹²⁸·π(n) for n = 0, 1, … up to the first n with π(n) = 1."""
        return _chances(self.eps, self.delta)

    def probability(self, n: int) -> Fraction:
        """π(n)."""
        return Fraction(self.chances[min(max(n, 0), len(self.chances) - 1)], ONE)

    def sure(self, confidence: float) -> int:
        """The least n with π(n) ≥ confidence."""
        goal = Fraction(checks.probability("confidence", confidence)) * ONE
        low, high = 0, len(self.chances) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chances[middle] >= goal else (middle + 1, high)
        return low

    @cached_property
    def _heads(self) -> NDArray[np.uint64]:
        """The first 64 bits of each probability but the last, which is 1."""
        return np.array([chance >> 64 for chance in self.chances[:-1]], np.uint64)

    def flip_coins(self, counts: Integers, source: Source) -> NDArray[np.bool_]:
        """One coin of probability π(n) for each n. A word that equals the first 64 bits needs 64 more."""
        last = len(self.chances) - 1
        n = np.clip(counts, 0, last)
        words = source.words(n.size, 64)
        heads = self._heads[np.minimum(n, last - 1)]
        kept: NDArray[np.bool_] = (words < heads) | (n == last)
        for at in np.flatnonzero((words == heads) & (n < last)).tolist():
            kept[at] = source.bits(64) < self.chances[int(n[at])] % (1 << 64)
        return kept


@lru_cache(maxsize=16)
def _chances(eps: float, delta: float) -> tuple[int, ...]:
    exact, leak = Fraction(eps), int(Fraction(delta) * ONE)
    with precision(2 * FINE):
        up = floor(ball(min(exact, Fraction(FINE))).exp() * 2**FINE)  # e^192 instead of more: also from below
        down = ceiling(ball(-exact).exp() * 2**FINE)
    found = [0]
    while (p := found[-1]) < ONE:
        left = max(ONE - p - leak, 0)
        found.append(max(p, min((up * p >> FINE) + leak, ONE + (-down * left >> FINE), ONE)))
        if len(found) > MOST_STEPS:
            raise OutOfReach(
                "with so small an eps even a million people are not enough to be sure.\n"
                f"  found:  eps = {eps:g}, delta = {delta:g}\n  do:     give a larger eps or delta"
            )
    return tuple(found)


@dataclass(frozen=True)
class PartitionSelection(Mechanism[Mapping[Hashable, int], list[Hashable]]):
    """Each key with n people is kept with probability π(n), the largest there is under (ε, δ) for one key.

    Give how many people have each key, where each person counts once for a key, and for at most `groups` keys. A person
    more or less changes so many independent coins, each from π(n) to π(n ± 1): `groups` times (ε, δ), composed. Keys
    that nobody has are kept with probability π(0) = 0, so they need not be listed. Keys are released sorted.

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
        return self.keeping.flip_coins(read_counts(counts), self.source)

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
