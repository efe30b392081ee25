"""A hold-out set that can be used again and again: it answers only where the training set over-fits."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.streams.above_threshold import AboveThreshold, Watch
from sfumato.mechanisms.streams.mechanism_state import Session
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sensitivity import ReplaceOne, Sensitivity

UNIT = 1 << 20  # values are rounded to multiples of 1/UNIT, so that their sum is a whole number
MOST_PEOPLE = 1 << 40

Query = Callable[[Any], ArrayLike]


@dataclass(frozen=True)
class ReusableHoldout:
    """Thresholdout: the mean of a query on the training set if the hold-out agrees with it, else a noisy hold-out mean.

    A query gives each row a value in [0, 1]. The hold-out agrees if the two means differ by less than about
    `threshold`, which a sparse vector of ε = `eps` decides; it ends after `answers` disagreements, and only these cost.
    Such an answer has Gaussian noise of deviation `sigma`. What is private is the hold-out, of n people; n and all that
    concerns the training set are known to whoever asks. Queries may depend on earlier answers; they must not raise, nor
    take longer, on some rows.

    |sum over the hold-out − n·training mean| moves by at most 1 if one person of the hold-out is replaced, and so does
    the sum. Values outside [0, 1] are clipped, NaN counts as 0, and all are rounded to 2⁻²⁰, row by row.

    Theorem: answers about the difference by the sparse vector technique keep a hold-out fresh [Dwork et al. 2015,
        Thresholdout; what it implies about over-fitting is `loss().generalisation(n)`]

    >>> holdout = ReusableHoldout(n=4000, eps=1.0, threshold=0.05, answers=5, sigma=0.01)
    >>> session = holdout.begin(train=np.zeros(4000), rows=np.zeros(4000))
    >>> session.ask(lambda rows: rows).value
    0.0
    """

    n: int
    eps: float
    threshold: float
    answers: int
    sigma: float
    source: Source = field(default=SYSTEM, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.whole("n", self.n, 1, MOST_PEOPLE))
        object.__setattr__(self, "eps", checks.positive("eps", self.eps))
        object.__setattr__(self, "answers", checks.whole("answers", self.answers, 1))
        for name in ("threshold", "sigma"):
            value = checks.number(name, getattr(self, name), 1e-6, 1.0, allowed="a part of the range, above 0")
            object.__setattr__(self, name, value)
        assert self.watch.laws  # refuses what cannot be drawn

    @property
    def sensitivity(self) -> Sensitivity:
        """Of a sum over the hold-out, in units."""
        return Sensitivity(l0=1, linf=UNIT, l1=UNIT, l2=UNIT, relation=ReplaceOne)

    @cached_property
    def watch(self) -> AboveThreshold:
        level = math.ceil(Fraction(self.threshold) * self.n * UNIT)
        return AboveThreshold(self.eps, level, self.answers, self.sensitivity, source=self.source)

    @cached_property
    def noise(self) -> Gaussian:
        return Gaussian(self.sigma * self.n * UNIT, source=self.source)

    def loss(self) -> PrivacyLoss:
        """Of all answers together, about replacing one person of the hold-out."""
        return self.watch.loss() + self.answers * self.noise.loss(self.sensitivity)

    def error(self, confidence: float = 0.95, *, queries: int) -> float:
        """With this probability no answer to so many queries is further than this from the mean on the hold-out.

        A wrong "agrees" is at most threshold + the sparse vector's error off; a noisy answer, its noise. Half of the
        failure probability is for each; queries may depend on answers.
        """
        part = (1 + confidence) / 2
        off = self.watch.error(part, queries=queries + self.answers) / (self.n * UNIT)
        noisy = self.noise.error(1 - (1 - part) / self.answers) / (self.n * UNIT)
        return max(self.threshold + off, noisy) + 1 / (self.n * UNIT)

    def begin(self, train: Any, rows: Any) -> "HoldoutSession":
        """A session that answers queries about these rows, one by one."""
        return HoldoutSession(self, train, rows)


@dataclass(frozen=True)
class Estimate:
    """An answer, and whether the hold-out disagreed with the training set, so that the answer is its noisy mean."""

    value: float
    over_fitted: bool


class HoldoutSession(Session):
    """Queries to a hold-out, until it has disagreed as often as was paid for: then `Exhausted`."""

    def __init__(self, holdout: ReusableHoldout, train: Any, rows: Any) -> None:
        super().__init__()
        if count_rows(rows) != holdout.n:
            raise InvalidParameter(
                f"the hold-out must have n rows: their number is public.\n  found:  {count_rows(rows):,} rows where "
                f"n = {holdout.n:,}\n  do:     give ReusableHoldout the number of rows"
            )
        self._holdout, self._train, self._rows = holdout, train, rows
        self._watch: Watch = holdout.watch.begin()

    @property
    def left(self) -> int:
        """How often the hold-out may still disagree."""
        return self._watch.left

    def ask(self, query: Query) -> Estimate:
        """The mean of a query, as the training set and the hold-out have it."""
        seen = sum_values(query, self._train)
        people = max(count_rows(self._train), 1)
        guess = round(Fraction(seen * self._holdout.n, people))
        with self.exclusive():
            self._holdout.noise.ready(1)
            total = sum_values(query, self._rows)
            if not self._watch.above(abs(total - guess)):
                return Estimate(seen / (people * UNIT), False)
            noisy = self._holdout.noise.release(total)
            assert isinstance(noisy, int)
            return Estimate(min(max(noisy / (self._holdout.n * UNIT), 0.0), 1.0), True)


def count_rows(rows: Any) -> int:
    """The number of rows of an array, a data frame or a list."""
    shape = getattr(rows, "shape", None)
    return int(shape[0]) if shape else len(rows)


def sum_values(query: Query, rows: Any) -> int:
    """The sum of the query's values in units of 2⁻²⁰; each is clipped and rounded by itself."""
    values = np.asarray(query(rows))
    if values.shape != (count_rows(rows),) or values.dtype.kind not in "biuf":
        raise InvalidParameter(
            "a query gives each row one number.\n"
            f"  found:  {values.dtype} of shape {values.shape} for {count_rows(rows):,} rows\n"
            "  do:     return one value in [0, 1] for each row"
        )
    safe = np.clip(np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return int(np.rint(safe * UNIT).astype(np.int64).sum())
