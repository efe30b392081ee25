"""The exponential mechanism: better candidates are chosen exponentially more often."""

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.loss.kinds.bounded_range import BoundedRangeLoss
from sfumato.mechanisms.choice.base import ROUNDING, Choice, below_one, read_scores
from sfumato.mechanisms.examples import DOWN, HALVES, UP, Example, score_example
from sfumato.noise import select


@dataclass(frozen=True)
class Exponential(Choice):
    """P(i) ∝ exp(ε·uᵢ/2Δ), drawn exactly, where one unit changes a utility u by at most Δ.

    The log-ratio of P(i) for two neighbours is ε(uᵢ − uᵢ′)/2Δ plus a constant, so that it ranges over an interval of
    length ε: bounded range ε, which is ε-DP and costs a quarter of its μ². Any utility will do: asymmetric ones need no
    other mechanism. `monotone` is for utilities that one person moves all up or all down, as counts: half the Δ.
    This is also report-noisy-max with Gumbel noise of scale 2Δ/ε.

    Theorem: the exponential mechanism is ε-DP [McSherry & Talwar 2007, Thm 6]
    Theorem: it has bounded range ε; monotone utilities need half the noise [Durfee & Rogers 2019, section 3]

    >>> Exponential(eps=1.0, utility_sensitivity=1).release([0, 10**6, 5])
    1
    """

    use = "for many choices: k of them cost as √k, and any utility will do"

    def release(self, value: ArrayLike) -> int:
        """The index of the chosen candidate, given the scores of all."""
        return select(read_scores(value), self.rate, source=self.source)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (score_example(cls(1.0, 1), UP, DOWN), score_example(cls(1.0, 0.5), HALVES))

    def loss(self) -> BoundedRangeLoss:
        """Bounded range ε."""
        return BoundedRangeLoss(self.eps, relation=self.sensitivity.relation)

    def error(self, confidence: float = 0.95, *, candidates: int) -> float:
        """With at least this probability the chosen utility is within this of the best, whatever the utilities.

        Proof. P(gap > t) rises with each weight of a gap above t, up to e^{−rt}, and falls with every other weight; so
        it is below (k−1)e^{−rt}/(1 + (k−1)e^{−rt}), which one best candidate and k − 1 at the gap t attain in the
        limit. Hence t = ln((k−1)·c/(1−c))/r for confidence c. The true gap is often much smaller.
        """
        others = checks.whole("candidates", candidates, 1) - 1
        c = below_one("confidence", confidence)
        if others * c <= 1 - c:
            return 0.0
        if not self.rate:
            return math.inf
        return (math.log(others * c / (1 - c)) + ROUNDING) / float(self.rate) * (1 + ROUNDING)
