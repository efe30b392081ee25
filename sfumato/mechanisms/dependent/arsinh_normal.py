"""Arsinh-normal noise: normal in the middle, log-normal in the tails."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato import checks
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.noise.balls import Ball, ball
from sfumato.noise.lazy import normal


@dataclass(frozen=True)
class ArsinhNormalNoise(Noise):
    """Z = sinh(σN)/σ, N standard normal. All moments; zCDP for every scale and shift.

    With a = arsinh(σz)/σ: ln p = −a²/2 − ½ln(1 + σ²z²) + const, slope = a·tanh(σa)/σ + tanh²(σa).
    Disc: for |ζ − z| ≤ θ√(z² + σ⁻²), |1 + σ²ζ²| ≥ (1 − θ)²(1 + σ²z²), so a moves by at most β = θ/(σ(1 − θ)) and
    ln p by at most aβ + β²/2 − ln(1 − θ); with β ≤ 1/(1 + a) and θ ≤ 0.63 this is at most 2.

    Theorem: the arsinh-normal law and its variance (e^{2σ²} − 1)/2σ² [Bun & Steinke 2019, Sec. 3.2]
    """

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sigma", checks.number("sigma", self.sigma, 1e-3, 10.0, allowed="a number from 0.001 to 10")
        )

    def log_density(self, z: Floats) -> Floats:
        a = np.arcsinh(self.sigma * z) / self.sigma
        stretched = np.log(np.hypot(1.0, self.sigma * z))
        return -a * a / 2 - stretched - math.log(2 * math.pi) / 2

    def slope(self, z: Floats) -> Floats:
        x = np.arcsinh(self.sigma * z)
        return floats(x * np.tanh(x) / self.sigma**2 + np.tanh(x) ** 2)

    def radius(self, z: Floats) -> Floats:
        beta = self.sigma / (1 + np.arcsinh(self.sigma * z) / self.sigma)
        return floats(np.minimum(beta / (1 + beta), 0.63) * np.hypot(z, 1 / self.sigma))

    @property
    def variance(self) -> float:
        return math.expm1(2 * self.sigma**2) / (2 * self.sigma**2)

    def growth(self, z: float) -> tuple[float, float]:
        """slope ≤ arsinh(σz)/σ² + 1, and arsinh(σz) − ln z falls."""
        return 1 + (math.asinh(self.sigma * z) - math.log(z)) / self.sigma**2, 1 / self.sigma**2

    def log_power(self, k: float) -> float:
        """|sinh σN| ≤ e^{σ|N|}/2."""
        return math.log(2) + (k * self.sigma) ** 2 / 2 - k * math.log(2 * self.sigma)

    def power_limit(self, k: float) -> float:
        """A parabola in 1/k with its ends up: the larger of both ends."""
        return max(self.log_power(k) / k**2, self.sigma**2 / 2)

    @property
    def count(self) -> int:
        return 2

    def value(self, uniforms: list[Ball]) -> Ball:
        sigma = ball(Fraction(self.sigma))
        return (sigma * normal(*uniforms)).sinh() / sigma
