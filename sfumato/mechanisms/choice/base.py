"""The base of mechanisms that choose by score: reading scores, their sensitivity Δ, and the rate ε/2Δ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.private_inputs import read_numbers
from sfumato.noise.balls import rational
from sfumato.noise.exponential_weights import LEAST_RATE, MOST_RATE
from sfumato.sensitivity import Relation, Sensitivity

Candidate = TypeVar("Candidate")
ROUNDING = 1e-14  # more than what a logarithm and three operations lose
HIGHEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Choice(Mechanism[ArrayLike, int]):
    """The index of one of several candidates, given the scores of all; one unit changes a score by at most Δ."""

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


def read_scores(values: ArrayLike) -> NDArray[np.int64] | NDArray[np.float64]:
    """A row of finite numbers. How many there are and of which type is public; values are never refused.

    ±∞ counts as the largest double of that sign, and NaN, no score at all, as the lowest. Moving numbers into a range
    never moves two of them apart, but a candidate that is NaN for one data set and a number for its neighbour does: the
    sensitivity is that of the scores so read.
    """
    row = read_numbers(values)
    if row.ndim != 1 or not row.size:
        raise InvalidParameter(
            f"scores must be a row of numbers, one for each candidate.\n  found:  an array of shape {row.shape}\n"
            "  do:     give one dimension and at least one candidate"
        )
    if row.dtype == np.float64:  # the same passes whatever the values
        np.fmax(row, -HIGHEST, out=row)
        np.fmin(row, HIGHEST, out=row)
    return row


def score_sensitivity(value: Sensitivity | SupportsFloat) -> Sensitivity:
    """The sensitivity of every score: one person may move all of them at the same time."""
    found = Sensitivity.of(value)
    if not found.norm("linf", "a choice by scores") > 0:
        raise InvalidParameter(
            "the sensitivity of the scores must be positive.\n  found:  0\n"
            "  do:     take the best candidate as it is if nobody's data move the scores"
        )
    return found


def halved_sensitivity(value: Sensitivity | SupportsFloat) -> Sensitivity:
    """The sensitivity of monotone scores, which one person moves all up or all down: half of Δ.

    Proof. A choice that sees differences of scores only is the same after a common shift. Changes in [0, Δ], shifted by
    −Δ/2, are changes in [−Δ/2, Δ/2].
    """
    found = score_sensitivity(value)
    if found.relation in (Relation.ReplaceOne, Relation.Replace):
        raise InvalidParameter(
            "scores are not monotone when one person replaces another: some go up and some go down.\n"
            f"  found:  a sensitivity about {found.relation.value}\n"
            "  do:     use the general form, or the sensitivity about add/remove"
        )
    return Sensitivity(linf=found.linf / 2, relation=found.relation)


def rate_of(eps: float, sensitivity: Sensitivity) -> Fraction:
    """ε/2Δ, exactly."""
    exact = Fraction(eps) / (2 * Fraction(sensitivity.linf))
    return rational("eps/(2·sensitivity)", exact, LEAST_RATE if exact else 0, MOST_RATE)
