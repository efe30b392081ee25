"""Noise for a data-dependent scale: the base class, with a density for its loss and a formula for exact draws.

All families are symmetric and unimodal, and ln|Z| has a log-concave density: −d ln p/d ln z is non-decreasing.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

from sfumato.loss.describe import Part
from sfumato.loss.numeric import Floats
from sfumato.noise.lazy import Formula

NEAR = 2.0  # ln p varies by at most this within the disc of `radius`


@dataclass(frozen=True)
class Noise(Part, Formula):
    """The law of Z on the real line, with density p(|z|). Methods take arrays z ≥ 0.

    `log_density` has an error of at most 1e-13·(1 + |ln p| + slope).
    """

    @abstractmethod
    def log_density(self, z: Floats) -> Floats:
        """ln p(z)."""

    @abstractmethod
    def slope(self, z: Floats) -> Floats:
        """−d ln p/d ln z: ≥ 0 and non-decreasing; relative error at most 1e-9."""

    @abstractmethod
    def radius(self, z: Floats) -> Floats:
        """R such that ln p continues analytically to |ζ − z| < R and stays within NEAR of ln p(z) there."""

    def rough_slope(self, z: Floats) -> Floats:
        """An upper bound of the slope, used only to bound rounding errors."""
        return self.slope(z)

    @property
    def straight(self) -> bool:
        """Whether ln p is linear for z > 0; it then equals its chords."""
        return False

    @property
    def grain(self) -> float:
        """Factor by which cells are coarser than usual: 1, or more where densities are slow to compute."""
        return 1.0

    @property
    @abstractmethod
    def variance(self) -> float:
        """E Z²; infinite if it does not exist."""

    @property
    def steepest(self) -> float:
        """The limit of `slope`: infinite, or the exponent with which p decreases."""
        return math.inf

    def growth(self, z: float) -> tuple[float, float] | None:
        """(a, b) with slope ≤ a + b·ln x for all x ≥ z, for log-normal tails; None for other tails."""
        return None

    def log_power(self, k: float) -> float:
        """An upper bound of ln E|Z|^k, k ≥ 0; infinite if none is known."""
        return math.inf

    def power_limit(self, k: float) -> float:
        """An upper bound of log_power(x)/x² for all x ≥ k > 0."""
        return math.inf

    def far_score(self, z: float) -> float:
        """An upper bound of slope(x)/x = −d ln p/dx for all x ≥ z > 0.

        (a + b·ln x)/x is largest where a + b·ln x = b and decreases beyond.
        """
        if math.isfinite(self.steepest):
            return self.steepest / z
        if (found := self.growth(z)) is None:
            return math.inf
        a, b = found
        x = max(z, math.exp(min(1 - a / b, 600.0)))
        return (a + b * math.log(x)) / x * (1 + 1e-9)
