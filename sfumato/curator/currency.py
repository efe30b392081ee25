"""What privacy is paid in: μ of Gaussian DP, or pure ε. Each buys its own noise."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.calibrate import calibrate
from sfumato.loss.gaussian import GaussianLoss
from sfumato.loss.leaky import LeakyLoss
from sfumato.loss.signed import PureLoss
from sfumato.mechanisms.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.quantile import ByRank, PureQuantile, Quantile
from sfumato.mechanisms.stability_histogram import StabilityHistogram
from sfumato.mechanisms.threshold_selection import ThresholdSelection

Noise = Gaussian | DiscreteLaplace
LESS = 1 - 1e-14  # rounding never makes noise smaller than the price says


class Currency(ABC):
    """An amount of privacy that can be divided: the parts of a whole cost the whole together."""

    @staticmethod
    @abstractmethod
    def bought(epsilon: float, delta: float, leak: float) -> "Currency":
        """The most that keeps (ε, δ) beside a leak."""

    @staticmethod
    @abstractmethod
    def leak(delta: float) -> float:
        """How much of a question's δ private keys get."""

    @staticmethod
    @abstractmethod
    def shares(importances: Sequence[float]) -> tuple[float, ...]:
        """Shares that sum to 1 and make the sum of the variances Aⱼ·(noise of a share) least."""

    @staticmethod
    @abstractmethod
    def of(loss: PrivacyLoss) -> "Currency | None":
        """The amount that has this loss, if it is one of this currency."""

    @property
    @abstractmethod
    def amount(self) -> float:
        """How much it is."""

    @abstractmethod
    def part(self, share: float) -> "Currency":
        """A share of this."""

    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """What it costs."""

    @abstractmethod
    def noise(self, size: int) -> Noise:
        """For whole numbers that one unit moves by `size`."""

    @abstractmethod
    def deviation(self, size: int) -> float:
        """The standard deviation of that noise, nearly."""

    @abstractmethod
    def choice(self, fraction: Fraction, points: int, values: int) -> ByRank:
        """A value by its rank."""

    @abstractmethod
    def threshold(self, leak: float, groups: int) -> int:
        """The noisy number of people from which on a private key may be shown, if a count costs this much."""


@dataclass(frozen=True)
class Mu(Currency):
    """μ-GDP.

    Theorem: Gaussian losses compose by μ² = Σμᵢ² [Dong, Roth & Su 2022, Cor. 3.3]
    """

    mu: float

    @staticmethod
    def bought(epsilon: float, delta: float, leak: float) -> "Mu":
        return Mu(most_mu(epsilon, delta, leak))

    @staticmethod
    def leak(delta: float) -> float:
        return delta / 2

    @staticmethod
    def shares(importances: Sequence[float]) -> tuple[float, ...]:
        """wⱼ ∝ √Aⱼ: variances are as 1/wⱼ, and Σ Aⱼ/wⱼ ≥ (Σ √Aⱼ)² by Cauchy and Schwarz, with equality there."""
        return divided([math.sqrt(a) for a in importances])

    @staticmethod
    def of(loss: PrivacyLoss) -> "Mu | None":
        return Mu(loss.mu) if isinstance(loss, GaussianLoss) else None

    @property
    def amount(self) -> float:
        return self.mu

    def part(self, share: float) -> "Mu":
        return Mu(self.mu * math.sqrt(share) * LESS)

    def loss(self) -> GaussianLoss:
        return GaussianLoss(self.mu)

    def noise(self, size: int) -> Gaussian:
        return Gaussian(size / self.mu / LESS)

    def deviation(self, size: int) -> float:
        return size / self.mu

    def choice(self, fraction: Fraction, points: int, values: int) -> Quantile:
        return Quantile(self.mu, fraction, points, values)

    def threshold(self, leak: float, groups: int) -> int:
        return ThresholdSelection(self.noise(1).sigma, leak, groups).threshold


@dataclass(frozen=True)
class Pure(Currency):
    """ε-DP.

    Theorem: epsilons add up, for adaptively chosen mechanisms too [Dwork & Roth 2014, Thm 3.16]
    """

    eps: float

    @staticmethod
    def bought(epsilon: float, delta: float, leak: float) -> "Pure":
        return Pure(epsilon)

    @staticmethod
    def leak(delta: float) -> float:
        return delta  # noise needs none of it

    @staticmethod
    def shares(importances: Sequence[float]) -> tuple[float, ...]:
        """wⱼ ∝ Aⱼ^⅓: variances are as 1/wⱼ², and Σ Aⱼ/wⱼ² ≥ (Σ Aⱼ^⅓)³ by Hölder, with equality there."""
        return divided([a ** (1 / 3) for a in importances])

    @staticmethod
    def of(loss: PrivacyLoss) -> "Pure | None":
        return Pure(loss.eps) if isinstance(loss, PureLoss) else None

    @property
    def amount(self) -> float:
        return self.eps

    def part(self, share: float) -> "Pure":
        return Pure(self.eps * share * LESS)

    def loss(self) -> PureLoss:
        return PureLoss(self.eps)

    def noise(self, size: int) -> DiscreteLaplace:
        return DiscreteLaplace.of(self.eps, size)

    def deviation(self, size: int) -> float:
        return math.sqrt(2) * size / self.eps

    def choice(self, fraction: Fraction, points: int, values: int) -> PureQuantile:
        return PureQuantile(self.eps, fraction, points, values)

    def threshold(self, leak: float, groups: int) -> int:
        return StabilityHistogram(self.noise(1).scale, leak, groups).threshold


def divided(weights: Sequence[float]) -> tuple[float, ...]:
    whole = math.fsum(weights)
    return tuple(w / whole for w in weights)


@lru_cache(maxsize=1024)
def most_mu(epsilon: float, delta: float, leak: float) -> float:
    """The largest μ that keeps (ε, δ) beside a leak, through the exact profile."""

    def family(mu: float) -> PrivacyLoss:
        return LeakyLoss(GaussianLoss(mu), leak) if leak else GaussianLoss(mu)

    return calibrate(family, epsilon=epsilon, delta=delta, tolerance=1e-9).lower
