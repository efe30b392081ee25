"""Gaussian terms, continuous and discrete: φ is a bell, or a row of bells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.loss.compose.transforms.base import Discs, Refused, Tilted, Transform
from sfumato.loss.numeric import ULP, Floats


@dataclass(frozen=True)
class GaussianTransform(Transform):
    """All Gaussians as one, since only Σkμ² counts: M(z) = e^{z(z+1)μ²/2}, and φ decays like a Gaussian."""

    square: float  # Σ k μ²

    @classmethod
    def together(cls, parts: Sequence[Transform]) -> Sequence[Transform]:
        return [GaussianTransform(math.fsum(part.square for part in parts if isinstance(part, GaussianTransform)))]

    def times(self, count: int) -> "GaussianTransform":
        return GaussianTransform(count * self.square)

    def log_moments(self, theta: Floats) -> Floats:
        return self.square * theta * (theta + 1) / 2

    def tilt(self, theta: float) -> Tilted:
        return TiltedGaussian(self.square, theta)


class TiltedGaussian(Tilted):
    """φ(ω) = e^{iω·μ²(θ+½)}·e^{−μ²ω²/2}. Relative errors of μ² (a rounded sum) move all by as much."""

    def __init__(self, square: float, theta: float) -> None:
        self.square = square
        self.log_moment = square * theta * (theta + 1) / 2
        self.slip = 8 * ULP * self.log_moment
        self.centre = self.drift = square * (theta + 0.5)

    def discs(self, omega: Floats) -> Discs:
        power = self.square * omega * omega / 2
        size = np.exp(-power)
        return Discs(
            (-power).astype(np.complex128), size * ULP * (8 * power + 16) + 8 * ULP * omega * self.drift * size
        )

    def log_ceiling(self, omega: Floats) -> Floats:
        return -self.square * omega * omega / 2 * (1 - 1e-12)


LEAST_SIGMA = 3.0
OTHERS = 1.5e-19  # what all but the nearest bell weigh


@dataclass(frozen=True)
class DiscreteGaussianTransform(Transform):
    """`count` discrete Gaussians with σ ≥ 3 and sensitivity d > 0.

    M(z) = e^{μ²z(z+1)/2}·S(d(1+z))/S(0), μ = d/σ, S(x) = Σ_{n∈ℤ} e^{−(n−x)²/2σ²}.

    Tilted by θ, the noise is a discrete Gaussian around y = d(1+θ), and L = (2xd − d²)/2σ². By Poisson's formula the
    characteristic function of L is a row of bells, one around each multiple of the period P = 2πσ²/d:

        φ(ω) = e^{iωc}·Σ_m e^{−2πimy}·e^{−μ²(ω − mP)²/2} / Σ_m e^{−2πimy}·e^{−μ²(mP)²/2},   c = μ²(θ + ½).

    Proof. S(x) = σ√2π·Σ_m e^{−2π²σ²m²}·e^{2πimx}, and x = d(1+θ+iω) gives e^{2πimx} = e^{2πimy}·e^{−2πmdω}.
    Now −2π²σ²m² − 2πmdω − μ²ω²/2 = −μ²(ω + mP)²/2, as μP = 2πσ. Rename m → −m. ∎

    For σ ≥ 3 the nearest bell is all: at its distance ω' ≤ P/2 the others are at most 2e^{−(πσ)²/2}·(1 + …) < 1.2e-19
    together, and so is what the denominator differs from 1. |φ| comes back to 1 at every multiple of P: these terms
    have no ceiling below 1, like all that live on a lattice.

    Theorem: Poisson's formula turns the discrete Gaussian into a row of bells [Canonne, Kamath & Steinke 2020, Fact 18]
    """

    sigma: float
    sensitivity: int
    count: float = 1.0

    @classmethod
    def together(cls, parts: Sequence[Transform]) -> Sequence[Transform]:
        return parts

    def times(self, count: int) -> "DiscreteGaussianTransform":
        return DiscreteGaussianTransform(self.sigma, self.sensitivity, self.count * count)

    @property
    def square(self) -> float:
        """Σ k μ²."""
        return self.count * (self.sensitivity / self.sigma) ** 2

    def log_moments(self, theta: Floats) -> Floats:
        return self.square * theta * (theta + 1) / 2

    def tilt(self, theta: float) -> Tilted:
        return TiltedDiscreteGaussian(self, theta)


class TiltedDiscreteGaussian(Tilted):
    """The nearest bell, and the others as a radius."""

    def __init__(self, term: DiscreteGaussianTransform, theta: float) -> None:
        self.term = term
        self.square = term.square
        self.log_moment = self.square * theta * (theta + 1) / 2
        self.slip = 16 * ULP * self.log_moment + 2 * term.count * OTHERS
        self.centre = self.drift = self.square * (theta + 0.5)
        self.period = 2 * math.pi * term.sigma * term.sigma / term.sensitivity

    def discs(self, omega: Floats) -> Discs:
        """φ^k on the first bell; a line that reaches the next one is left to other engines."""
        if float(omega[-1]) > self.period / 2:
            raise Refused("the line reaches the next period of a lattice")
        power = self.square * omega * omega / 2
        size = np.exp(-power)
        radius = size * ULP * (16 * power + 16) + 16 * ULP * omega * self.drift * size
        # |φ̂^k − φ^k| ≤ k·η·(|φ̂| + η)^{k−1}
        one = np.exp(-power / self.term.count) + 4 * OTHERS
        rest = (self.term.count - 1) * np.log(one)
        radius = radius + 4 * self.term.count * OTHERS * np.exp(np.clip(rest, -700.0, 0.0))
        return Discs((-power).astype(np.complex128), radius)

    def log_ceiling(self, omega: Floats) -> Floats:
        """Nothing: |φ| recurs."""
        return 0 * omega
