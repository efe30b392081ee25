"""Partition selection by Gaussian noise and a threshold, priced for a Gaussian ledger."""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from sfumato import checks
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.examples import KEY_COUNTS, Example, Neighbours
from sfumato.mechanisms.keys.thresholds import Thresholded
from sfumato.noise import rounded_gaussian
from sfumato.noise.balls import Ball, ball
from sfumato.noise.density import Rounded
from sfumato.rounding import quotient_up
from sfumato.sensitivity import Sensitivity


@dataclass(frozen=True)
class ThresholdSelection(Thresholded):
    """Rounded Gaussian noise, and the least threshold τ with 1 − (1 − Φ̄((τ − 3/2)/σ))^groups ≤ δ.

    Its loss is Gaussian with μ = √groups/σ, and a leak of at most δ: on a ledger it costs (μ², δ), and the noisy counts
    that come out with the keys cost nothing more. A person's L keys move L counts by one each: √L in L2.

    Theorem: the Gaussian mechanism is Δ₂/σ-GDP [Dong, Roth & Su 2022, Thm 2.7]

    >>> ThresholdSelection(sigma=10.0, delta=1e-6).release({"Rome": 700, "hamlet": 1}).keys()
    dict_keys(['Rome'])
    """

    sigma: float
    delta: float
    groups: int = 1
    use = "for private keys and their counts, on a Gaussian ledger"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checks.positive("sigma", self.sigma))
        self.check()

    def law(self) -> Rounded:
        return rounded_gaussian(self.sigma)

    def tail(self, t: int) -> Ball:
        """Φ̄((t − ½)/σ)."""
        return (ball((t - Fraction(1, 2)) / Fraction(self.sigma)) / arb(2).sqrt()).erfc() / 2

    def loss(self) -> LeakyLoss:
        """Gaussian with μ = √groups/σ, and the leak; add/remove."""
        distance = Sensitivity(l0=self.groups, linf=1).l2
        return LeakyLoss(GaussianLoss(quotient_up(distance, self.sigma)), self.leak)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        neighbours = (
            Neighbours({"a": 1, "b": 1}, {}),
            Neighbours({"a": 4, "b": 1}, {"a": 3}),
            Neighbours({"a": 9, "b": 9}, {"a": 8, "b": 8}),
        )
        return (Example(cls(1.0, 0.2, 2), neighbours, KEY_COUNTS, step=Fraction(1)),)
