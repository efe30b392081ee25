"""Partition selection by threshold: noisy counts of private keys are released where they reach a threshold."""

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.loss.kinds.discrete_laplace import DiscreteLaplaceLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import below_one
from sfumato.mechanisms.examples import KEY_COUNTS, Example, Neighbours
from sfumato.mechanisms.private_inputs import read_counts, sorted_counts
from sfumato.noise import DiscreteLaplace, Rounded, Sampler, radius, rounded_gaussian
from sfumato.noise.balls import Ball, above, ball, precision
from sfumato.noise.draw_table import Integers
from sfumato.noise.monotone import Tailed
from sfumato.rounding import quotient_up, round_up
from sfumato.sensitivity import Sensitivity

LEAST_DELTA = 1e-100
PREC = 200


class Thresholded(Mechanism[Mapping[Hashable, int], dict[Hashable, int]]):
    """Noise on the number of people of each key; keys whose noisy count reaches `threshold` are released with it.

    Each person counts once for a key, and for at most `groups` keys. Keys that nobody has are never released.

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
        """The probability that a key of one person alone is released; never below, and at most δ."""
        with precision(PREC):
            leak = leak_probability(self.tail(self.threshold - 1), self.groups)
            return min(self.delta, round_up(above(leak)))

    def release(self, value: Mapping[Hashable, int]) -> dict[Hashable, int]:
        """The released keys, sorted, with their noisy counts."""
        keys, counts = sorted_counts(value)
        noisy, kept = self.noisy(counts)
        return {key: int(noisy[at]) for at, key in enumerate(keys) if kept[at]}

    def noisy(self, counts: ArrayLike) -> tuple[Integers, NDArray[np.bool_]]:
        """Noisy counts, and which of them to show; the others are 0. The order of the row must not depend on data."""
        row = read_counts(counts)
        found = self.sampler.about(row)
        kept = (found >= self.threshold) & (row > 0)
        return np.where(kept, found, 0), kept

    def error(self, confidence: float = 0.95) -> int:
        """With at least this probability the noisy count of a key, shown or not, is off by at most this: the least."""
        return radius(self.law(), confidence)

    def sure(self, confidence: float = 0.95) -> int:
        """A key with at least so many people is released with at least this probability: the least such number.

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

    Other numbers of the same key may have noise that depends on this one: the proof only needs independent keys.
    """
    return lowest_threshold(lambda t: law.beyond(t - 1, PREC) / 2 if t else 1 - law.beyond(0, PREC) / 2, delta, groups)


@lru_cache(maxsize=256)
def threshold_of_votes(law: Tailed, delta: float, groups: int, whole: int, squares: bool) -> int:
    """The least τ that keys of one unit reach with probability δ at most, if a unit with t ≤ groups keys gives each of
    them a vote of ⌊whole/√t⌋ (`squares`) or ⌊whole/t⌋.

    Theorem: 1 − (1 − P(v_t + N ≥ τ))^t ≤ δ for every t ≤ groups; then a profile is at most δ + (1 − δ)·H, as for equal
        votes of 1 [docs/theorems/contributions.md, Theorem 6]
    """
    votes = [math.isqrt(whole * whole // t) if squares else whole // t for t in range(1, groups + 1)]

    def enough(tau: int) -> bool:
        goal = ball(Fraction(delta))
        return all(
            tau > vote and bool(leak_probability(law.beyond(tau - vote - 1, PREC) / 2, t) <= goal)
            for t, vote in enumerate(votes, 1)
        )

    return least_integer(enough)


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


@dataclass(frozen=True)
class ThresholdSelection(Thresholded):
    """Rounded Gaussian noise, and the least threshold τ with 1 − (1 − Φ̄((τ − 3/2)/σ))^groups ≤ δ.

    Its loss is Gaussian with μ = √groups/σ, and a leak of at most δ: on a ledger it costs (μ², δ), and the noisy counts
    that are released with the keys cost nothing more. A person's L keys move L counts by one each: √L in L2.

    Theorem: the Gaussian mechanism is Δ₂/σ-GDP [Dong, Roth & Su 2022, Thm 2.7]

    >>> ThresholdSelection(sigma=10.0, delta=1e-6).release({"Rome": 700, "hamlet": 1}).keys()
    dict_keys(['Rome'])
    """

    sigma: float
    delta: float
    groups: int = 1
    use = "for private keys and their counts, on a Gaussian ledger"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.positive("sigma", self.sigma))
        self.check()

    def law(self) -> Rounded:
        return rounded_gaussian(self.sigma)

    def tail(self, t: int) -> Ball:
        """Φ̄((t − ½)/σ)."""
        return (ball((t - Fraction(1, 2)) / Fraction(self.sigma)) / arb(2).sqrt()).erfc() / 2

    def loss(self) -> LeakyLoss:
        """Gaussian with μ = √groups/σ, and the leak; add/remove."""
        distance = Sensitivity(l0=self.groups, linf=1).l2
        return LeakyLoss(GaussianLoss(quotient_up(distance, self.sigma)), self.leak)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        neighbours = (
            Neighbours({"a": 1, "b": 1}, {}),
            Neighbours({"a": 4, "b": 1}, {"a": 3}),
            Neighbours({"a": 9, "b": 9}, {"a": 8, "b": 8}),
        )
        return (Example(cls(1.0, 0.2, 2), neighbours, KEY_COUNTS, step=Fraction(1)),)


@dataclass(frozen=True)
class StabilityHistogram(Thresholded):
    """Discrete Laplace noise, and the least threshold τ with 1 − (1 − P(N ≥ τ − 1))^groups ≤ δ.

    For one group this is (1/scale, δ)-DP; a person's `groups` keys cost as many losses of the noise, composed.

    Theorem: noisy counts above a threshold are (ε, δ)-DP without a list of keys [Korolova, Kenthapadi, Mishra & Ntoulas
      2009; Bun, Nissim & Stemmer 2016]

    >>> StabilityHistogram(scale=1.0, delta=1e-6).release({"Rome": 700, "hamlet": 1}).keys()
    dict_keys(['Rome'])
    """

    scale: float
    delta: float
    groups: int = 1
    use = "for private keys and their counts, with Laplace noise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale))
        self.check()

    def law(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale)

    def tail(self, t: int) -> Ball:
        """r^t/(1 + r), r = e^{−1/scale}."""
        rate = 1 / Fraction(self.scale)
        return ball(-t * rate).exp() / (1 + ball(-rate).exp())

    def loss(self) -> LeakyLoss:
        """`groups` losses of the noise on one count, composed, and the leak; add/remove."""
        return LeakyLoss(self.groups * DiscreteLaplaceLoss(self.scale), self.leak)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        neighbours = (
            Neighbours({"a": 4}, {"a": 3}),
            Neighbours({"a": 1}, {}),
            Neighbours({"a": 9}, {"a": 8}),
        )
        return (Example(cls(1.0, 0.05), neighbours, KEY_COUNTS, step=Fraction(1)),)
