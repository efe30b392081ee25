"""A noisy upper bound on the local sensitivity, then noise of that scale."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.off_lattice import scaled
from sfumato.mechanisms.dependent.private_test import Gate
from sfumato.mechanisms.dependent.statistic import Statistic
from sfumato.sensitivity import Sensitivity


class Bounded(NamedTuple):
    """What was released: an answer, and the bound that its noise was made for."""

    answer: int
    bound: int


@dataclass(frozen=True)
class NoisyBound(Mechanism[Any, Bounded]):
    """For a whole statistic whose local sensitivity itself moves little between neighbours, such as `Triangles`.

    B = LS(x) + N + shift, where N is the first noise and the shift makes P(B < LS(x)) small; then f(x) and noise B
    times as large as `unit`, which is the noise for a sensitivity of 1. B is public by then.

    Theorem: if B is too low with probability at most δ(1 − T), T the total variation of both noises together, the
        profile is at most δ + (1 − δ)·(that of both) [docs/theorems/recipes.md, Theorem 5; cf. Karwa, Raskhodnikova,
        Smith & Yaroslavtsev 2011]
    """

    statistic: Statistic[Any]
    first: Gaussian | Laplace | DiscreteLaplace
    unit: Gaussian | Laplace
    delta: float

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic) or self.statistic.drift is None or self.statistic.grain != 1:
            raise InvalidParameter(
                "this needs a whole statistic of which it is known how far its local sensitivity moves.\n"
                f"  found:  a {type(self.statistic).__name__}\n  do:     give Triangles(nodes), or Stars(nodes)"
            )
        if not isinstance(self.unit, Gaussian | Laplace) or self.unit.lattice.step != 1:
            raise InvalidParameter(
                "the second noise is Gaussian or Laplace with a step of 1.\n"
                f"  found:  {type(self.unit).__name__}\n  do:     give such as sf.Laplace(2.0), for a sensitivity of 1"
            )
        object.__setattr__(self, "delta", Gate(self.first, self.delta).delta)
        assert self.gate  # refuses what is out of reach

    @cached_property
    def both(self) -> PrivacyLoss:
        """The loss where the bound holds."""
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
        data = self.statistic.prepared(value)
        local, exact = int(self.statistic.local(data)), int(self.statistic.value(data))
        noisy = self.first.release(local)
        assert isinstance(noisy, int)
        bound = max(1, min(noisy + self.shift, int(self.statistic.everywhere)))
        answer = self.scaled(bound).release(exact)
        assert isinstance(answer, int)
        return Bounded(answer, bound)

    def scaled(self, bound: int) -> Gaussian | Laplace:
        """The second noise for this bound: never less than `bound` times the unit."""
        return scaled(self.unit, Fraction(bound))

    def ready(self, count: int) -> None:
        self.first.ready(count)

    def loss(self) -> LeakyLoss:
        return LeakyLoss(self.both, self.delta, relation=self.both.relation)

    def error(self, confidence: float = 0.95, *, bound: int) -> float:
        """With this probability an answer with this bound, which is public, is off by at most this."""
        return self.scaled(bound).error(confidence)
