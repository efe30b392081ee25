"""A noisy upper bound on the local sensitivity, then the answer with noise of that scale."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.additive_noise import scale_noise
from sfumato.mechanisms.dependent.private_test import Gate, IntegerNoise
from sfumato.mechanisms.dependent.statistic import Statistic
from sfumato.mechanisms.examples import Example, Inputs, Neighbours
from sfumato.sensitivity import Sensitivity


class Bounded(NamedTuple):
    """A released answer, and the bound on the sensitivity that sets the scale of its noise."""

    answer: int
    bound: int


@dataclass(frozen=True)
class NoisyBound(Mechanism[Any, Bounded]):
    """For an integer statistic whose local sensitivity has a small global sensitivity itself, such as `Triangles`.

    First B = LS(x) + N + shift is released, where N is the `first` noise and the shift makes P(B < LS(x)) small. Then
    f(x) is released with B times the noise `unit`, which is the noise for a sensitivity of 1.

    Theorem: if B is too low with probability at most δ(1 − T), T the total variation of both noises together, the
        profile is at most δ + (1 − δ)·(that of both) [docs/theorems/recipes.md, Theorem 5; cf. Karwa, Raskhodnikova,
        Smith & Yaroslavtsev 2011]
    """

    statistic: Statistic[Any]
    first: IntegerNoise
    unit: Gaussian | Laplace
    delta: float
    use = "for counts in graphs: a noisy bound on the local sensitivity sets the scale"

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic) or self.statistic.drift is None or self.statistic.grain != 1:
            raise InvalidParameter(
                "NoisyBound needs an integer statistic with a known drift of its local sensitivity.\n"
                f"  found:  a {type(self.statistic).__name__}\n  do:     give Triangles(nodes), or Stars(nodes)"
            )
        if not isinstance(self.unit, Gaussian | Laplace) or self.unit.lattice.step != 1:
            raise InvalidParameter(
                "the second noise must be Gaussian or Laplace with a step of 1.\n"
                f"  found:  {type(self.unit).__name__}\n  do:     give such as sf.Laplace(2.0), for a sensitivity of 1"
            )
        object.__setattr__(self, "delta", Gate(self.first, self.delta).delta)
        assert self.gate  # raises if no threshold is high enough

    @cached_property
    def both(self) -> PrivacyLoss:
        """The loss of both noises where the bound holds."""
        moves, about = float(self.statistic.drift or 1), self.statistic.relation
        one = Sensitivity(l0=1, linf=1, l1=1, l2=1, relation=about)
        return self.first.loss(Sensitivity(l0=1, linf=moves, l1=moves, l2=moves, relation=about)) + self.unit.loss(one)

    @cached_property
    def gate(self) -> Gate:
        """P(N ≤ −threshold) is at most δ(1 − T)."""
        return Gate(self.first, self.delta * (1 - self.both.delta(0.0).upper) * (1 - 1e-14))

    @property
    def shift(self) -> int:
        return self.gate.threshold - 1

    def release(self, value: Any) -> Bounded:
        self.ready(1)
        data = self.statistic.prepare(value)
        local, exact = int(self.statistic.local(data)), int(self.statistic.value(data))
        noisy = self.first.release(local)
        assert isinstance(noisy, int)
        bound = max(1, min(noisy + self.shift, int(self.statistic.everywhere)))
        answer = self.noise_for(bound).release(exact)
        assert isinstance(answer, int)
        return Bounded(answer, bound)

    def noise_for(self, bound: int) -> Gaussian | Laplace:
        """The second noise for this bound: `bound` times the unit, rounded up."""
        return scale_noise(self.unit, Fraction(bound))

    def ready(self, count: int) -> None:
        self.first.ready(count)

    def loss(self) -> LeakyLoss:
        return LeakyLoss(self.both, self.delta, relation=self.both.relation)

    def error(self, confidence: float = 0.95, *, bound: int) -> float:
        """The error of an answer with this (public) bound that is not exceeded with this probability."""
        return self.noise_for(bound).error(confidence)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
        from sfumato.mechanisms.additive.laplace import Laplace
        from sfumato.mechanisms.dependent.graphs import Triangles

        edges = Inputs("edges", ([], np.zeros((0, 2), int), [(0, 0), (-1, 99), (2**62, 1)]), ())
        triangle = (Neighbours([(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)]),)
        return (Example(cls(Triangles(6), DiscreteLaplace(1.0), Laplace(1.0), 0.1), triangle, edges, step=Fraction(1)),)
