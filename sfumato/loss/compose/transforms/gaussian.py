"""Gaussian terms: M(z) = e^{z(z+1)μ²/2}, and φ decays like a Gaussian."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.loss.compose.transforms.base import Discs, Tilted, Transform
from sfumato.loss.numeric import ULP, Floats


@dataclass(frozen=True)
class GaussianTransform(Transform):
    """All Gaussians as one: only Σkμ² counts."""

    square: float  # Σ k μ²

    @classmethod
    def together(cls, parts: Sequence[Transform]) -> Sequence[Transform]:
        return [GaussianTransform(math.fsum(part.square for part in parts if isinstance(part, GaussianTransform)))]

    def times(self, count: int) -> "GaussianTransform":
        return GaussianTransform(count * self.square)

    def log_moments(self, theta: Floats) -> Floats:
        return self.square * theta * (theta + 1) / 2

    def tilted(self, theta: float) -> Tilted:
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
