"""Gaussian noise, rounded to a public lattice: the noise to start with."""

from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

from sfumato import checks
from sfumato.loss.gaussian import GaussianLoss
from sfumato.mechanisms.additive import Additive, on_lattice
from sfumato.mechanisms.base import quotient
from sfumato.noise import Density, GaussianDensity, Lattice, rounded_gaussian
from sfumato.noise.density import Rounded
from sfumato.sensitivity import Sensitivity


@dataclass(frozen=True)
class Gaussian(Additive):
    """round(v + N(0, σ²)) on the multiples of `step`, drawn exactly.

    Rounding is post-processing, so this is exactly μ-Gaussian-DP with μ = Δ₂/σ, for whole multiples of the step and for
    real v alike (vectors: Δ₂ is the L2 sensitivity of all coordinates together).

    Theorem: the Gaussian mechanism is Δ₂/σ-GDP [Dong, Roth & Su 2022, Thm 2.7]
    Theorem: exact profile of the Gaussian mechanism [Balle & Wang 2018, Thm 8]
    """

    sigma: float
    step: float | Fraction = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.positive("sigma", self.sigma))
        object.__setattr__(self, "_lattice", on_lattice(self.step))
        self.law()  # refuses what cannot be drawn

    @property
    def lattice(self) -> Lattice:
        found: Lattice = self.__dict__["_lattice"]
        return found

    def law(self) -> Rounded:
        return rounded_gaussian(self.lattice.units(self.sigma))

    def density(self) -> Density:
        return GaussianDensity(self.lattice.units(self.sigma))

    def loss(self, sensitivity: Sensitivity | SupportsFloat = 1) -> GaussianLoss:
        """μ = Δ₂/σ."""
        found = Sensitivity.of(sensitivity)
        return GaussianLoss(quotient(found.norm("l2", "Gaussian noise"), self.sigma), relation=found.relation)

    def error(self, confidence: float = 0.95, coordinates: int = 1) -> float:
        raise NotImplementedError
