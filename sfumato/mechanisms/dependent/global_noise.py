"""Noise for the worst data there could be: what is left where nothing better is known."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.base import Additive, Released
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.off_lattice import About
from sfumato.mechanisms.dependent.statistic import Statistic


@dataclass(frozen=True)
class Everywhere(Mechanism[Any, Released]):
    """f(x) + noise, priced at the global sensitivity of f.

    Theorem: noise for the global sensitivity needs nothing of the data [Dwork, McSherry, Nissim & Smith 2006, Prop. 1]
    """

    statistic: Statistic[Any]
    noise: Additive

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must know its sensitivity.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give one of sfumato.mechanisms.dependent, such as TrimmedMean(0, 100)"
            )
        assert self.about  # refuses noise that does not fit

    @cached_property
    def about(self) -> About:
        return About.of(self.noise, self.statistic)

    def release(self, value: Any) -> Released:
        self.ready(1)
        return self.about.drawn(self.statistic.value(value))

    def ready(self, count: int) -> None:
        self.noise.ready(count)

    def loss(self) -> PrivacyLoss:
        return self.about.price(self.statistic.everywhere, self.statistic.sensitivity)

    def error(self, confidence: float = 0.95) -> float:
        """With this probability the answer is off by at most this."""
        return self.noise.error(confidence) + (0 if self.about.whole else 2 * float(self.about.step))
