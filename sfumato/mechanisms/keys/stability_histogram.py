"""Partition selection by discrete Laplace noise and a threshold."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato import checks
from sfumato.loss.kinds.discrete_laplace import DiscreteLaplaceLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.examples import KEY_COUNTS, Example, Neighbours
from sfumato.mechanisms.keys.thresholds import Thresholded
from sfumato.noise import DiscreteLaplace
from sfumato.noise.balls import Ball, ball


@dataclass(frozen=True)
class StabilityHistogram(Thresholded):
    """Discrete Laplace noise, and the least threshold τ with 1 − (1 − P(N ≥ τ − 1))^groups ≤ δ.

    For one group this is (1/scale, δ)-DP; a person's `groups` keys cost as many losses of the noise, composed.

    Theorem: noisy counts above a threshold are (ε, δ)-DP without a list of keys [Korolova, Kenthapadi, Mishra & Ntoulas
      2009; Bun, Nissim & Stemmer 2016]

    >>> StabilityHistogram(scale=1.0, delta=1e-6).release({"Rome": 700, "hamlet": 1}).keys()
    dict_keys(['Rome'])
    """

    scale: float
    delta: float
    groups: int = 1
    use = "for private keys and their counts, with Laplace noise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale))
        self.check()

    def law(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale)

    def tail(self, t: int) -> Ball:
        """r^t/(1 + r), r = e^{−1/scale}."""
        rate = 1 / Fraction(self.scale)
        return ball(-t * rate).exp() / (1 + ball(-rate).exp())

    def loss(self) -> LeakyLoss:
        """`groups` losses of the noise on one count, composed, and the leak; add/remove."""
        return LeakyLoss(self.groups * DiscreteLaplaceLoss(self.scale), self.leak)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        neighbours = (
            Neighbours({"a": 4}, {"a": 3}),
            Neighbours({"a": 1}, {}),
            Neighbours({"a": 9}, {"a": 8}),
        )
        return (Example(cls(1.0, 0.05), neighbours, KEY_COUNTS, step=Fraction(1)),)
