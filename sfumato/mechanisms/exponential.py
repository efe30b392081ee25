"""The exponential mechanism: better candidates are chosen exponentially more often."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import SupportsFloat, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.bounded_range import BoundedRangeLoss
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.scores import halved, rate_of, score_sensitivity, scores
from sfumato.noise import select
from sfumato.sensitivity import Sensitivity

Candidate = TypeVar("Candidate")
ROUNDING = 1e-14  # more than what a logarithm and three operations lose


@dataclass(frozen=True)
class Exponential(Mechanism[ArrayLike, int]):
    """P(i) ∝ exp(ε·uᵢ/2Δ), drawn exactly, where nobody moves a utility u by more than Δ.

    The log-ratio of P(i) for two neighbours is ε(uᵢ − uᵢ′)/2Δ plus a constant, so that it ranges over an interval of
    length ε: bounded range ε, which is ε-DP and costs a quarter of its μ². Any utility will do: asymmetric ones need no
    other mechanism. `monotone` is for utilities that one person moves all up or all down, as counts: half the Δ.
    This is also report-noisy-max with Gumbel noise of scale 2Δ/ε.

    Theorem: the exponential mechanism is ε-DP [McSherry & Talwar 2007, Thm 6]
    Theorem: it has bounded range ε; monotone utilities need half the noise [Durfee & Rogers 2019, section 3]

    >>> Exponential(eps=1.0, utility_sensitivity=1).release([0, 10**6, 5])
    1
    """

    eps: float
    utility_sensitivity: Sensitivity | SupportsFloat

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))
        score_sensitivity(self.utility_sensitivity)
        assert self.rate >= 0  # refuses what cannot be drawn

    @classmethod
    def monotone(cls, eps: float, utility_sensitivity: Sensitivity | SupportsFloat) -> "Exponential":
        """For utilities of which adding a person lowers none, or raises none: P(i) ∝ exp(ε·uᵢ/Δ) at the same price."""
        return cls(eps, halved(utility_sensitivity))

    @cached_property
    def sensitivity(self) -> Sensitivity:
        return score_sensitivity(self.utility_sensitivity)

    @cached_property
    def rate(self) -> Fraction:
        """ε/2Δ."""
        return rate_of(self.eps, self.sensitivity)

    def release(self, value: ArrayLike) -> int:
        """The index of the chosen candidate, given the scores of all."""
        return select(scores(value), self.rate, source=self.source)

    def choose(self, candidates: Sequence[Candidate], utilities: ArrayLike) -> Candidate:
        """The chosen candidate itself. The list of candidates is public."""
        return candidates[self.release(matched(candidates, utilities))]

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


def below_one(name: str, value: SupportsFloat) -> float:
    """A probability less than 1."""
    return checks.number(name, value, 0.0, math.nextafter(1.0, 0.0), allowed="a number ≥ 0 and below 1")


def matched(candidates: Sequence[object], utilities: ArrayLike) -> ArrayLike:
    """The utilities, if there is one for each candidate."""
    if not isinstance(candidates, Sequence | np.ndarray):
        raise InvalidParameter(
            "candidates must be a list, in the order of their scores.\n"
            f"  found:  a {type(candidates).__name__}\n  do:     give list(candidates)"
        )
    row = scores(utilities)
    if len(candidates) != row.size:
        raise InvalidParameter(
            "each candidate needs one score.\n"
            f"  found:  {len(candidates)} candidates and {row.size} scores\n  do:     list them in the same order"
        )
    return row
