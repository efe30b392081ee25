"""The price of a question, and the noise that it buys: μ of Gaussian DP, or pure ε."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.bounded_range import range_of
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.loss.views.calibrate import calibrate
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.joint_laplace import JointLaplace, OneOf
from sfumato.mechanisms.choice.exponential import Exponential
from sfumato.mechanisms.choice.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.choice.quantile import POINT, ByRank, PureQuantile, Quantile
from sfumato.mechanisms.dependent.additive_noise import Everywhere
from sfumato.mechanisms.dependent.mechanism_choice import at, on_ledger
from sfumato.mechanisms.dependent.noisy_bound import NoisyBound
from sfumato.mechanisms.dependent.smooth import Smooth
from sfumato.mechanisms.dependent.stable import GaussianStableValue, StableValue
from sfumato.mechanisms.dependent.statistic import Statistic

IndependentNoise = Gaussian | DiscreteLaplace
Noise = IndependentNoise | OneOf
ENOUGH = 3.0  # of μ or ε: noise whose scale depends on data gets no smaller for more
SLOPE = 1.59576  # below 4/√(2π): a bounded range r costs at most r/SLOPE
LESS = 1 - 1e-14  # rounding never makes noise smaller than the price says


class Price(ABC):
    """An amount of privacy that can be divided: the parts of a whole cost the whole together."""

    @staticmethod
    @abstractmethod
    def for_epsilon(epsilon: float, delta: float, leak: float) -> "Price":
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
    def of(loss: PrivacyLoss) -> "Price | None":
        """The amount that has this loss, if it is one of this currency."""

    @property
    @abstractmethod
    def amount(self) -> float:
        """The amount as a number: μ or ε."""

    @abstractmethod
    def with_amount(self, amount: float) -> "Price":
        """This amount of the same currency."""

    @abstractmethod
    def part(self, share: float) -> "Price":
        """The price of a part that has this share."""

    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """The privacy loss of this price."""

    @abstractmethod
    def noise(self, size: int) -> IndependentNoise:
        """The noise for integers that one unit changes by at most `size`."""

    @abstractmethod
    def deviation(self, size: int) -> float:
        """The standard deviation of that noise, nearly."""

    squares: ClassVar[bool]  # does one unit cost by the L2 norm of what it moves? Else by the L1 norm

    @abstractmethod
    def scaled_noise(self, size: int, length: float) -> IndependentNoise:
        """The noise for integers where the change by one unit, divided by their sizes, has at most this norm."""

    @abstractmethod
    def quantile_mechanism(self, fraction: Fraction, points: int, values: int) -> ByRank:
        """The mechanism for a value by its rank."""

    @abstractmethod
    def weighted_quantile_mechanism(self, fraction: Fraction, points: int, values: int, by_group: bool) -> ByRank:
        """A value by its rank in every group at once, where what a unit adds to the ranks of all groups has a norm of
        at most `values`."""

    @abstractmethod
    def noises(self, joint: NoiseBasis, shares: Sequence[float]) -> tuple[Noise | None, ...]:
        """The noise of each part of a plan in one group, by its share; None for a part that no unit can change."""

    @abstractmethod
    def selection_mechanism(self, rows: int) -> Exponential | PermuteAndFlip:
        """The mechanism that chooses a value by its count, where one unit adds at most `rows` to each count."""

    @abstractmethod
    def weighted_selection_mechanism(self, values: int, by_group: bool) -> Exponential | PermuteAndFlip:
        """The mechanism for every group at once, where the contributions of a unit to the counts of all groups have a
        norm of at most `values`."""

    @abstractmethod
    def stable_value_mechanism(self, slack: float) -> StableValue | GaussianStableValue:
        """The mechanism for a value that few people cannot change."""

    @abstractmethod
    def data_dependent_mechanism(
        self, statistic: Statistic[Any], slack: float, step: Fraction
    ) -> Smooth | Everywhere | NoisyBound:
        """The mechanism for a statistic with data-dependent noise; answers are multiples of `step`."""


@dataclass(frozen=True)
class Mu(Price):
    """μ-GDP.

    Theorem: Gaussian losses compose by μ² = Σμᵢ² [Dong, Roth & Su 2022, Cor. 3.3]
    """

    mu: float

    @staticmethod
    def for_epsilon(epsilon: float, delta: float, leak: float) -> "Mu":
        return Mu(most_mu(epsilon, delta, leak))

    @staticmethod
    def leak(delta: float) -> float:
        return delta / 2

    @staticmethod
    def shares(importances: Sequence[float]) -> tuple[float, ...]:
        """wⱼ ∝ √Aⱼ: variances are as 1/wⱼ, and Σ Aⱼ/wⱼ ≥ (Σ √Aⱼ)² by Cauchy and Schwarz, with equality there."""
        return normalize([math.sqrt(a) for a in importances])

    @staticmethod
    def of(loss: PrivacyLoss) -> "Mu | None":
        return Mu(loss.mu) if isinstance(loss, GaussianLoss) else None

    @property
    def amount(self) -> float:
        return self.mu

    def with_amount(self, amount: float) -> "Mu":
        return Mu(amount)

    def part(self, share: float) -> "Mu":
        return Mu(self.mu * math.sqrt(share) * LESS)

    def loss(self) -> GaussianLoss:
        return GaussianLoss(self.mu)

    def noise(self, size: int) -> Gaussian:
        return Gaussian(size / self.mu / LESS)

    def deviation(self, size: int) -> float:
        return size / self.mu

    squares = True

    def scaled_noise(self, size: int, length: float) -> Gaussian:
        return Gaussian(size * length / self.mu / LESS)

    def quantile_mechanism(self, fraction: Fraction, points: int, values: int) -> Quantile:
        return Quantile(self.mu, fraction, points, values)

    def weighted_quantile_mechanism(self, fraction: Fraction, points: int, values: int, by_group: bool) -> Quantile:
        """In one group a range r costs μ(r), in many groups r ≤ SLOPE·μ(r) is what adds up: `values` makes up for it.

        Theorem: a range r costs at most r/SLOPE, SLOPE = 4/√(2π), so ranges rₖ that are in proportion to what a unit
            adds to group k cost √Σμ(rₖ)² ≤ ‖r‖₂/SLOPE together [docs/theorems/contributions.md, Theorem 7]
        """
        found = Quantile(self.mu, fraction, points, values)
        if not by_group:
            return found
        linear = SLOPE * math.sqrt(POINT) * self.mu
        return Quantile(self.mu, fraction, points, math.ceil(values * max(1.0, found.range / linear) * (1 + 1e-12)))

    def noises(self, joint: NoiseBasis, shares: Sequence[float]) -> tuple[Noise | None, ...]:
        """Independent noise on each part: for Gaussian noise nothing is gained by joint noise."""
        sizes = (part.size for part in joint.parts)
        return tuple(self.part(w).noise(s) if w else None for w, s in zip(shares, sizes, strict=True))

    def selection_mechanism(self, rows: int) -> Exponential:
        return Exponential.monotone(range_of(self.mu * LESS), rows)

    def weighted_selection_mechanism(self, values: int, by_group: bool) -> Exponential:
        """As for quantiles, `values` makes up for a range that is too wide in many groups."""
        widest = range_of(self.mu * LESS)
        wider = max(1.0, widest / (SLOPE * LESS * self.mu)) if by_group else 1.0
        return Exponential.monotone(widest, math.ceil(values * wider * (1 + 1e-12)))

    def stable_value_mechanism(self, slack: float) -> GaussianStableValue:
        return GaussianStableValue(self.noise(1).sigma, slack)

    def data_dependent_mechanism(
        self, statistic: Statistic[Any], slack: float, step: Fraction
    ) -> Smooth | Everywhere | NoisyBound:
        return supported_mechanism(on_ledger(statistic, min(self.mu, ENOUGH), slack, step=step).mechanism)


@dataclass(frozen=True)
class Pure(Price):
    """ε-DP.

    Theorem: epsilons add up, for adaptively chosen mechanisms too [Dwork & Roth 2014, Thm 3.16]
    """

    eps: float

    @staticmethod
    def for_epsilon(epsilon: float, delta: float, leak: float) -> "Pure":
        return Pure(epsilon)

    @staticmethod
    def leak(delta: float) -> float:
        return delta * LESS  # noise itself needs no δ

    @staticmethod
    def shares(importances: Sequence[float]) -> tuple[float, ...]:
        """wⱼ ∝ Aⱼ^⅓: variances are as 1/wⱼ², and Σ Aⱼ/wⱼ² ≥ (Σ Aⱼ^⅓)³ by Hölder, with equality there."""
        return normalize([a ** (1 / 3) for a in importances])

    @staticmethod
    def of(loss: PrivacyLoss) -> "Pure | None":
        return Pure(loss.eps) if isinstance(loss, PureLoss) else None

    @property
    def amount(self) -> float:
        return self.eps

    def with_amount(self, amount: float) -> "Pure":
        return Pure(amount)

    def part(self, share: float) -> "Pure":
        return Pure(self.eps * share * LESS)

    def loss(self) -> PureLoss:
        return PureLoss(self.eps)

    def noise(self, size: int) -> DiscreteLaplace:
        return DiscreteLaplace.of(self.eps, size)

    def deviation(self, size: int) -> float:
        return math.sqrt(2) * size / self.eps

    squares = False

    def scaled_noise(self, size: int, length: float) -> DiscreteLaplace:
        return DiscreteLaplace(size * length / self.eps / LESS)

    def quantile_mechanism(self, fraction: Fraction, points: int, values: int) -> PureQuantile:
        return PureQuantile(self.eps, fraction, points, values)

    def weighted_quantile_mechanism(self, fraction: Fraction, points: int, values: int, by_group: bool) -> PureQuantile:
        """Ranges add up over groups, in proportion to what a unit adds to each."""
        return PureQuantile(self.eps, fraction, points, values)

    def noises(self, joint: NoiseBasis, shares: Sequence[float]) -> tuple[Noise | None, ...]:
        """Of several parts all at once, for the whole of their shares: less than if ε were divided among them.

        Noise on one of d parts then grows as (d + 1)/2, not as d; the parts that others are seen from have even less.
        """
        moved = [j for j, w in enumerate(shares) if w]
        price, found = self.part(math.fsum(shares)), dict[int, Noise]()
        if len(moved) == 1:
            found = {j: price.noise(joint.parts[j].size) for j in moved}
        elif moved:
            sizes, favours = tuple(joint.parts[j].size for j in moved), tuple(joint.favours[j] for j in moved)
            found = dict(zip(moved, JointLaplace(price.eps, sizes, favours).each, strict=True))
        return tuple(found.get(j) for j in range(len(shares)))

    def selection_mechanism(self, rows: int) -> PermuteAndFlip:
        return PermuteAndFlip.monotone(self.eps, rows)

    def weighted_selection_mechanism(self, values: int, by_group: bool) -> PermuteAndFlip:
        """A choice at this rate costs a unit in proportion to what it adds to the counts of a group, which adds up."""
        return PermuteAndFlip.monotone(self.eps, values)

    def stable_value_mechanism(self, slack: float) -> StableValue:
        return StableValue(self.eps, slack)

    def data_dependent_mechanism(
        self, statistic: Statistic[Any], slack: float, step: Fraction
    ) -> Smooth | Everywhere | NoisyBound:
        return supported_mechanism(at(statistic, min(self.eps, ENOUGH), slack, step=step).mechanism)


def supported_mechanism(mechanism: object) -> Smooth | Everywhere | NoisyBound:
    assert isinstance(mechanism, Smooth | Everywhere | NoisyBound)
    return mechanism


def normalize(weights: Sequence[float]) -> tuple[float, ...]:
    whole = math.fsum(weights)
    return tuple(w / whole for w in weights)


@lru_cache(maxsize=1024)
def most_mu(epsilon: float, delta: float, leak: float) -> float:
    """The largest μ that keeps (ε, δ) beside a leak, through the exact profile."""

    def family(mu: float) -> PrivacyLoss:
        return LeakyLoss(GaussianLoss(mu), leak) if leak else GaussianLoss(mu)

    return calibrate(family, epsilon=epsilon, delta=delta, tolerance=1e-9).lower
