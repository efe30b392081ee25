"""Estimates at the server: raw and projected shares, intervals for the raw ones, and what hostile reports could do.

Each interval names its target. The share among *these n people* is fixed, and only the randomizer is random. The share
in *the population* they were drawn from independently is further away by the luck of that draw.
"""

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.frequency import Counts, FrequencyOracle
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.randomized_response import Tally


class Target(Enum):
    """The quantity that an interval covers."""

    PEOPLE = "these people"
    POPULATION = "the population they come from"


class Interval(NamedTuple):
    """Lower and upper ends, one of each for every value."""

    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class FrequencyEstimate:
    """Shares of all values among n people, from the counts of reports that support each.

    `raw` is unbiased and has intervals; it may be negative or exceed 1. `projected` is the nearest distribution: less
    error in total, but rare values are biased upwards, and no interval holds for it. Everything here is post-processing
    of the reports: it costs nothing more.
    """

    oracle: FrequencyOracle
    people: int
    counts: Counts = field(repr=False)

    @cached_property
    def raw(self) -> Floats:
        """(C_v/n − q)/(p − q)."""
        return floats((self.counts / self.people - float(self.oracle.q)) / float(self.oracle.gap))

    @cached_property
    def projected(self) -> Floats:
        """The nearest point of the simplex."""
        return project_to_simplex(self.raw)

    @property
    def standard_error(self) -> Floats:
        """√Var of each raw share among these people, at the estimated shares."""
        return floats(np.sqrt(self.oracle.variance(np.clip(self.raw, 0.0, 1.0)) / self.people))

    def interval(
        self, target: Target = Target.PEOPLE, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> Interval:
        """Exact intervals for the raw shares; `simultaneous`: all k hold at once with the confidence."""
        together = self.oracle.k if simultaneous else 1
        return exact_interval(self.oracle, self.counts, self.people, target, confidence, together)

    def normal_interval(
        self, target: Target = Target.PEOPLE, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> Interval:
        """Approximate intervals for the raw shares, for large counts."""
        together = self.oracle.k if simultaneous else 1
        return normal_interval(self.oracle, self.counts, self.people, target, confidence, together)

    def poisoned(self, hostile: int) -> float:
        """By how much so many hostile reports could have moved a share: (m/n)·max(1 − q, q)/(p − q)."""
        return checks.whole("hostile", hostile, 0) / self.people * self.oracle.gain


def estimate(oracle: FrequencyOracle, reports: ArrayLike) -> FrequencyEstimate:
    """Shares of all values from reports as `randomize` returns them."""
    found = oracle.read_reports(reports)
    oracle.gap  # noqa: B018  # refuses reports that tell nothing
    if not len(found):
        raise InvalidParameter(
            "nothing can be estimated from no reports.\n  found:  0 reports\n  do:     collect reports first"
        )
    return FrequencyEstimate(oracle, len(found), oracle.support(found))


def project_to_simplex(values: ArrayLike) -> Floats:
    """The nearest point with entries ≥ 0 that add up to 1: (x − θ)₊ with the θ that makes it so.

    Theorem: the Euclidean projection onto the simplex is a shift and a cut [Held, Wolfe & Crowder 1974]
    """
    x = floats(values)
    falling = np.sort(x)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, x.size + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return floats(np.maximum(x - excess[last], 0.0))


# ---- intervals ------------------------------------------------------------------------------------------------------


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
