"""Discrete Gaussian noise, for counts and sums of integers."""

from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

from sfumato import noise
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.discrete_gaussian import DiscreteGaussianLoss
from sfumato.loss.kinds.renyi import ZcdpLoss
from sfumato.mechanisms.additive.base import MOST_WHOLE, Scaled, coordinate_count, whole_steps
from sfumato.mechanisms.examples import BOTH, ZERO_ONE, Example, Neighbours, number_example
from sfumato.rounding import round_up
from sfumato.sensitivity import Relation, Sensitivity

FEW = 16  # coordinates whose losses are summed exactly: of many sums take long, and zCDP is near


@dataclass(frozen=True)
class DiscreteGaussian(Scaled):
    """v + K with P(K = k) ∝ e^{−k²/2σ²} over the multiples k of `step`, for whole multiples v of the step.

    `Gaussian` is simpler to price: it is exactly μ-GDP for vectors, too.

    Theorem: on integer vectors this is Δ₂²/2σ²-zCDP [Canonne, Kamath & Steinke 2020, Thm 14]
    Theorem: moving several coordinates costs no more than moving one by the sum [docs/theorems/additive.md, Theorem 1]
    """

    sigma: float
    step: float | Fraction = 1
    named = "sigma"
    use = "to match others who use it"

    def law(self) -> noise.DiscreteGaussian:
        return noise.DiscreteGaussian(self.units)

    def density(self) -> None:
        return None

    def loss(self, sensitivity: Sensitivity | SupportsFloat = 1) -> PrivacyLoss:
        """Exact for one coordinate moved by Δ₁ and for up to 16 coordinates moved by linf each; else zCDP, from Δ₂.

        The profile of a vector is not that of one coordinate moved by Δ₂: it depends on how the lattice lies.
        """
        found = Sensitivity.of(sensitivity)
        size, count = found.norm("l2", "discrete Gaussian noise"), coordinate_count(found)
        if found.l1 <= size:
            return shifted_gaussian(self.units, whole_steps(found.l1, self.lattice), found.relation)
        if count and count <= FEW and Fraction(size) ** 2 >= count * Fraction(found.linf) ** 2:
            return count * shifted_gaussian(self.units, whole_steps(found.linf, self.lattice), found.relation)
        return ZcdpLoss(round_up(Fraction(size) ** 2 / (2 * Fraction(self.sigma) ** 2)), relation=found.relation)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            number_example(cls(1.0), ZERO_ONE, Neighbours.numbers(10, 11), BOTH),
            number_example(cls(3.0, 0.5), Neighbours.numbers(0, 3)),
        )


def shifted_gaussian(sigma: Fraction, distance: int, relation: Relation) -> PrivacyLoss:
    """Discrete Gaussian noise moved by so many steps; of very many steps only its zCDP parameter."""
    if distance > MOST_WHOLE:
        return ZcdpLoss(round_up(distance**2 / (2 * sigma**2)), relation=relation)
    return DiscreteGaussianLoss(float(sigma), distance, relation=relation)  # exact: a double over a power of two
