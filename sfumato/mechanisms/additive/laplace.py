"""Laplace noise, rounded to a public lattice: pure ε-DP."""

from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.mechanisms.additive.base import Scaled, coordinate_count, positive_sensitivity
from sfumato.mechanisms.examples import BOTH, NUMBERS, REAL_PAIRS, REALS, ZERO_ONE, Example, Neighbours, number_example
from sfumato.noise import Density, LaplaceDensity, Rounded, rounded_laplace
from sfumato.rounding import quotient_up
from sfumato.sensitivity import Sensitivity


@dataclass(frozen=True)
class Laplace(Scaled):
    """round(v + Lap(scale)) on the multiples of `step`, drawn exactly; an independent draw for each coordinate.

    Rounding is post-processing, so whole multiples of the step and real numbers cost what v + Lap(scale) costs.

    Theorem: Laplace noise of scale Δ₁/ε is ε-DP [Dwork, McSherry, Nissim & Smith 2006, Prop. 1]
    Theorem: moving several coordinates costs no more than moving one by the sum [docs/theorems/additive.md, Theorem 1]
    """

    scale: float
    step: float | Fraction = 1
    named = "scale"
    use = "for pure ε"

    def law(self) -> Rounded:
        return rounded_laplace(self.units)

    def density(self) -> Density:
        return LaplaceDensity(self.units)

    @staticmethod
    def of(epsilon: float, sensitivity: Sensitivity | SupportsFloat = 1, step: float | Fraction = 1) -> "Laplace":
        """The noise that is ε-DP: scale = Δ₁/ε, rounded up."""
        size = positive_sensitivity(sensitivity).norm("l1", "Laplace noise")
        return Laplace(quotient_up(size, checks.positive("epsilon", epsilon)), step)

    def loss(self, sensitivity: Sensitivity | SupportsFloat = 1) -> PrivacyLoss:
        """That of one coordinate moved by Δ₁; where l0 coordinates move by linf each, their sum: less at δ > 0."""
        found = Sensitivity.of(sensitivity)
        size, count = found.norm("l1", "Laplace noise"), coordinate_count(found)
        if count and size >= Fraction(found.linf) * count:
            return count * LaplaceLoss(quotient_up(found.linf, self.scale), relation=found.relation)
        return LaplaceLoss(quotient_up(size, self.scale), relation=found.relation)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            number_example(cls(1.0), ZERO_ONE, BOTH, *REAL_PAIRS, inputs=NUMBERS),
            number_example(cls(2.0), BOTH, inputs=NUMBERS),
            number_example(cls(1.0, 2**-40), Neighbours.numbers(0.25, 1.25), ZERO_ONE, *REAL_PAIRS, inputs=NUMBERS),
            number_example(cls(20.0, 8), Neighbours.numbers(0.0, 20.0), inputs=REALS),
        )
