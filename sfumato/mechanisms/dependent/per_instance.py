"""Per-instance privacy: what an answer costs each person in these data, kept private or released as a report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.base import Additive
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.ladder import Ladder
from sfumato.mechanisms.dependent.ordered_values import OfValues, Ordered
from sfumato.mechanisms.dependent.prediction_variance import PredictionVariance
from sfumato.mechanisms.dependent.private_test import Gate, IntegerNoise
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.mechanisms.dependent.trimmed_mean import TrimmedMean
from sfumato.mechanisms.examples import LARGEST_DOUBLE, LEAST_DOUBLE, ROWS_OF_NUMBERS, Example, Inputs, Neighbours
from sfumato.rounding import round_up
from sfumato.sensitivity import AddRemove, Sensitivity


@dataclass(frozen=True, eq=False)
class Instances:
    """The change of the answer when each person in these data is removed. As private as the data.

    A person's own loss may be far below the loss that holds for all data sets. It depends on everybody's data, so it
    must not be published; `MeanReport`, `MovesReport` and `LeverageReport` release bounds on it.

    Theorem: per-instance differential privacy is the loss of one pair of data sets [Wang 2019, Def. 2]

    >>> from sfumato.mechanisms.dependent.statistic import Reciprocal
    >>> Instances.of(Reciprocal(), [7, 7, 7])
    Instances(3 people)
    """

    moves: tuple[Exact, ...] = field(repr=False)

    @staticmethod
    def of(statistic: Statistic[Any], data: Sequence[Any]) -> "Instances":
        """Removes each person in turn, which takes n + 1 evaluations of the statistic."""
        if not isinstance(statistic, Statistic) or statistic.relation is not AddRemove:
            raise InvalidParameter(
                "per-instance losses remove people, so the statistic must use the add/remove relation.\n"
                f"  found:  a {type(statistic).__name__}\n  do:     give such as Quantile(0, 100)"
            )
        rows = list(data)
        answer = Fraction(statistic.value(rows))
        others = (Fraction(statistic.value(rows[:i] + rows[i + 1 :])) for i in range(len(rows)))
        return Instances(tuple(abs(answer - other) for other in others))

    def __repr__(self) -> str:
        return f"Instances({len(self.moves)} people)"

    def losses(self, noise: Additive) -> list[PrivacyLoss]:
        """Each person's loss from an answer with this noise."""
        return [noise.loss(Sensitivity.of(round_up(Fraction(move)))) for move in self.moves]


@dataclass(frozen=True)
class Leverages:
    """A public bound on each person's change of a prediction's variance, as a function of their own row.

    λ is a noisy lower bound of the least eigenvalue of XᵀX + ridge. A person with the row x, |x| ≤ 1, changes z·A⁻¹·z
    by at most |z|²·|x|²/(λ(λ − |x|²)); where that is not defined, by at most the global sensitivity.

    Theorem: removing a row changes the inverse by a rank-one matrix [Sherman & Morrison 1950; Redberg & Wang 2021]
    """

    variance: PredictionVariance
    least: int

    def moved(self, row: ArrayLike) -> float:
        """Upper bound of the change by a person with this row."""
        size = min(Fraction(1), sum((Fraction(float(x)) ** 2 for x in np.ravel(row)), Fraction(0)))
        if self.least <= 1:
            return round_up(self.variance.everywhere)
        found = self.variance.size * size / (self.least * (self.least - size))
        return round_up(min(found, self.variance.everywhere))

    def loss(self, noise: Additive, row: ArrayLike) -> PrivacyLoss:
        """Upper bound of this person's loss from an answer with this noise."""
        return noise.loss(self.moved(row))


@dataclass(frozen=True)
class LeverageReport(Mechanism[ArrayLike, Leverages]):
    """A private report from which people can compute what a noisy prediction variance costs them.

    ⌊λ⌋ has sensitivity 1. Integer noise is added and a margin subtracted, so that the result exceeds λ with probability
    at most `miss`. In that case the bounds in the report do not hold, but the report is still private.

    Theorem: a noisy least eigenvalue, a number of sensitivity 1, bounds all leverages
        [Redberg & Wang 2021; Weyl 1912]
    """

    variance: PredictionVariance
    noise: IntegerNoise
    miss: float = 1e-6
    use = "to tell each person their own loss, for a linear regression"

    def __post_init__(self) -> None:
        if not isinstance(self.variance, PredictionVariance):
            raise InvalidParameter(
                f"variance must be a PredictionVariance.\n  found:  a {type(self.variance).__name__}\n"
                "  do:     give PredictionVariance((0.6, 0.8))"
            )
        object.__setattr__(self, "miss", checks.number("miss", self.gate.delta, 0.0, 0.5, allowed="a small number"))

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.noise, self.miss)

    def release(self, value: ArrayLike) -> Leverages:
        self.ready(1)
        noisy = self.noise.release(int(self.variance.eigenvalue(value)))
        assert isinstance(noisy, int)
        return Leverages(self.variance, max(0, noisy - self.gate.threshold + 1))

    def ready(self, count: int) -> None:
        self.noise.ready(count)

    def loss(self) -> PrivacyLoss:
        return self.noise.loss(1)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
        from sfumato.mechanisms.dependent.prediction_variance import PredictionVariance

        axes = [[0.0, 1.0], [1.0, 0.0]]
        odd = [[math.nan, math.inf], [LARGEST_DOUBLE, -LARGEST_DOUBLE], [LEAST_DOUBLE, -0.0]]
        rows = Inputs("rows of numbers", ([], np.zeros((0, 2)), odd), ())
        made = cls(PredictionVariance((0.6, 0.8)), DiscreteLaplace(1.0), 0.1)
        return (Example(made, (Neighbours(axes * 4, axes * 3 + axes[:1]),), rows),)


