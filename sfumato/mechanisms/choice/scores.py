"""Reading the scores of candidates, and their sensitivity."""

from fractions import Fraction
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.mechanisms.values import read_numbers
from sfumato.noise.balls import rational
from sfumato.noise.exponential_weights import LEAST_RATE, MOST_RATE
from sfumato.sensitivity import Relation, Sensitivity

HIGHEST = float(np.finfo(np.float64).max)


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
