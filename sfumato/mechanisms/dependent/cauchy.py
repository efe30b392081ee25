"""Cauchy noise and its generalisation: the first noise known to fit smooth sensitivity."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato import checks
from sfumato.loss.numeric import Floats
from sfumato.mechanisms.dependent.noise_family import NEAR, Noise
from sfumato.noise.balls import Ball, ball
from sfumato.noise.lazy import signed


@dataclass(frozen=True)
class CauchyNoise(Noise):
    """p(z) ∝ 1/(1 + |z|^γ), γ ≥ 2; γ = 2 is Cauchy's. Pure ε; finite variance for γ > 3.

    Disc: with ζ = z(1 + ω), |ω| ≤ θ, |(1 + ω)^γ − 1| ≤ (1 − θ)^{−γ} − 1 =: e, so ln(1 + ζ^γ) moves by at most
    −ln(1 − xe), x = z^γ/(1 + z^γ); θ makes that 2.

    Theorem: U·V^{−1/(γ−1)} given U^γ + V^{γ/(γ−1)} ≤ 1 has the law of |Z| [Jöhnk 1964: |Z|^γ is a ratio of gammas]
    """

    power: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "power", checks.number("power", self.power, 2.0, 100.0, allowed="a number from 2 to 100")
        )

    def log_density(self, z: Floats) -> Floats:
        constant = math.log(self.power * math.sin(math.pi / self.power) / (2 * math.pi))
        return constant - np.logaddexp(0.0, self.power * np.log(np.maximum(z, 1e-300)))

    def slope(self, z: Floats) -> Floats:
        return self.power / (1 + np.exp(np.minimum(-self.power * np.log(np.maximum(z, 1e-300)), 700.0)))

    def radius(self, z: Floats) -> Floats:
        share = np.maximum(self.slope(z) / self.power, 1e-300) * (1 + 1e-9)
        return -np.expm1(-np.log1p(-math.expm1(-NEAR) / share) / self.power) * z

    @property
    def variance(self) -> float:
        return math.sin(math.pi / self.power) / math.sin(3 * math.pi / self.power) if self.power > 3 else math.inf

    @property
    def steepest(self) -> float:
        return self.power

    @property
    def count(self) -> int:
        return 2

    def accepted(self, uniforms: list[Ball]) -> bool | None:
        g = Fraction(self.power)
        left = (ball(g) * signed(uniforms[0])[1].log()).exp() + (ball(g / (g - 1)) * uniforms[1].log()).exp()
        return True if left <= 1 else False if left > 1 else None

    def value(self, uniforms: list[Ball]) -> Ball:
        sign, size = signed(uniforms[0])
        return sign * size * (-uniforms[1].log() / ball(Fraction(self.power) - 1)).exp()
