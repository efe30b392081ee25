"""The best k of many candidates."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import ROUNDING, below_one, halved_sensitivity, read_scores
from sfumato.mechanisms.choice.exponential import Exponential
from sfumato.mechanisms.examples import DOWN, SCORES, UP, Example, Inputs
from sfumato.noise import peel
from sfumato.noise.draw_table import Integers
from sfumato.sensitivity import Sensitivity

MOST_SUMMED = 10**5


@dataclass(frozen=True)
class TopK(Mechanism[ArrayLike, Integers]):
    """k different candidates, best first: k times the exponential mechanism with `eps`, among those that are left.

    The same law as the k highest of score + Gumbel noise of scale 2Δ/ε. Each choice has bounded range ε, given the
    earlier ones, so the whole costs k of them, composed, which grows like √k and not like k.

    Theorem: one-shot Gumbel top-k is peeling, and composes as bounded range [Durfee & Rogers 2019, section 4]

    >>> TopK(k=2, eps=1.0, utility_sensitivity=1).release([0, 10**6, 10**3]).tolist()
    [1, 2]
    """

    k: int
    eps: float
    utility_sensitivity: Sensitivity | SupportsFloat
    use = "for the best k of many, in order"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 1))
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))
        assert self.one.eps == self.eps  # refuses what cannot be drawn

    @classmethod
    def monotone(cls, k: int, eps: float, utility_sensitivity: Sensitivity | SupportsFloat) -> "TopK":
        """For scores of which adding a person lowers none, or raises none: twice the rate at the same price."""
        return cls(k, eps, halved_sensitivity(utility_sensitivity))

    @cached_property
    def one(self) -> Exponential:
        """One of the k choices."""
        return Exponential(self.eps, self.utility_sensitivity, source=self.source)

    def release(self, value: ArrayLike) -> Integers:
        """The indices of the chosen candidates, in the order chosen."""
        row = read_scores(value)
        if row.size < self.k:
            raise InvalidParameter(
                f"there are fewer than {self.k} candidates.\n  found:  {row.size}\n  do:     choose at most {row.size}"
            )
        return peel(row, self.k, self.one.rate, source=self.source)

    def loss(self) -> PrivacyLoss:
        """k bounded ranges ε, composed."""
        return self.k * self.one.loss()

    def error(self, confidence: float = 0.95, *, candidates: int) -> float:
        """With at least this probability every choice is within this of the best that was left; at most, not the least.

        The j-th chosen score is then within it of the j-th best. The smaller of two bounds, p = e^{−rate·t}:
        - Whatever came before, a choice among s is right with probability 1/(1 + (s−1)p) or more (`Exponential`).
        - Give candidates clocks that ring at rates wᵢ = e^{rate·uᵢ}: they ring in the order of choices, as −log of an
          exponential time is Gumbel noise. Candidate i is chosen wrongly if it is among the first k while some of those
          with w > wᵢ/p, a of them, are left: then it is among the first min(k, a) of these and itself, which is
          likeliest if they are all as slow as wᵢ/p, and has then probability 1 − Π l/(l+p), l from max(1, a−k+1) to a.
          That is largest for a = k, or for as many as there are; the i-th best has fewer than i above it. Add all up.
        For k = 1 the first is the least. Else k equal best scores and n − k just beyond t are missed with probability
        1 − Π l/(l + (n−k)p), l ≤ k: for few of many candidates and few misses nearly as much, so that t is hardly above
        the least (by less than 0.04/rate for 10 of 1000 candidates and 95 %).

        Theorem: peeling errs with probability at most Σᵢ 1 − Π l/(l+p), l ≤ min(i, k), i < n [the proof above]
        """
        n, miss = checks.whole("candidates", candidates, 1), 1 - below_one("confidence", confidence)
        k = min(self.k, n)
        if k == 1:
            return self.one.error(confidence, candidates=n)
        if _miss_probability(n, k, 1.0) <= miss:
            return 0.0
        if not self.one.rate:
            return math.inf
        low, high = 0.0, math.log(n * (1 + math.log(k)) / miss) + ROUNDING  # of rate·t: the second is enough
        while high - low > ROUNDING * (1 + high):
            middle = (low + high) / 2
            low, high = (low, middle) if _miss_probability(n, k, math.exp(-middle)) <= miss else (middle, high)
        return (high + ROUNDING) / float(self.one.rate) * (1 + ROUNDING)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        two_or_more = tuple(row for row in SCORES.extremes if np.size(row) > 1)  # type: ignore[arg-type]  # rows
        return (
            Example(
                cls(2, 0.5, 1),
                (UP, DOWN),
                Inputs(SCORES.name, two_or_more),
                step=Fraction(1),
                distance=lambda row, found: max(max(row) - row[found[0]], sorted(row)[-2] - row[found[1]]),
                error_arguments={"candidates": 4},
            ),
        )


def _miss_probability(n: int, k: int, p: float) -> float:
    """The smaller of both bounds, never below it.

    Beyond 10⁵ choices each round is counted like the last before, and log(1 + p/l) as p·∫dx/x from l − 1 to l.
    """
    first = min(k, MOST_SUMMED)
    each = np.log1p(np.arange(n - 1.0, n - 1.0 - first, -1) * p)
    rounds = -math.expm1(-float(each.sum()) - (k - first) * float(each[-1]))
    wrong = np.cumsum(np.log1p(p / np.arange(1.0, first + 1)))
    wrong[-1] += p * math.log(k / first)
    chances = -np.expm1(-wrong)
    apart = float(chances[:-1].sum()) + (n - first) * float(chances[-1])
    return min(min(rounds, apart) * (1 + 1e-12), 1.0)
