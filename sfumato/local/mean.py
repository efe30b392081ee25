"""Means of numbers in [−1, 1]: what the randomizers for one number share, and the estimate with its interval."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sfumato.errors import InvalidParameter
from sfumato.local.estimate import miss_of
from sfumato.local.randomizer import CHUNK, Randomizer, Reports
from sfumato.loss.numeric import Floats

STEPS = 1 << 24  # a number is first rounded to a multiple of 1/STEPS, which moves it by at most 2⁻²⁵


class MeanInterval(NamedTuple):
    """Estimate and the two ends of an interval for the mean of these people."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class MeanRandomizer(Randomizer):
    """Reports are integers, and `decode` turns each into an unbiased number: E[decode(report)] = x."""

    @abstractmethod
    def answers(self, numbers: NDArray[np.int64]) -> Reports:
        """Reports of many numbers, given as multiples of 1/STEPS."""

    @abstractmethod
    def decode(self, reports: Reports) -> Floats:
        """Unbiased numbers."""

    @property
    @abstractmethod
    def report_bound(self) -> int:
        """Reports are integers in [0, report_bound)."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """The largest decoded number."""

    @abstractmethod
    def variance(self, x: ArrayLike) -> Floats:
        """Variance of a decoded report about x."""

    @property
    @abstractmethod
    def worst_variance(self) -> float:
        """The largest variance over all x."""

    @property
    def gain(self) -> float:
        """By how much one hostile report can move n times the mean: reach + 1."""
        return self.reach + 1

    def randomize(self, numbers: ArrayLike) -> Reports | int:
        """The report of a number in [−1, 1], or of each number of an array."""
        found = np.asarray(numbers)
        if found.dtype.kind not in "fiu" or not np.all((found >= -1) & (found <= 1)):
            raise InvalidParameter(
                "numbers must lie in [−1, 1].\n  found:  a number outside, NaN, or no numbers\n"
                "  do:     map the public range of your numbers to [−1, 1], and clip to it first"
            )
        scaled = np.rint(np.asarray(found, np.float64) * STEPS).astype(np.int64)
        if not scaled.ndim:
            return self.answer(int(scaled), self.below)
        flat = scaled.reshape(-1)
        parts = [self.answers(flat[at : at + CHUNK]) for at in range(0, max(flat.size, 1), CHUNK)]
        return np.concatenate(parts).reshape(scaled.shape)

    def estimate(self, reports: ArrayLike, confidence: float = 0.95) -> MeanInterval:
        """The mean of these people with an interval that covers at least as often as stated: Bernstein's, or 1.

        |error| ≤ √(2V·l/n) + 2·reach·l/(3n) with l = ln(2/miss), V the largest variance.

        Theorem: Bernstein's inequality for bounded independent summands
            [Bernstein 1924; Boucheron, Lugosi & Massart 2013, Thm 2.10]
        """
        found = np.asarray(reports)
        if found.ndim != 1 or found.dtype.kind not in "iu" or not found.size:
            raise InvalidParameter(
                "give a row of reports.\n  found:  none, or something else\n  do:     give what `randomize` returned"
            )
        if found.min() < 0 or found.max() >= self.report_bound:
            raise InvalidParameter(
                f"reports are whole numbers below {self.report_bound:,}.\n  found:  a number outside\n"
                "  do:     count what is malformed apart"
            )
        middle, n = float(np.mean(self.decode(found))), found.size
        long = math.log(2 / miss_of(confidence, 1))
        radius = math.sqrt(2 * self.worst_variance * long / n) + 2 * (self.reach + 1) * long / (3 * n)
        return MeanInterval(middle, max(-1.0, middle - radius), min(1.0, middle + radius))

    def normal_interval(self, reports: ArrayLike, confidence: float = 0.95) -> MeanInterval:
        """An interval for the population's mean, by the normal approximation and the sample's own variance."""
        decoded = self.decode(np.asarray(reports))
        z = -float(ndtri(miss_of(confidence, 1) / 2))
        middle, radius = float(decoded.mean()), z * float(decoded.std(ddof=1)) / math.sqrt(decoded.size)
        return MeanInterval(middle, middle - radius, middle + radius)