@dataclass(frozen=True)
class Means:
    """A public bound on each person's change of a mean, as a function of their own value.

    There are at least `least` people, and their mean is between `low` and `high`. Removing x changes the mean T of
    n ≥ 2 people by |x − T|/(n − 1).
    """

    mean: TrimmedMean
    least: int
    low: Fraction
    high: Fraction

    def moved(self, value: float) -> float:
        """Upper bound of the change by a person with this value."""
        span = Fraction(self.mean.exact(self.mean.ends[1] - self.mean.ends[0]))
        if self.least <= 1:
            return round_up(span)
        x = Fraction(self.mean.exact(int(self.mean.order_values([value]).at([1])[0])))  # as it counts in the mean
        return round_up(min(max(abs(x - self.low), abs(x - self.high)) / (self.least - 1), span))

    def loss(self, noise: Additive, value: float) -> PrivacyLoss:
        """Upper bound of this person's loss from the mean with this noise."""
        return noise.loss(self.moved(value))


@dataclass(frozen=True)
class MeanReport(Mechanism[ArrayLike | Ordered, Means]):
    """A private report for a mean: a lower bound of the number of people, and an interval that contains the mean.

    It releases a noisy count, and a noisy sum of the differences from the middle of the range, in steps. Each error
    exceeds its radius with probability at most miss/2. In that case the bounds in the report may not hold, but the
    report is still private.

    Theorem: a person's own loss is bounded by a function of public aggregates [Wang 2019, Def. 2; Redberg & Wang 2021]

    >>> import sfumato as sf
    >>> mean = TrimmedMean(0, 100, trim=0)
    >>> report = MeanReport(mean, sf.Gaussian(4.0), sf.Gaussian(200.0)).release([40, 60] * 500)
    >>> report.moved(50.0) < report.moved(100.0) < 0.1
    True
    """

    mean: TrimmedMean
    count: IntegerNoise
    total: IntegerNoise
    miss: float = 1e-6
    use = "to tell each person their own loss, for a mean"

    def __post_init__(self) -> None:
        if not isinstance(self.mean, TrimmedMean) or self.mean.trim:
            raise InvalidParameter(
                f"mean must not trim any values.\n  found:  {self.mean!r}\n  do:     give TrimmedMean(0, 100, trim=0)"
            )
        check_integer_noise("count", self.count)
        check_integer_noise("total", self.total)
        object.__setattr__(self, "miss", checks.number("miss", self.miss, 1e-12, 0.5, allowed="a small number"))

    @property
    def middle(self) -> int:
        return sum(self.mean.ends) // 2

    @property
    def half(self) -> int:
        """The sensitivity of the sum, in steps."""
        return self.mean.ends[1] - self.middle

    @cached_property
    def radii(self) -> tuple[int, int]:
        each = 1 - self.miss / 2
        return math.ceil(self.count.error(each)), math.ceil(self.total.error(each))

    def loss(self) -> PrivacyLoss:
        return self.count.loss(1) + self.total.loss(self.half)

    def ready(self, count: int) -> None:
        self.count.ready(count)
        self.total.ready(count)

    def release(self, value: ArrayLike | Ordered) -> Means:
        self.ready(1)
        x = self.mean.order_values(value)
        far = int(x.up_to(x.size)) - int(x.up_to(0)) - self.middle * x.size
        n, s = release_integer(self.count, x.size), release_integer(self.total, far)
        many = [max(1, n + side * self.radii[0]) for side in (-1, 1)]
        ends = [self.middle + Fraction(s + side * self.radii[1], size) for side in (-1, 1) for size in many]
        low, high = (min(max(end, Fraction(self.mean.ends[0])), Fraction(self.mean.ends[1]))
                     for end in (min(ends), max(ends)))  # fmt: skip
        return Means(self.mean, many[0], low * self.mean.lattice.step, high * self.mean.lattice.step)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
        from sfumato.mechanisms.additive.laplace import Laplace
        from sfumato.mechanisms.dependent.trimmed_mean import TrimmedMean

        rows = Inputs("numbers, one per person", ROWS_OF_NUMBERS, ())
        mean = TrimmedMean(0, 8, trim=0)
        pairs = (Neighbours([2] * 9, [2] * 8), Neighbours([0, 8], [0, 8, 8]))
        return (
            Example(cls(mean, DiscreteLaplace(2.0), DiscreteLaplace(8.0), 0.1), (Neighbours([8] * 6, [8] * 5),), rows),
            Example(cls(mean, Laplace(2.0), Laplace(8.0), 0.1), pairs, rows),
        )


