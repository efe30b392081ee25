"""Clipping: the weight of each example in the sum, such that no example's gradient is longer than the clip norm.

Theorem: Σ_i w_i ∇_i with ‖w_i ∇_i‖ ≤ C moves by at most C if one example is added or removed [docs/theorems/sgd.md,
    Theorem 1]
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from sfumato import checks
from sfumato.rounding import sqrt_up

SHY = 1 - 2.0**-48  # pays for the roundings of these few doubles


def limit(squared: Tensor, norm: float) -> Tensor:
    """min(1, norm/‖∇‖) in float64, rounded down; 0 where a norm is not finite."""
    found = (norm * SHY / squared.sqrt()).clamp(max=1.0)
    return torch.where(torch.isfinite(squared), found, 0.0)


class Clipping(ABC):
    """How long the gradient of one example may be, and how longer ones are shortened."""

    @property
    @abstractmethod
    def norm(self) -> float:
        """The most that one example adds to the sum, over all parameters."""

    @abstractmethod
    def weights(self, squared: Sequence[Tensor]) -> list[Tensor]:
        """For each parameter the weights of all examples, given the squared norms of their gradients."""


@dataclass(frozen=True)
class Flat(Clipping):
    """min(1, C/‖∇_i‖), the norm over all parameters.

    Theorem: clipping each gradient to a norm [Abadi et al. 2016, Algorithm 1]
    """

    clip: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", checks.positive("clip", self.clip))

    @property
    def norm(self) -> float:
        return self.clip

    def weights(self, squared: Sequence[Tensor]) -> list[Tensor]:
        return [limit(total(squared), self.clip)] * len(squared)


@dataclass(frozen=True)
class Automatic(Clipping):
    """C/(‖∇_i‖ + γ): every gradient gets nearly the same length, so that C and the learning rate are one parameter.

    Theorem: automatic clipping [Bu, Wang, Zha & Karypis 2023, AUTO-S]
    """

    clip: float = 1.0
    stability: float = 0.01

    def __post_init__(self) -> None:
        for name in ("clip", "stability"):
            object.__setattr__(self, name, checks.positive(name, getattr(self, name)))

    @property
    def norm(self) -> float:
        return self.clip

    def weights(self, squared: Sequence[Tensor]) -> list[Tensor]:
        whole = total(squared)
        found = self.clip * SHY / (whole.sqrt() + self.stability)
        return [torch.where(torch.isfinite(whole), found, 0.0)] * len(squared)


@dataclass(frozen=True)
class PerLayer(Clipping):
    """Each parameter of k is clipped by itself, to C/√k: the sum still moves by at most C.

    Theorem: clipping each layer by itself [McMahan, Ramage, Talwar & Zhang 2018]
    """

    clip: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", checks.positive("clip", self.clip))

    @property
    def norm(self) -> float:
        return self.clip

    def weights(self, squared: Sequence[Tensor]) -> list[Tensor]:
        each = self.clip / sqrt_up(len(squared))
        finite = torch.isfinite(total(squared))
        return [torch.where(finite, limit(part, each), 0.0) for part in squared]


@dataclass(frozen=True)
class Adaptive(Clipping):
    """Flat clipping whose norm follows a quantile of the gradients' norms, learned with noise of its own.

    After each step the share of examples that are not clipped, with Gaussian noise of `count_noise` examples, moves the
    norm: C ← C·exp(−rate·(share − quantile)). The share is released together with the sum: one Gaussian mechanism with
    μ² = (1/σ)² + (½/count_noise)², as each example adds ±½ to a count that is centred.

    Theorem: a clip norm that follows a private quantile [Andrew, Thakkar, McMahan & Ramaswamy 2021, Thm 1]
    """

    start: float
    quantile: float = 0.5
    rate: float = 0.2
    count_noise: float = 10.0

    def __post_init__(self) -> None:
        for name in ("start", "rate", "count_noise"):
            object.__setattr__(self, name, checks.positive(name, getattr(self, name)))
        object.__setattr__(self, "quantile", checks.probability("quantile", self.quantile))

    @property
    def norm(self) -> float:
        return self.start

    def weights(self, squared: Sequence[Tensor]) -> list[Tensor]:
        return Flat(self.start).weights(squared)

    @property
    def aside(self) -> Fraction:
        """μ² of the count in one step, for one example that comes or goes."""
        return (Fraction(1, 2) / Fraction(self.count_noise)) ** 2

    def next(self, share: float) -> "Adaptive":
        """The clipping of the next step, given the noisy share of examples below the norm."""
        moved = self.start * math.exp(-self.rate * (min(1.0, max(0.0, share)) - self.quantile))
        return Adaptive(min(1e6, max(1e-6, moved)), self.quantile, self.rate, self.count_noise)


def total(squared: Sequence[Tensor]) -> Tensor:
    """The sum over parameters, never below the truth."""
    return torch.stack(list(squared)).sum(0) * (1 + 4 * len(squared) * 2.0**-52)


def clipping_of(clip: Clipping | float) -> Clipping:
    """A number means flat clipping."""
    return clip if isinstance(clip, Clipping) else Flat(clip)
