"""What an answer costs each person of the data at hand: per-instance privacy, to look at in private or to publish."""

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
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.private_test import Gate
from sfumato.mechanisms.dependent.regression import PredictionVariance
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.rounding import round_up
from sfumato.sensitivity import AddRemove, Sensitivity


@dataclass(frozen=True, eq=False)
class Instances:
    """By how much the answer moves without each person of these data: private, as the data are.

    What a person loses here by an answer with noise, which may be far less than what anyone could lose anywhere. None
    of it may be shown: it depends on everybody's data. `LeverageReport` is a bound that may.

    Theorem: per-instance differential privacy is the loss of one pair of data sets [Wang 2019, Def. 2]

    >>> from sfumato.mechanisms.dependent.reciprocal import Reciprocal
    >>> Instances.of(Reciprocal(), [7, 7, 7])
    Instances(3 people)
    """

    moves: tuple[Exact, ...] = field(repr=False)

    @staticmethod
    def of(statistic: Statistic[Any], data: Sequence[Any]) -> "Instances":
        """Each person is taken away in turn: as many answers as there are people, and one."""
        if not isinstance(statistic, Statistic) or statistic.relation is not AddRemove:
            raise InvalidParameter(
                "people are taken away, so this needs a statistic about add/remove.\n"
                f"  found:  a {type(statistic).__name__}\n  do:     give such as Quantile(0, 100)"
            )
        rows = list(data)
        whole = Fraction(statistic.value(rows))
        others = (Fraction(statistic.value(rows[:i] + rows[i + 1 :])) for i in range(len(rows)))
        return Instances(tuple(abs(whole - other) for other in others))

    def __repr__(self) -> str:
        return f"Instances({len(self.moves)} people)"

    def losses(self, noise: Additive) -> list[PrivacyLoss]:
        """The loss of each person by an answer with this noise."""
        return [noise.loss(Sensitivity.of(round_up(Fraction(move)))) for move in self.moves]


@dataclass(frozen=True)
class Leverages:
    """For each person a bound on how far she moves a prediction's variance, computed from her own row alone.

    λ is a lower bound of the least eigenvalue of XᵀX + ridge, bought with noise and public. Somebody with the row x,
    |x| ≤ 1, moves z·A⁻¹·z by at most |z|²·|x|²/(λ(λ − |x|²)); where that says nothing, by no more than anybody.

    Theorem: removing a row changes the inverse by a rank-one matrix [Sherman & Morrison 1950; Redberg & Wang 2021]
    """

    variance: PredictionVariance
    least: int

    def moved(self, row: ArrayLike) -> float:
        """At most this, for a person with this row; never below it."""
        size = min(Fraction(1), sum((Fraction(float(x)) ** 2 for x in np.ravel(row)), Fraction(0)))
        if self.least <= 1:
            return round_up(self.variance.everywhere)
        found = self.variance.size * size / (self.least * (self.least - size))
        return round_up(min(found, self.variance.everywhere))

    def loss(self, noise: Additive, row: ArrayLike) -> PrivacyLoss:
        """What an answer with this noise costs her, at most."""
        return noise.loss(self.moved(row))


@dataclass(frozen=True)
class LeverageReport(Mechanism[ArrayLike, Leverages]):
    """A report by which people can see what a prediction's variance with noise costs them, itself private.

    ⌊λ⌋ moves by at most 1 between neighbours. Whole noise is added and a margin taken off, so that what comes out is
    above λ with probability at most `miss`: then no bound in the report holds, but privacy does.

    Theorem: a noisy least eigenvalue bounds all leverages, at the price of one number of sensitivity 1
        [Redberg & Wang 2021; Weyl 1912]
    """

    variance: PredictionVariance
    noise: Gaussian | Laplace | DiscreteLaplace
    miss: float = 1e-6

    def __post_init__(self) -> None:
        if not isinstance(self.variance, PredictionVariance):
            raise InvalidParameter(
                f"this report is about PredictionVariance.\n  found:  a {type(self.variance).__name__}\n"
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