@dataclass(frozen=True)
class Moves:
    """A public bound on the change of the answer by anybody in these data."""

    most: float

    def loss(self, noise: Additive) -> PrivacyLoss:
        """Upper bound of anybody's loss from an answer with this noise."""
        return noise.loss(self.most)


@dataclass(frozen=True)
class MovesReport(Mechanism[Any, Moves]):
    """A private report for any statistic, such as a median: a bound on the change by one of these people.

    The rung of the data has sensitivity `steps`. Integer noise and a margin are added, so that the result is below the
    rung with probability at most `miss`. In that case the bound may not hold, but the report is still private.

    Theorem: the scale of a rung is at least the local sensitivity [docs/theorems/dilation.md, Theorem 3]

    >>> import sfumato as sf
    >>> median = sf.dependent.Quantile(0, 1000)
    >>> MovesReport(median, sf.Gaussian(8.0)).release([i % 100 + 450 for i in range(5000)]).most < 60
    True
    """

    statistic: Statistic[Any]
    noise: IntegerNoise
    dilation: float = 0.1
    steps: int = 4
    miss: float = 1e-6
    use = "to tell each person how far they move a statistic"

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must be a Statistic.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give one of sfumato.mechanisms.dependent, such as Quantile(0, 100)"
            )
        check_integer_noise("noise", self.noise)
        object.__setattr__(self, "miss", checks.number("miss", self.miss, 1e-12, 0.5, allowed="a small number"))
        assert self.ladder  # raises InvalidParameter for a bad dilation or number of steps

    @cached_property
    def ladder(self) -> Ladder:
        """The public ladder, from a millionth of the global sensitivity up, or from the lattice step if larger."""
        worst = Fraction(self.statistic.everywhere)
        step = self.statistic.lattice.step if isinstance(self.statistic, OfValues) else Fraction(0)
        return Ladder(self.dilation, worst, min(max(worst / 2**20, step), worst), self.steps)

    @cached_property
    def margin(self) -> int:
        return math.ceil(self.noise.error(1 - self.miss))

    def loss(self) -> PrivacyLoss:
        moves = float(self.ladder.steps)
        return self.noise.loss(Sensitivity(l0=1, linf=moves, l1=moves, l2=moves, relation=self.statistic.relation))

    def ready(self, count: int) -> None:
        self.noise.ready(count)

    def release(self, value: Any) -> Moves:
        self.ready(1)
        window = self.ladder.window
        rung = self.ladder.rung(self.statistic.curve(self.statistic.prepare(value), window - 1) if window else ())
        place = max(0, min(release_integer(self.noise, rung) + self.margin, self.ladder.top))
        return Moves(round_up(min(Fraction(self.ladder.ceilings[place]), Fraction(self.statistic.everywhere))))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
        from sfumato.mechanisms.dependent.order_statistics import Quantile

        rows = Inputs("numbers, one per person", ROWS_OF_NUMBERS, ())
        pairs = (Neighbours([4] * 5, [4] * 6), Neighbours([4] * 4, [4] * 5))
        return (
            Example(cls(Quantile(0, 8), DiscreteLaplace(4.0), 0.5, 4, 0.1), (Neighbours([4] * 3, [4] * 2),), rows),
            Example(cls(Quantile(0, 8), DiscreteLaplace(4.0), 0.3, miss=0.4), pairs, rows),
        )


def release_integer(noise: IntegerNoise, value: int) -> int:
    found = noise.release(value)
    assert isinstance(found, int)
    return found


def check_integer_noise(name: str, noise: object) -> None:
    if not isinstance(noise, IntegerNoise) or noise.lattice.step != 1:
        raise InvalidParameter(
            f"{name} must be integer noise: Gaussian, Laplace or DiscreteLaplace with a step of 1.\n"
            f"  found:  {type(noise).__name__}\n  do:     give such as sf.Gaussian(8.0)"
        )
