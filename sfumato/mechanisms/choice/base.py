"""The base of mechanisms that choose by score: ε, the sensitivity Δ of the scores, and the rate ε/2Δ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.scores import halved_sensitivity, rate_of, read_scores, score_sensitivity
from sfumato.sensitivity import Sensitivity

Candidate = TypeVar("Candidate")
ROUNDING = 1e-14  # more than what a logarithm and three operations lose


@dataclass(frozen=True)
class Choice(Mechanism[ArrayLike, int]):
    """The index of one of several candidates, given the scores of all; nobody moves a score by more than Δ."""

    eps: float
    utility_sensitivity: Sensitivity | SupportsFloat

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))
        assert self.rate >= 0  # refuses what cannot be drawn

    @classmethod
    def monotone(cls, eps: float, utility_sensitivity: Sensitivity | SupportsFloat) -> Self:
        """For scores of which adding a person lowers none, or raises none: twice the rate at the same price."""
        return cls(eps, halved_sensitivity(utility_sensitivity))

    @cached_property
    def sensitivity(self) -> Sensitivity:
        return score_sensitivity(self.utility_sensitivity)

    @cached_property
    def rate(self) -> Fraction:
        """ε/2Δ."""
        return rate_of(self.eps, self.sensitivity)

    def choose(self, candidates: Sequence[Candidate], utilities: ArrayLike) -> Candidate:
        """The chosen candidate itself. The list of candidates is public."""
        return candidates[self.release(check_utilities(candidates, utilities))]


def below_one(name: str, value: SupportsFloat) -> float:
    """A probability less than 1."""
    return checks.number(name, value, 0.0, math.nextafter(1.0, 0.0), allowed="a number ≥ 0 and below 1")


def check_utilities(candidates: Sequence[object], utilities: ArrayLike) -> ArrayLike:
    """The utilities, if there is one for each candidate."""
    if not isinstance(candidates, Sequence | np.ndarray):
        raise InvalidParameter(
            "candidates must be a list, in the order of their scores.\n"
            f"  found:  a {type(candidates).__name__}\n  do:     give list(candidates)"
        )
    row = read_scores(utilities)
    if len(candidates) != row.size:
        raise InvalidParameter(
            "each candidate needs one score.\n"
            f"  found:  {len(candidates)} candidates and {row.size} scores\n  do:     list them in the same order"
        )
    return row
