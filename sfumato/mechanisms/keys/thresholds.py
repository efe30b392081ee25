"""Partition selection by threshold: noisy counts of private keys, released where they reach it."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import below_one
from sfumato.mechanisms.keys.key_types import read_counts, sorted_counts
from sfumato.noise import DiscreteLaplace, Rounded, Sampler, radius
from sfumato.noise.balls import Ball, above, ball, precision
from sfumato.noise.draw_table import Integers
from sfumato.noise.radius import Tailed
from sfumato.rounding import round_up

LEAST_DELTA = 1e-100
PREC = 200


class Thresholded(Mechanism[Mapping[Hashable, int], dict[Hashable, int]]):
    """Whole noise on the number of people of each key; keys whose noisy count is at least `threshold` come out with it.

    Each person counts once for a key, and for at most `groups` keys. Keys that nobody has never come out.

    Theorem: with p = P(1 + N ≥ threshold), L = groups and leak = 1 − (1−p)^L, a profile is at most
      leak + (1 − leak)·H, where H is the profile of the noise on L counts [the proof below]

    Proof. Let D have a person more than D′; her keys are A, which others have too, and B, which are hers alone, a + b ≤
    L. With probability 1 − β, β = 1 − (1−p)^b ≤ leak, none of B comes out; as noise is independent, the output on D is
    then that of keys other than B, whose law P is the noise's on A, seen through the threshold, against Q for D′. So
    M(D) = (1−β)P + βR and M(D′) = Q for some R. For α ≥ 1 and any event, M(D) − αM(D′) ≤ β + (1−β)(P − αQ), and
    M(D′) − αM(D) ≤ Q − α(1−β)P = βQ + (1−β)(Q − αP) ≤ β + (1−β)(Q − αP). Both grow with β and with a. ∎
    """

    delta: float
    groups: int

    def check(self) -> None:
        """Refuse parameters out of range, before anything is drawn."""
        allowed = f"a number from {LEAST_DELTA:g} to 1: with delta = 0 no threshold is high enough"
        object.__setattr__(self, "delta", checks.number("delta", self.delta, LEAST_DELTA, 1.0, allowed=allowed))
        object.__setattr__(self, "groups", checks.whole("groups", self.groups, 1))
        self.law()  # refuses what cannot be drawn

    @abstractmethod
    def law(self) -> Rounded | DiscreteLaplace:
        """The noise."""

    @abstractmethod
    def tail(self, t: int) -> Ball:
        """P(N ≥ t), t ≥ 0, at the working precision."""

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(self.law(), source=self.source)

    @cached_property
    def threshold(self) -> int:
        """The least τ ≥ 1 with 1 − (1 − P(N ≥ τ − 1))^groups ≤ δ, decided by balls."""
        return lowest_threshold(self.tail, self.delta, self.groups)

    @cached_property
    def leak(self) -> float:
        """The probability that some key of one person alone comes out; never below, and at most δ."""
        with precision(PREC):
            leak = leak_probability(self.tail(self.threshold - 1), self.groups)
            return min(self.delta, round_up(above(leak)))

    def release(self, value: Mapping[Hashable, int]) -> dict[Hashable, int]:
        """The keys that come out, sorted, with their noisy counts."""
        keys, counts = sorted_counts(value)
        noisy, kept = self.noisy(counts)
        return {key: int(noisy[at]) for at, key in enumerate(keys) if kept[at]}

    def noisy(self, counts: ArrayLike) -> tuple[Integers, NDArray[np.bool_]]:
        """Noisy counts, and which of them to show; the others are 0. The row's order must tell nothing."""
        row = read_counts(counts)
        found = self.sampler.about(row)
        kept = (found >= self.threshold) & (row > 0)
        return np.where(kept, found, 0), kept

    def error(self, confidence: float = 0.95) -> int:
        """With at least this probability the noisy count of a key, shown or not, is off by at most this: the least."""
        return radius(self.law(), confidence)

    def sure(self, confidence: float = 0.95) -> int:
        """A key with at least so many people comes out with at least this probability: the least such number.

        n people fall short of τ with probability P(N ≥ n − τ + 1) if n ≥ τ, and reach it with P(N ≥ τ − n) if not.
        """
        goal = Fraction(below_one("confidence", confidence))
        with precision(PREC):
            likely = bool(self.tail(1) >= ball(goal))
        if likely:  # fewer people than the threshold will do
            top = self.threshold - 1
            return self.threshold - least_integer(lambda t: t >= top or not self.tail(t + 1) >= ball(goal))
        return self.threshold + least_integer(lambda t: bool(self.tail(t + 1) <= ball(1 - goal)))


def threshold(law: Tailed, delta: float, groups: int) -> int:
    """The threshold for any symmetric noise whose tails are known: P(N ≥ t) = P(|N| > t − 1)/2 for t > 0.

    Other numbers of the same key may have noise that depends on this one: the proof asks only that keys be independent.
    """
    return lowest_threshold(lambda t: law.beyond(t - 1, PREC) / 2 if t else 1 - law.beyond(0, PREC) / 2, delta, groups)


def lowest_threshold(tail: Callable[[int], Ball], delta: float, groups: int) -> int:
    """The least τ ≥ 1 with 1 − (1 − P(N ≥ τ − 1))^groups ≤ δ."""
    return 1 + least_integer(lambda t: bool(leak_probability(tail(t), groups) <= ball(Fraction(delta))))


def leak_probability(tail: Ball, groups: int) -> Ball:
    """1 − (1 − p)^groups."""
    return -(groups * (-tail).log1p()).expm1()


def least_integer(enough: Callable[[int], bool]) -> int:
    """The least t ≥ 0 that is certainly enough; `enough` is monotone."""
    with precision(PREC):
        low, high = 0, 1
        while not enough(high):
            low, high = high + 1, 2 * high
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle + 1, high)
        return low
