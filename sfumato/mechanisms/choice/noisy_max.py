"""Report noisy max: add noise to every score, and release the index of the highest."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.coins import PureLoss
from sfumato.mechanisms.choice.base import Choice, below_one, read_scores
from sfumato.mechanisms.choice.comparison_error import Contest, least_gap
from sfumato.mechanisms.examples import DOWN, UP, WHOLE_SCORES, Example, score_example
from sfumato.noise import DiscreteLaplace, Sampler
from sfumato.noise.draw_table import Integers
from sfumato.rounding import round_up

HALF = 2**62  # two numbers below it add up within int64


@dataclass(frozen=True)
class ReportNoisyMax(Choice):
    """The first of those whose whole score + discrete Laplace(2Δ/ε) is highest. ε-DP.

    Kept because it is in every lecture: with Gumbel noise it is `Exponential`, which errs about as much and costs less
    when repeated, with exponential noise `PermuteAndFlip`, which errs less; both without drawing any noise.

    Proof. Fix the noise of all but i. Then i is chosen if and only if its own noise is at least some whole T: ties go
    to the first in a public order, so this holds with ties. For a neighbour T is larger by at most the largest change
    of a difference of two scores, 2Δ (Δ if all scores move one way), and P(N ≥ T + m) ≥ e^{−m/scale}·P(N ≥ T) for the
    discrete Laplace law. So P(i) falls by a factor of at most e^ε; both ways, as neighbours are. Scores are whole.

    Theorem: report-noisy-max is ε-DP, ties included [Dwork & Roth 2014, Claim 3.9, and the proof above]

    >>> ReportNoisyMax(eps=1.0, utility_sensitivity=1).release([0, 10**6, 5])
    1
    """

    use = "to match others who use it; PermuteAndFlip errs less"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("eps", self.eps)
        self.law()  # refuses what cannot be drawn

    def law(self) -> DiscreteLaplace:
        return DiscreteLaplace(1 / self.rate)

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(self.law(), source=self.source)

    def release(self, value: ArrayLike) -> int:
        """The index of the chosen candidate, given the whole scores of all."""
        row = read_scores(value)
        if row.dtype != np.int64:
            raise InvalidParameter(
                "ReportNoisyMax is for whole scores.\n  found:  floats\n"
                "  do:     count in whole steps, or use Exponential or PermuteAndFlip, which take reals"
            )
        draws, beyond = self.sampler.draw_with_beyond(row.size)
        return index_of_highest(row.astype(np.int64), draws, beyond)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (score_example(cls(1.0, 1), UP, DOWN, inputs=WHOLE_SCORES),)

    def loss(self) -> PureLoss:
        """Pure ε."""
        return PureLoss(self.eps, relation=self.sensitivity.relation)

    def error(self, confidence: float = 0.95, *, candidates: int) -> float:
        """With at least this probability the chosen score is within this of the best, whatever the scores: the least.

        Proof. Fix all noise, and call far what lies g = t + 1 or more below the best. If a far candidate is chosen, it
        still is one when another far one rises to the gap g, or when one that is near, not the best, falls to it and
        becomes far; and when the best comes last, so that it loses ties. So the worst scores are k − 1 at the gap g and
        then the best, which is missed if one of k − 1 draws is at least N + g, N the noise of the best. That is summed
        over N (`Contest`): exactly up to a scale of 2047, beyond it t is at most scale/900 above the least one.
        Scores that lie 2⁶² or more from 0 are left aside, as they count as 2⁶².

        Theorem: one best and k − 1 equal others are the worst case of report-noisy-max [the proof above]
        """
        others = checks.whole("candidates", candidates, 1) - 1
        miss = 1 - below_one("confidence", confidence)
        contest = Contest(self.law(), self.law(), miss)
        if not others:
            return 0.0
        return round_up(least_gap(contest, lambda gap: contest.miss_probability(contest.sides(gap), others, 0)) - 1)


def index_of_highest(row: Integers, draws: Integers, beyond: dict[int, int]) -> int:
    """The first place of the highest sum, exactly: no sum may wrap or saturate, or a shift would not be a shift."""
    row = np.clip(row, 1 - HALF, HALF - 1)  # moves no two scores apart
    if not beyond and max(int(draws.max()), -int(draws.min())) < HALF:
        return int(np.argmax(row + draws))
    totals = [int(score) + beyond.get(at, int(draw)) for at, (score, draw) in enumerate(zip(row, draws, strict=True))]
    return totals.index(max(totals))
