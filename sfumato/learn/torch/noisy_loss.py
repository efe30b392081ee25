"""The training loss, for a price: a noisy mean beside each step's gradient."""

from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from sfumato import checks
from sfumato.learn.torch.noise import sampler_of
from sfumato.noise.entropy import Source

BITS = 20  # of the lattice: a loss is a multiple of 2^-20 of the range


@dataclass(frozen=True)
class NoisyLoss:
    """Shows the mean training loss of each step, clamped to [0, high], with Gaussian noise of `noise` examples.

    Each example adds its loss less high/2, a whole number of units of high/2^20, so it moves the sum by at most half
    the range; the sum is released together with the gradient: μ² = (1/σ)² + (½/noise)². A loss that is no number counts
    as `high`. With 10 examples of noise and σ = 1, the gradient needs 0.13 % more noise for the same price.

    Theorem: Gaussian mechanisms that are released together have the sum of their μ² [Dong, Roth & Su 2022, Cor. 3.3]
    """

    high: float
    noise: float = 10.0

    def __post_init__(self) -> None:
        for name in ("high", "noise"):
            object.__setattr__(self, name, checks.positive(name, getattr(self, name)))

    @property
    def aside(self) -> Fraction:
        """μ² of one step, for one example that comes or goes."""
        return (Fraction(1, 2) / Fraction(self.noise)) ** 2

    def units(self, losses: Tensor, mask: Tensor) -> int:
        """The exact sum over the examples of a physical batch: each has a whole number of at most half the range."""
        inside = torch.nan_to_num(losses.detach().double(), self.high, self.high, 0.0).clamp(0.0, self.high)
        each = ((inside / self.high - 0.5) * 2**BITS).round().long().clamp(-(1 << BITS - 1), 1 << BITS - 1)
        return int(each[mask].sum())

    def release(self, units: int, divisor: float, source: Source) -> float:
        """The noisy mean: the sum over the public batch size."""
        noisy = units + sampler_of(Fraction(self.noise) * 2**BITS, source).one()
        return float(self.high * (0.5 + noisy / 2**BITS / divisor))
