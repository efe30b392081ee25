"""Laplace and Gaussian noise at a data-dependent scale: their light tails make a change of scale visible, so δ > 0."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.loss.numeric import Floats
from sfumato.mechanisms.dependent.noise_family import NEAR, Noise
from sfumato.noise.balls import Ball
from sfumato.noise.lazy import normal, split_sign


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """p(z) = ½e^{−z}. Disc: ln p is linear.

    Theorem: Laplace noise for smooth sensitivity needs δ > 0 [Nissim, Raskhodnikova & Smith 2007, Lemma 2.9]
    """

    def log_density(self, z: Floats) -> Floats:
        return -z - math.log(2)

    def slope(self, z: Floats) -> Floats:
        return z

    def radius(self, z: Floats) -> Floats:
        return np.full_like(z, NEAR)

    @property
    def variance(self) -> float:
        return 2.0

    @property
    def straight(self) -> bool:
        return True

    def far_score(self, z: float) -> float:
        return 1.0

    @property
    def count(self) -> int:
        return 1

    def value(self, uniforms: list[Ball]) -> Ball:
        sign, size = split_sign(uniforms[0])
        return sign * -size.log()


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """p(z) = φ(z). Disc: |ζ² − z²|/2 ≤ zR + R²/2 = 2.

    Theorem: Gaussian noise for smooth sensitivity needs δ > 0 [Nissim, Raskhodnikova & Smith 2007, Lemma 2.10]
    """

    def log_density(self, z: Floats) -> Floats:
        return -z * z / 2 - math.log(2 * math.pi) / 2

    def slope(self, z: Floats) -> Floats:
        return z * z

    def radius(self, z: Floats) -> Floats:
        return 2 * NEAR / (z + np.sqrt(z * z + 2 * NEAR))

    @property
    def variance(self) -> float:
        return 1.0

    @property
    def count(self) -> int:
        return 2

    def value(self, uniforms: list[Ball]) -> Ball:
        return normal(*uniforms)
