"""Any mechanism whose loss depends on the data, behind a test that these data are good ones."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.gated import GatedLoss
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism, check_mechanism
from sfumato.mechanisms.dependent.private_test import Gate, whole_distance


@dataclass(frozen=True)
class TestedRelease(Mechanism[Any, Any]):
    """What `mechanism` makes of data, if their margin passes a test; None otherwise.

    `promised` is the loss of the mechanism between good data and all their neighbours, in both directions; `margin` is
    a whole number that is 0 for all data that are not good, and changes by at most one between neighbours: the distance
    to bad data, or a real statistic of sensitivity 1 less its least good value, rounded down, and 0 below it. That both
    hold is the word of whoever writes them. Of neighbours that are both bad nothing is promised: these pass with at
    most p₀ ≤ δ, and that is all they cost, since a failed test tells nothing else: the loss is max(p₀, that of the test
    and the promise).

    Theorem: generalised propose-test-release costs the larger of the two, not their sum, where None is all that a
        failed test shows [docs/theorems/recipes.md, Theorem 1; cf. Redberg, Zhu & Wang 2023]
    """

    __test__ = False  # not one of pytest's

    mechanism: Mechanism[Any, Any]
    promised: PrivacyLoss
    margin: Callable[[Any], int] = field(repr=False)
    test: Gaussian | Laplace | DiscreteLaplace
    delta: float

    def __post_init__(self) -> None:
        check_mechanism("mechanism", self.mechanism)
        if not isinstance(self.promised, PrivacyLoss):
            raise InvalidParameter(
                f"promised must be a loss.\n  found:  a {type(self.promised).__name__}\n"
                "  do:     give such as sf.loss.GaussianLoss(0.5)"
            )
        if not callable(self.margin):
            raise InvalidParameter(
                f"margin must be a function of the data.\n  found:  a {type(self.margin).__name__}\n"
                "  do:     give one that returns a whole number"
            )
        object.__setattr__(self, "delta", self.gate.delta)

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.test, self.delta)

    def release(self, value: Any) -> Any:
        self.ready(1)
        return self.mechanism.release(value) if self.gate.opens(whole_distance(self.margin(value))) else None

    def ready(self, count: int) -> None:
        self.gate.ready(count)
        self.mechanism.ready(count)

    def loss(self) -> GatedLoss:
        return self.gate.loss(self.promised, self.promised.relation)

    def sure(self, confidence: float = 0.95) -> int:
        """Data with this margin or a larger one are answered with at least this probability."""
        return self.gate.sure(confidence)
