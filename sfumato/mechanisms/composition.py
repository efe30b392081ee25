"""Adaptive composition: several mechanisms on the same data, one after the other, are a mechanism again."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.mechanisms.additive.bounded_statistics import Count
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Following, Mechanism, check_mechanism, larger_than_the_last
from sfumato.mechanisms.examples import Example, Inputs, Neighbours


@dataclass(frozen=True)
class Chain(Mechanism[Any, tuple[Any, ...]]):
    """Mechanisms on the same data, one after the other: all their answers, in order.

    Parts are mechanisms on data (`noise.on(query, sensitivity)`, statistics, chains), or mechanisms that look at
    earlier answers (`noise.following(query, sensitivity)`). The queries may depend on earlier answers; the mechanisms
    and their sensitivities may not: then the loss is the sum. (Where prices depend on answers, a ledger must keep the
    account.)

    Theorem: adaptive composition is dominated by the product of the parts' dominating pairs
        [Zhu, Dong & Wang 2022, Thm 10]
    """

    parts: tuple[Mechanism[Any, Any], ...]
    use = "for several mechanisms on the same data, one after the other"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        for part in self.parts:
            if check_mechanism("every part of a chain", part).needs_sensitivity():
                raise InvalidParameter(
                    "a part of a chain is a mechanism on data.\n"
                    f"  found:  {type(part).__name__}, whose price depends on what it is applied to\n"
                    "  do:     give noise.on(query, sensitivity)"
                )
        self.loss()  # refuses mixed relations before data are there

    def release(self, data: Any) -> tuple[Any, ...]:
        self.ready(1)
        answers: tuple[Any, ...] = ()
        for part in self.parts:
            answers += (part.release((data, answers) if isinstance(part, Following) else data),)
        return answers

    def loss(self) -> PrivacyLoss:
        """The sum."""
        if not self.parts:
            return nothing()
        first, *rest = (part.loss() for part in self.parts)
        return sum(rest, first)

    def ready(self, count: int) -> None:
        for part in self.parts:
            part.ready(count)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        parts = (Count(Laplace(2.0)), Gaussian(2.0).following(larger_than_the_last, 1))
        inputs = Inputs("data of several queries", ([], [1, 2]), ())
        return (Example(cls(parts), (Neighbours([7, 7], [7]),), inputs, step=Fraction(1)),)
