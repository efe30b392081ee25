"""Gaussian noise, rounded to a public lattice: the noise to start with."""

from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

from sfumato import checks
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.numeric import ULP
from sfumato.loss.views import gaussian_noise
from sfumato.mechanisms.additive.base import Scaled, positive_sensitivity
from sfumato.mechanisms.examples import BOTH, NUMBERS, REAL_PAIRS, ZERO_ONE, Example, Neighbours, number_example
from sfumato.noise import Density, GaussianDensity, rounded_gaussian
from sfumato.noise.density import Rounded
from sfumato.rounding import quotient_up
from sfumato.sensitivity import Sensitivity

LEAST_DELTA = 1e-250  # smaller ones come too near the end of doubles to be certified sharply


@dataclass(frozen=True)
class Gaussian(Scaled):
    """round(v + N(0, σ²)) on the multiples of `step`, drawn exactly.

    Rounding is post-processing, so this is exactly μ-Gaussian-DP with μ = Δ₂/σ, for whole multiples of the step and for
    real v alike (vectors: Δ₂ is the L2 sensitivity of all coordinates together).

    Theorem: the Gaussian mechanism is Δ₂/σ-GDP [Dong, Roth & Su 2022, Thm 2.7]
    Theorem: exact profile of the Gaussian mechanism [Balle & Wang 2018, Thm 8]
    """

    sigma: float
    step: float | Fraction = 1
    named = "sigma"
    use = "by default: it composes best, and vectors pay Δ₂"

    def law(self) -> Rounded:
        return rounded_gaussian(self.units)

    def density(self) -> Density:
        return GaussianDensity(self.units)

    @staticmethod
    def analytic(
        epsilon: float, delta: float, sensitivity: Sensitivity | SupportsFloat = 1, step: float | Fraction = 1
    ) -> "Gaussian":
        """The least noise that is (ε, δ)-DP at this sensitivity, for every ε ≥ 0.

        Theorem: the Gaussian mechanism is (ε, δ)-DP if and only if its profile is ≤ δ at ε [Balle & Wang 2018, Thm 8]
        """
        return _calibrate(gaussian_noise.analytic(epsilon, delta), epsilon, delta, sensitivity, step)

    @staticmethod
    def classical_1(
        epsilon: float, delta: float, sensitivity: Sensitivity | SupportsFloat = 1, step: float | Fraction = 1
    ) -> "Gaussian":
        """The textbook's noise, σ = Δ₂√(2 ln(1.25/δ))/ε, for ε < 1 only.

        Theorem: for ε < 1 this is (ε, δ)-DP [Dwork & Roth 2014, Thm A.1]
        """
        return _calibrate(gaussian_noise.classical_1(epsilon, delta), epsilon, delta, sensitivity, step)

    @staticmethod
    def classical_2(
        epsilon: float, delta: float, sensitivity: Sensitivity | SupportsFloat = 1, step: float | Fraction = 1
    ) -> "Gaussian":
        """The closed form for every ε > 0 and δ < ½: σ = Δ₂(c + √(c² + ε))/(ε√2), c² = ln(2/(√(16δ + 1) − 1)).

        Theorem: this is (ε, δ)-DP for all ε > 0 [Zhao et al. 2019, Mechanism 2]
        """
        return _calibrate(gaussian_noise.classical_2(epsilon, delta), epsilon, delta, sensitivity, step)

    def loss(self, sensitivity: Sensitivity | SupportsFloat = 1) -> GaussianLoss:
        """μ = Δ₂/σ."""
        found = Sensitivity.of(sensitivity)
        return GaussianLoss(quotient_up(found.norm("l2", "Gaussian noise"), self.sigma), relation=found.relation)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            number_example(cls(1.0), ZERO_ONE, BOTH, *REAL_PAIRS, inputs=NUMBERS),
            number_example(cls(2.0), BOTH, inputs=NUMBERS),
            number_example(cls(1.0, 2**-10), Neighbours.numbers(0.0, 1.0), inputs=NUMBERS),
            number_example(cls(0.7, 2**-10), Neighbours.numbers(0.3, -0.7), ZERO_ONE, *REAL_PAIRS, inputs=NUMBERS),
            number_example(cls(1e9), Neighbours.numbers(0, 10**9), Neighbours.numbers(0.0, 1e9), inputs=NUMBERS),
        )


def _calibrate(
    scale: Bound, epsilon: float, delta: float, sensitivity: Sensitivity | SupportsFloat, step: float | Fraction
) -> Gaussian:
    """σ = scale·Δ₂, rounded up until the loss itself certifies the target."""
    size = positive_sensitivity(sensitivity).norm("l2", "Gaussian noise")
    goal = checks.number("delta", delta, LEAST_DELTA, 1.0, allowed="a number from 1e-250 to 1")
    sigma, more = scale.upper * size * (1 + ULP), 16 * ULP
    while GaussianLoss(quotient_up(size, sigma)).delta(epsilon).upper > goal:
        sigma, more = sigma * (1 + more), 2 * more
    return Gaussian(sigma, step)
