"""What the server learns: raw and projected shares, intervals for the raw ones, and what hostile reports could do."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.frequency import Counts, FrequencyOracle
from sfumato.local.intervals import Interval, Target, exact_interval, normal_interval
from sfumato.loss.numeric import Floats, floats


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
