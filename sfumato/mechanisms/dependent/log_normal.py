"""Laplace log-normal, uniform log-normal and arsinh-normal noise: log-normal tails, zCDP at a data-dependent scale."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import special

from sfumato import checks
from sfumato.loss.numeric import Floats, floats, log_ndtr
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.noise.balls import Ball, ball
from sfumato.noise.lazy import normal, split_sign

SIGMA = "a number from 0.05 to 5"


@dataclass(frozen=True)
class LaplaceLogNormalNoise(Noise):
    """Z = X·e^{σY}, X Laplace, Y normal: p(z) = ½E[λe^{−λz}] with λ = e^{−σY}.

    The expectation is a trapezoid sum in y. On the strip |Im y| ≤ c = π/3σ the factor exp(−λz) has modulus
    ≤ exp(−λz/2), so the relative error of the sum is at most 2e^{c²/2}·p(z/2)/p(z)/(e^{2πc/h} − 1); the step h makes
    that < 1e-15 as long as slope ≤ 120. The log of the integrand has second derivative ≤ −1, so all mass further than
    10 from its peak is below 1e-21.
    Disc: |p(ζ)/p(z) − 1| ≤ Rc·e^{Rc}, where c = slope/z at z − R bounds −p′/p, which decreases; Rc ≤ ½ and R ≤ z/2.

    Theorem: Laplace log-normal noise for smooth sensitivity [Bun & Steinke 2019, Prop. 3]
    """

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.number("sigma", self.sigma, 0.05, 5.0, allowed=SIGMA))

    def terms(self, z: Floats) -> tuple[Floats, Floats]:
        """Logarithms of the terms of the sum for p (factors h and ½ included) and of λ: one row for each z."""
        sigma, strip = self.sigma, math.pi / (3 * self.sigma)
        step = 2 * math.pi * strip / (120 + strip * strip / 2)
        log_z = np.log(np.maximum(z, 1e-300))
        # the peak solves y + σ = σe^{ln z − σy}; an approximation is enough
        peak = floats(special.wrightomega(log_z + 2 * math.log(sigma) + sigma * sigma)) / sigma - sigma
        y = (np.round(peak / step)[:, None] + np.arange(-math.ceil(10 / step), math.ceil(10 / step) + 1)) * step
        rate = np.exp(np.minimum(log_z[:, None] - sigma * y, 700.0))
        return -y * y / 2 - sigma * y - rate + math.log(step / math.sqrt(8 * math.pi)), -sigma * y

    def log_density(self, z: Floats) -> Floats:
        flat = z.ravel()
        return np.concatenate(
            [total(self.terms(part)[0]) for part in np.array_split(flat, 1 + flat.size // 4096)]
        ).reshape(z.shape)

    def slope(self, z: Floats) -> Floats:
        """z·E[λ] under the weights λe^{−λz}."""
        logs, rates = self.terms(z)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return floats((weights * np.exp(rates)).sum(axis=1) / weights.sum(axis=1) * z)

    def radius(self, z: Floats) -> Floats:
        inner = np.maximum(z / 2, 1e-200)
        return np.minimum(z / 2, 0.499 * inner / self.slope(inner))

    def rough_slope(self, z: Floats) -> Floats:
        """−p′/p decreases from e^{3σ²/2} at 0."""
        return z * math.exp(1.5 * self.sigma**2)

    @property
    def grain(self) -> float:
        return 8.0

    @property
    def variance(self) -> float:
        return 2 * math.exp(2 * self.sigma**2)

    def growth(self, z: float) -> tuple[float, float]:
        """Integration by parts gives slope = E[λz] = 1 + (ln z − E ln λz)/σ², and E ln λz increases with z."""
        return float(self.slope(floats([z]))[0]) - math.log(z) / self.sigma**2, 1 / self.sigma**2

    def log_power(self, k: float) -> float:
        return math.lgamma(k + 1) + (k * self.sigma) ** 2 / 2

    def power_limit(self, k: float) -> float:
        """ln Γ(k + 1) ≤ k·ln k for k ≥ 1, and ln k/k decreases from k = e on."""
        most = max(k, math.e)
        return self.sigma**2 / 2 + math.log(most) / most if k >= 1 else math.inf

    @property
    def count(self) -> int:
        return 3

    def value(self, uniforms: list[Ball]) -> Ball:
        sign, size = split_sign(uniforms[0])
        return sign * -size.log() * (ball(Fraction(self.sigma)) * normal(*uniforms[1:])).exp()


def total(logs: Floats) -> Floats:
    """ln Σ e^x of each row."""
    top = logs.max(axis=1)
    return floats(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))


@dataclass(frozen=True)
class UniformLogNormalNoise(Noise):
    """Z = U·e^{σY}, U uniform on [−1, 1], Y normal: p(z) = ½e^{σ²/2}Φ(−σ − ln z/σ).

    Disc: with v = −σ − ln z/σ and ζ = z(1 + ω), v moves by w, |w| ≤ −ln(1 − |ω|)/σ. φ/Φ ≤ |v| + 1 (Birnbaum 1942), so
    |Φ(v + w)/Φ(v) − 1| ≤ |w|(|v| + 1)e^{|v||w| + |w|²/2}, below 0.8 for |w| = 0.45/(|v| + 1); for v > 0 it is also at
    most 2|w|φ(v)e^{v|w| + |w|²/2}, below 0.2 for |w| = v/4. So ln p moves by at most 1.7.

    Theorem: uniform log-normal noise for smooth sensitivity [Bun & Steinke 2019, Sec. 3.2]
    """

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.number("sigma", self.sigma, 0.05, 5.0, allowed=SIGMA))

    def place(self, z: Floats) -> Floats:
        """−σ − ln z/σ."""
        return -self.sigma - np.log(np.maximum(z, 1e-300)) / self.sigma

    def log_density(self, z: Floats) -> Floats:
        return self.sigma**2 / 2 - math.log(2) + log_ndtr(self.place(z))

    def slope(self, z: Floats) -> Floats:
        v = self.place(z)
        return np.exp(-v * v / 2 - math.log(2 * math.pi) / 2 - log_ndtr(v)) / self.sigma

    def radius(self, z: Floats) -> Floats:
        v = self.place(z)
        return -np.expm1(-self.sigma * np.maximum(0.45 / (np.abs(v) + 1), v / 4)) * z

    @property
    def variance(self) -> float:
        return math.exp(2 * self.sigma**2) / 3

    def growth(self, z: float) -> tuple[float, float]:
        """φ/Φ + v increases with v (Sampford 1953), so slope − ln z/σ² decreases."""
        return float(self.slope(floats([z]))[0]) - math.log(z) / self.sigma**2, 1 / self.sigma**2

    def log_power(self, k: float) -> float:
        return (k * self.sigma) ** 2 / 2 - math.log(k + 1)

    def power_limit(self, k: float) -> float:
        return self.sigma**2 / 2

    @property
    def count(self) -> int:
        return 3

    def value(self, uniforms: list[Ball]) -> Ball:
        return (2 * uniforms[0] - 1) * (ball(Fraction(self.sigma)) * normal(*uniforms[1:])).exp()


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
        """slope ≤ arsinh(σz)/σ² + 1, and arsinh(σz) − ln z decreases."""
        return 1 + (math.asinh(self.sigma * z) - math.log(z)) / self.sigma**2, 1 / self.sigma**2

    def log_power(self, k: float) -> float:
        """|sinh σN| ≤ e^{σ|N|}/2."""
        return math.log(2) + (k * self.sigma) ** 2 / 2 - k * math.log(2 * self.sigma)

    def power_limit(self, k: float) -> float:
        """log_power(x)/x² is a convex parabola in 1/x, so its maximum is at one of the two ends."""
        return max(self.log_power(k) / k**2, self.sigma**2 / 2)

    @property
    def count(self) -> int:
        return 2

    def value(self, uniforms: list[Ball]) -> Ball:
        sigma = ball(Fraction(self.sigma))
        return (sigma * normal(*uniforms)).sinh() / sigma
