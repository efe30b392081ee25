"""Intervals for shares, each with a named target: these people, or the population that they come from.

The share among *these n people* is fixed, and only the randomizer is random. The share in *the population* they were
drawn from independently is further away by the luck of that draw. One number cannot serve both.
"""

from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from sfumato import checks
from sfumato.local.frequency import Counts, FrequencyOracle
from sfumato.loss.numeric import Floats
from sfumato.mechanisms.randomized_response import Tally


class Target(Enum):
    """What an interval is about."""

    PEOPLE = "these people"
    POPULATION = "the population they come from"


class Interval(NamedTuple):
    """Lower and upper ends, one of each for every value."""

    low: Floats
    high: Floats


def miss_of(confidence: float, simultaneous: int) -> float:
    """The probability to miss, split evenly over so many simultaneous intervals (Bonferroni)."""
    sure = checks.number("confidence", confidence, 0.5, 1 - 1e-12, allowed="a number from 0.5 to below 1, like 0.95")
    return (1 - sure) / simultaneous


def exact_interval(
    oracle: FrequencyOracle, counts: Counts, people: int, target: Target, confidence: float, simultaneous: int = 1
) -> Interval:
    """Covers with at least the confidence, for every population and every n.

    These people: |C_v − E C_v| stays within the radius of `Tally`, for any number of holders. The population: C_v is
    binomial with λ = q + π(p − q); the Clopper–Pearson interval of λ is mapped to π. Both are cut to [0, 1].

    Theorem: the Clopper–Pearson interval covers [Clopper & Pearson 1934]
    """
    miss = miss_of(confidence, simultaneous)
    q, gap = float(oracle.q), float(oracle.gap)
    if target is Target.PEOPLE:
        radius = tally_radius(oracle.p, oracle.q, people, miss) / (people * gap) * (1 + 1e-12)
        middle = (counts / people - q) / gap
        low, high = middle - radius, middle + radius
    else:
        c = counts.astype(np.float64)
        low = np.where(c > 0, betaincinv(np.maximum(c, 1), people - c + 1, miss / 2), 0.0)
        high = np.where(c < people, betaincinv(c + 1, np.maximum(people - c, 1), 1 - miss / 2), 1.0)
        low, high = (low - q) / gap, (high - q) / gap
    return Interval(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))


def normal_interval(
    oracle: FrequencyOracle, counts: Counts, people: int, target: Target, confidence: float, simultaneous: int = 1
) -> Interval:
    """Covers with about the confidence where counts are large; narrower than the exact one.

    These people: the variance of the randomizer at the estimated share. The population: C_v is binomial.
    """
    z = -float(ndtri(miss_of(confidence, simultaneous) / 2))
    q, gap = float(oracle.q), float(oracle.gap)
    seen = counts / people
    middle = (seen - q) / gap
    if target is Target.PEOPLE:
        spread = np.sqrt(oracle.variance(np.clip(middle, 0.0, 1.0)) / people)
    else:
        spread = np.sqrt(seen * (1 - seen) / people) / gap
    return Interval(np.clip(middle - z * spread, 0.0, 1.0), np.clip(middle + z * spread, 0.0, 1.0))


@lru_cache(maxsize=256)
def tally_radius(p: Fraction, q: Fraction, people: int, miss: float) -> float:
    """How far the number of supporting reports strays from its mean, at worst, but for this probability."""
    return Tally((float(p), float(q)), (odds(p), odds(q)), people).radius(miss)


def odds(chance: Fraction) -> float:
    """p/(1 − p)."""
    return float(chance / (1 - chance))
