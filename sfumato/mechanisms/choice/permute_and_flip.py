"""Permute-and-flip: a pure choice that misses the best candidate less often than exponential weights."""

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.loss.kinds.coins import PureLoss
from sfumato.mechanisms.choice.base import ROUNDING, Choice, below_one, read_scores
from sfumato.mechanisms.examples import DOWN, HALVES, UP, Example, score_example
from sfumato.noise import permute_and_flip


@dataclass(frozen=True)
class PermuteAndFlip(Choice):
    """In random order, the first candidate whose coin of probability exp(−ε·(best − u)/2Δ) shows heads; exactly.

    ε-DP. For the same ε it never misses by more than the exponential mechanism, and by half as much at best; but
    its range is not bounded by ε, so that many choices are cheaper by `Exponential`. It is report-noisy-max with
    exponential noise of scale 2Δ/ε. `monotone` is for scores that one person moves all up or all down.

    Theorem: ε-DP, and never worse than exponential weights [McKenna & Sheldon 2020]
    Theorem: it is report-noisy-max with exponential noise [Ding, Kifer, Sencan, Wang & Zhang 2021]

    >>> PermuteAndFlip(eps=1.0, utility_sensitivity=1).release([0, 10**6, 5])
    1
    """

    use = "for one choice: it never errs more than Exponential"

    def release(self, value: ArrayLike) -> int:
        """The index of the chosen candidate, given the scores of all."""
        return permute_and_flip(read_scores(value), self.rate, source=self.source)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (score_example(cls(1.0, 1), DOWN, UP), score_example(cls(1.0, 0.5), HALVES))

    def loss(self) -> PureLoss:
        """Pure ε."""
        return PureLoss(self.eps, relation=self.sensitivity.relation)

    def error(self, confidence: float = 0.95, *, candidates: int) -> float:
        """With at least this probability the chosen score is within this of the best, whatever the scores.

        Proof. The choice is uniform among the heads. The share of heads that lie more than t below the best grows with
        each such head and falls with each other one; so the worst scores are one best and k − 1 at the gap t, whose
        coins have p = e^{−rt}: the best is missed with probability E[B/(1+B)] = 1 − (1 − (1−p)^k)/(kp), B of k − 1
        coins, which is at most (k−1)p/2.
        """
        k, miss = checks.whole("candidates", candidates, 1), 1 - below_one("confidence", confidence)
        if (k - 1) / k <= miss:
            return 0.0
        if not self.rate:
            return math.inf
        low, high = -math.log(min(1.0, 2 * miss / (k - 1))), 0.0  # of rt: the first is enough, the second is not
        while low - high > ROUNDING * (1 + low):
            middle = (low + high) / 2
            low, high = (middle, high) if _miss_probability(k, math.exp(-middle)) <= miss else (low, middle)
        return (low + ROUNDING) / float(self.rate) * (1 + ROUNDING)


def _miss_probability(k: int, p: float) -> float:
    """1 − (1 − (1−p)^k)/(kp), never below."""
    if p == 1:
        return (k - 1) / k
    return min((k - 1) * p / 2, 1 + math.expm1(k * math.log1p(-p)) / (k * p) + 1e-14)
