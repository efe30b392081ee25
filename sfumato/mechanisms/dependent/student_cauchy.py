"""Student and Cauchy noise: polynomial tails, hence pure ε at a data-dependent scale.

Student noise has closed forms for its pure ε, its hockey-stick divergences and its draws. Cauchy noise was the first
noise known to work with smooth sensitivity.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato import checks
from sfumato.loss.numeric import Floats
from sfumato.mechanisms.dependent.noise_family import NEAR, Noise
from sfumato.noise.balls import Ball, ball
from sfumato.noise.lazy import split_sign


@dataclass(frozen=True)
class StudentNoise(Noise):
    """p(z) ∝ (1 + z²/d)^{−(d+1)/2}. Pure ε for every scale and shift; finite variance for d > 2.

    Disc: ln(d + ζ²) = ln(ζ − i√d) + ln(ζ + i√d), and ζ = z + ω changes each term by at most −ln(1 − |ω|/√(d + z²)).

    Theorem: √(d(U^{−2/d} − 1))·cos 2πV has this law [Bailey 1994, Thm 1]
    """

    degrees: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "degrees", checks.number("degrees", self.degrees, 1.0, 1000.0, allowed="a number from 1 to 1000")
        )

    def log_density(self, z: Floats) -> Floats:
        d = self.degrees
        constant = math.lgamma((d + 1) / 2) - math.lgamma(d / 2) - math.log(d * math.pi) / 2
        return constant - (d + 1) / 2 * np.log1p(z * (z / d))

    def slope(self, z: Floats) -> Floats:
        return (self.degrees + 1) / (1 + self.degrees / np.maximum(z * z, 1e-300))

    def radius(self, z: Floats) -> Floats:
        return -math.expm1(-NEAR / (self.degrees + 1)) * np.hypot(z, math.sqrt(self.degrees))

    @property
    def variance(self) -> float:
        return self.degrees / (self.degrees - 2) if self.degrees > 2 else math.inf

    @property
    def steepest(self) -> float:
        return self.degrees + 1

    @property
    def count(self) -> int:
        return 2

    def value(self, uniforms: list[Ball]) -> Ball:
        d = Fraction(self.degrees)
        return (ball(d) * (ball(-2 / d) * uniforms[0].log()).expm1()).sqrt() * (2 * uniforms[1]).cos_pi()


def largest_losses(degrees: float, dilation: float, shift: float) -> tuple[float, float]:
    """Pure ε of (Z, e^l·Z + u) and of the reversed pair.

    p/q is a power of (d + (z−u)²e^{−2l})/(d + z²), whose extremes are the eigenvalues of one quadratic form against the
    other: λ± = (T ± √(T² − 4e^{−2l}))/2, T = 1 + e^{−2l}(1 + u²/d). So ε = l + (d+1)/2·ln λ₊; the reversed pair has
    (d−1)l more.

    Theorem: the ratio of two Student densities ranges between two eigenvalues [docs/theorems/dilation.md, Lemma 2]

    >>> tuple(round(eps, 9) for eps in largest_losses(3, 0.1, 0.3))
    (0.284910345, 0.484910345)
    """
    shrink = math.exp(-2 * dilation)
    more = shrink * shift * shift / degrees
    # T − 2e^{−l} = (1 − e^{−l})² + more, T + 2e^{−l} = (1 + e^{−l})² + more: no cancellation
    root = math.sqrt((math.expm1(-dilation) ** 2 + more) * ((1 + math.exp(-dilation)) ** 2 + more))
    log_largest = math.log1p((math.expm1(-2 * dilation) + more + root) / 2)
    ahead = dilation + (degrees + 1) / 2 * log_largest
    return ahead, ahead + (degrees - 1) * dilation


@dataclass(frozen=True)
class CauchyNoise(Noise):
    """p(z) ∝ 1/(1 + |z|^γ), γ ≥ 2; γ = 2 is Cauchy's. Pure ε; finite variance for γ > 3.

    Disc: with ζ = z(1 + ω), |ω| ≤ θ, |(1 + ω)^γ − 1| ≤ (1 − θ)^{−γ} − 1 =: e, so ln(1 + ζ^γ) moves by at most
    −ln(1 − xe), x = z^γ/(1 + z^γ); θ is chosen so that this is 2.

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

    def accepts(self, uniforms: list[Ball]) -> bool | None:
        g = Fraction(self.power)
        left = (ball(g) * split_sign(uniforms[0])[1].log()).exp() + (ball(g / (g - 1)) * uniforms[1].log()).exp()
        return True if left <= 1 else False if left > 1 else None

    def value(self, uniforms: list[Ball]) -> Ball:
        sign, size = split_sign(uniforms[0])
        return sign * size * (-uniforms[1].log() / ball(Fraction(self.power) - 1)).exp()
