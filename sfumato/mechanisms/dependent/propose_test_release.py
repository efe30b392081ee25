"""Propose, test, release: noise for a sensitivity that was only guessed, where the guess holds with room to spare."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.gated import GatedLoss
from sfumato.mechanisms.additive.base import Additive, Released
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.off_lattice import About
from sfumato.mechanisms.dependent.private_test import Gate
from sfumato.mechanisms.dependent.statistic import Statistic


@dataclass(frozen=True)
class ProposeTestRelease(Mechanism[Any, "Released | None"]):
    """f(x) + noise for a sensitivity of `bound`, if x is far from data where one person moves f further; else None.

    The distance d(x) = min{k : LS_k(x) > bound} passes the test if d(x) + noise reaches the threshold. Where
    neighbours' answers are more than `bound` apart, both have distance 0 and pass with the same p₀ ≤ δ: there it costs
    p₀, and elsewhere a test and an answer. The worst at each ε is the loss, not the sum: δ is not spent on top.

    Theorem: the profile of propose-test-release is max(p₀, that of safe pairs); with Laplace noise and the threshold
        ln(1/2δ)/ε it is (2ε, δ)-DP [Dwork & Lei 2009; docs/theorems/recipes.md, Theorem 1]
    """

    statistic: Statistic[Any]
    bound: float | Fraction
    test: Gaussian | Laplace | DiscreteLaplace
    noise: Additive
    delta: float

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must know its local sensitivity.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give one of sfumato.mechanisms.dependent, such as Quantile(0, 100)"
            )
        checks.positive("bound", self.bound)
        assert self.gate and self.about  # refuse what makes no sense
        object.__setattr__(self, "delta", self.gate.delta)

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.test, self.delta)

    @cached_property
    def about(self) -> About:
        return About.of(self.noise, self.statistic)

    def release(self, value: Any) -> "Released | None":
        """The answer, or None: this answer, too, is public."""
        self.ready(1)
        data = self.statistic.prepared(value)
        d = self.statistic.distance(data, Fraction(self.bound), self.gate.cap)
        exact = self.statistic.value(data)
        return self.about.drawn(exact) if self.gate.opens(d) else None

    def ready(self, count: int) -> None:
        self.gate.ready(count)
        self.noise.ready(count)

    def loss(self) -> GatedLoss:
        sensitivity = self.statistic.sensitivity
        return self.gate.loss(self.about.price(Fraction(self.bound), sensitivity), sensitivity.relation)

    def error(self, confidence: float = 0.95) -> float:
        """With this probability an answer is off by at most this, if there is one: the noise of the proposal."""
        more = 0 if self.about.whole else 2 * float(self.about.step)
        return self.noise.error(confidence) + more

    def sure(self, confidence: float = 0.95) -> int:
        """Data at this distance or a larger one from breaking the bound are answered with at least this probability."""
        return self.gate.sure(confidence)
