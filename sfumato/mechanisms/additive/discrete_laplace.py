"""Discrete Laplace noise, for counts and sums of integers."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import SupportsFloat

from sfumato import checks, noise
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.kinds.discrete_laplace import DiscreteLaplaceLoss
from sfumato.mechanisms.additive.base import (
    MOST_WHOLE,
    Scaled,
    lattice_of_step,
    loss_by_coordinates,
    positive_sensitivity,
    whole_steps,
)
from sfumato.mechanisms.examples import BOTH, ZERO_ONE, Example, Neighbours, number_example
from sfumato.rounding import quotient_up, round_up
from sfumato.sensitivity import Relation, Sensitivity


@dataclass(frozen=True)
class DiscreteLaplace(Scaled):
    """v + K with P(K = k) ∝ e^{−|k|/scale} over the multiples k of `step`, for whole multiples v of the step.

    Theorem: the geometric mechanism is ε-DP with ε = Δ₁/scale [Ghosh, Roughgarden & Sundararajan 2012]
    Theorem: moving several coordinates costs no more than moving one by the sum [docs/theorems/additive.md, Theorem 1]
    """

    scale: float
    step: float | Fraction = 1
    named = "scale"
    use = "for pure ε on counts: a little less noise than Laplace"

    def law(self) -> noise.DiscreteLaplace:
        return noise.DiscreteLaplace(self.units)

    def density(self) -> None:
        return None

    @staticmethod
    def of(
        epsilon: float, sensitivity: Sensitivity | SupportsFloat = 1, step: float | Fraction = 1
    ) -> "DiscreteLaplace":
        """The noise that is ε-DP: scale = Δ₁/ε, Δ₁ and the quotient rounded up."""
        lattice = lattice_of_step(step)
        size = (
            whole_steps(positive_sensitivity(sensitivity).norm("l1", "discrete Laplace noise"), lattice) * lattice.step
        )
        scale, goal = quotient_up(round_up(size), checks.positive("epsilon", epsilon)), float(epsilon)
        while shifted_laplace(lattice.units(scale), int(size / lattice.step), Relation.AddRemove).supremum()[0] > goal:
            scale = math.nextafter(scale, math.inf)
        return DiscreteLaplace(scale, step)

    def loss(self, sensitivity: Sensitivity | SupportsFloat = 1) -> PrivacyLoss:
        """That of one coordinate moved by Δ₁; where l0 coordinates move by linf each, their sum: less at δ > 0."""
        return loss_by_coordinates(
            sensitivity, self.lattice, "discrete Laplace noise", partial(shifted_laplace, self.units)
        )

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            number_example(cls(1.0), ZERO_ONE, Neighbours.numbers(10, 11), BOTH),
            number_example(cls(0.5, 2**-20), ZERO_ONE),
        )


def shifted_laplace(scale: Fraction, distance: int, relation: Relation) -> PrivacyLoss:
    """Discrete Laplace noise moved by so many steps; of very many steps only that it is distance/scale-DP."""
    if distance > MOST_WHOLE:
        return PureLoss(quotient_up(round_up(distance), float(scale)), relation=relation)
    return DiscreteLaplaceLoss(float(scale), distance, relation=relation)  # exact: a double divided by a power of two
