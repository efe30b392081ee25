"""The Gaussian loss, the law every composition tends to."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.loss.base import TOLERANCE, Symmetric
from sfumato.loss.bound import Bound, widen
from sfumato.loss.compose.transforms.gaussian import GaussianTransform
from sfumato.loss.numeric import TINY, ULP, Enclosure, Floats, enclose, erfcx, ndtr
from sfumato.rounding import product_up

ROOT_HALF = math.sqrt(0.5)


def gaussian_profile(mu: float | Floats, eps: Floats) -> Enclosure:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), with relative accuracy in the right tail.

    With x = ε/μ both terms are ½e^{−(x−μ/2)²/2}·erfcx((x ± μ/2)/√2), so for x ≥ μ/2 the exponential factors out and
    only the two erfcx cancel. x and μ are known to e = 4u(x + μ), which also covers a μ that is off by 4 units in the
    last place (a rounded √Σμᵢ²). Since ∂δ/∂x = −μ·e^ε Φ(−b) and ∂δ/∂μ = φ(a) at fixed ε, and neither grows by more
    than e^{(|a|+1)e} within e, the slip is bounded to first order; where e itself is not small, δ lies between
    Φ(−a − e) − 1/b and Φ(−a + e).
    """
    some = np.maximum(mu, 1e-140)
    x = np.minimum(eps, 1e150 * some) / some  # beyond, δ is 0 anyway and squares would overflow
    a, b = x - mu / 2, x + mu / 2
    scale = 0.5 * np.exp(-a * a / 2)
    far = scale * erfcx(b * ROOT_HALF)
    near = np.where(a >= 0, scale * erfcx(np.maximum(a, 0.0) * ROOT_HALF), ndtr(-a))
    value = np.maximum(near - far, 0.0)
    e = 4 * ULP * (x + mu)
    swell = (np.abs(a) + 1) * e
    slip = (mu * far * e + 4 * ULP * mu * scale) * np.exp(np.minimum(swell, 1.0))
    power = ULP * a * a * np.where(a >= 0, value, far)  # of the exponent −a²/2
    # TINY: a value that underflows is not zero
    found = enclose(value, ULP * 16 * (near + far) + slip + power + TINY)
    blurred = swell > 0.5
    if not np.any(blurred):
        return found
    low = np.maximum(ndtr(-a - e) * (1 - 16 * ULP) - 1 / b, 0.0)
    high = np.minimum(ndtr(e - a) * (1 + 16 * ULP) + TINY, 1.0)
    return Enclosure(np.where(blurred, low, found.lower), np.where(blurred, high, found.upper))


@dataclass(frozen=True)
class GaussianLoss(Symmetric):
    """L ~ N(μ²/2, μ²) under P, with μ = sensitivity / σ.

    P = N(μ, 1), Q = N(0, 1);  δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ);  D_a = aμ²/2;  trade-off Φ(Φ⁻¹(1−x) − μ).

    Theorem: exact profile of the Gaussian mechanism [Balle & Wang 2018, Thm 8]
    Theorem: Gaussian losses compose by μ² = Σμᵢ² and k people cost kμ [Dong, Roth & Su 2022, Cor. 3.3 and Thm 2.14]
    """

    mu: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mu", checks.non_negative("mu", self.mu))

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return Enclosure(0 * eps, 0 * eps) if self.mu == 0 else gaussian_profile(self.mu, eps)

    def supremum(self) -> tuple[float, float]:
        top = math.inf if self.mu > 0 else 0.0
        return top, top

    def leak(self) -> tuple[float, float]:
        return 0.0, 0.0

    def log_moment(self, s: float) -> Bound:
        value = s * (s + 1) * self.mu * self.mu / 2
        return widen(value, abs(value) * 4 * ULP, "closed form")

    def transform(self) -> GaussianTransform:
        return GaussianTransform(self.mu * self.mu)

    def mean(self) -> Bound:
        return widen(self.mu * self.mu / 2, 2 * ULP * self.mu * self.mu, "closed form")

    def rho_ceiling(self) -> float:
        return self.mu * self.mu / 2 * (1 + 4 * ULP)

    def group(self, size: int) -> "GaussianLoss":
        return GaussianLoss(product_up(checks.whole("size", size, 0), self.mu), relation=self.relation)
