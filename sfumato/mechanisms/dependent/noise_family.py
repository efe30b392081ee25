"""What noise for a data-dependent scale is: a density for its price and a formula for its draws, in one class.

All families are symmetric and unimodal, and the density of ln|Z| is log-concave: −d ln p/d ln z does not fall.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

from sfumato.loss.describable import Part
from sfumato.loss.numeric import Floats
from sfumato.noise.lazy import Formula

NEAR = 2.0  # how far ln p moves within the disc of `radius`


@dataclass(frozen=True)
class Noise(Part, Formula):
    """A law Z on the line with density p(|z|). Methods take arrays z ≥ 0.

    `log_density` is computed to 1e-13·(1 + |ln p| + slope).
    """

    @abstractmethod
    def log_density(self, z: Floats) -> Floats:
        """ln p(z)."""

    @abstractmethod
    def slope(self, z: Floats) -> Floats:
        """−d ln p/d ln z: ≥ 0 and non-decreasing; computed to 1e-9, relatively."""

    @abstractmethod
    def radius(self, z: Floats) -> Floats:
        """R such that ln p continues analytically to |ζ − z| < R and stays within NEAR of ln p(z) there."""

    def rough_slope(self, z: Floats) -> Floats:
        """An upper bound of the slope, only to bound roundings."""
        return self.slope(z)

    @property
    def straight(self) -> bool:
        """Is ln p linear for z > 0? Then it strays from no chord."""
        return False

    @property
    def grain(self) -> float:
        """How much coarser cells are cut than usual: 1, or more where densities take long."""
        return 1.0

    @property
    @abstractmethod
    def variance(self) -> float:
        """E Z², infinite if there is none."""

    @property
    def steepest(self) -> float:
        """The limit of `slope`: infinite, or the power with which p falls."""
        return math.inf

    def growth(self, z: float) -> tuple[float, float] | None:
        """(a, b) with slope ≤ a + b·ln x for all x ≥ z, for log-normal tails; None for other tails."""
        return None

    def log_power(self, k: float) -> float:
        """An upper bound of ln E|Z|^k, k ≥ 0; infinite if nothing is known."""
        return math.inf

    def power_limit(self, k: float) -> float:
        """An upper bound of log_power(x)/x² for all x ≥ k > 0."""
        return math.inf

    def far_score(self, z: float) -> float:
        """An upper bound of slope(x)/x = −d ln p/dx for all x ≥ z > 0.

        (a + b·ln x)/x is largest where a + b·ln x = b, and falls from there on.
        """
        if math.isfinite(self.steepest):
            return self.steepest / z
        if (found := self.growth(z)) is None:
            return math.inf
        a, b = found
        x = max(z, math.exp(min(1 - a / b, 600.0)))
        return (a + b * math.log(x)) / x * (1 + 1e-9)
