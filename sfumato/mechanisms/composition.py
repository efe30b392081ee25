"""Mechanisms on queries, and adaptive composition of mechanisms: mechanisms again."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, SupportsFloat

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.mechanisms.additive.bounded_statistics import Count
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism, check_mechanism
from sfumato.mechanisms.examples import Example, Inputs, Neighbours
from sfumato.sensitivity import Sensitivity


@dataclass(frozen=True)
class Measured(Mechanism[Any, Any]):
    """A mechanism applied to query(data), priced at the query's sensitivity.

    The author of the query vouches for the sensitivity, over all pairs of neighbours, and for a query that neither
    fails nor takes longer on some data: an exception or a delay would be an answer, too.

    >>> from sfumato.mechanisms import Laplace
    >>> Laplace(2).on(len, 1).loss()
    LaplaceLoss(relation=AddRemove, eps=0.5)
    """

    mechanism: Mechanism[Any, Any]
    query: Callable[[Any], Any] = field(repr=False)
    sensitivity: Sensitivity | SupportsFloat | None = None
    use = "for a mechanism on the answer of a query: `mechanism.on(query, sensitivity)`"

    def __post_init__(self) -> None:
        check_query(self.query)
        price(self.mechanism, self.sensitivity)  # refuses before data are there

    def release(self, data: Any) -> Any:
        self.mechanism.ready(1)
        return self.mechanism.release(self.query(data))

    def loss(self) -> PrivacyLoss:
        return price(self.mechanism, self.sensitivity)

    def ready(self, count: int) -> None:
        self.mechanism.ready(count)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        inputs = Inputs("data of a query", ([], [math.nan], {}), ())
        return (Example(cls(Laplace(1.0), len, 1), (Neighbours([7, 7], [7]),), inputs, step=Fraction(1)),)


@dataclass(frozen=True)
class Following(Mechanism[tuple[Any, tuple[Any, ...]], Any]):
    """A mechanism applied to query(data, answers), where `answers` are the earlier ones of a `Chain`.

    The sensitivity holds for every tuple of answers; mechanism and price do not depend on them.
    """

    mechanism: Mechanism[Any, Any]
    query: Callable[[Any, tuple[Any, ...]], Any] = field(repr=False)
    sensitivity: Sensitivity | SupportsFloat | None = None
    use = "in a Chain, where the query looks at earlier answers: `mechanism.following(query, sensitivity)`"

    def __post_init__(self) -> None:
        check_query(self.query)
        price(self.mechanism, self.sensitivity)

    def release(self, value: tuple[Any, tuple[Any, ...]]) -> Any:
        data, answers = value
        self.mechanism.ready(1)
        return self.mechanism.release(self.query(data, answers))

    def loss(self) -> PrivacyLoss:
        return price(self.mechanism, self.sensitivity)

    def ready(self, count: int) -> None:
        self.mechanism.ready(count)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        inputs = Inputs("data and earlier answers", (([], ()), ([math.nan], (3,))), ())
        pair = Neighbours(([7, 7], (0,)), ([7], (0,)))
        return (Example(cls(Laplace(1.0), larger_than_the_last, 1), (pair,), inputs, step=Fraction(1)),)


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


def larger_than_the_last(data: list[int], answers: tuple[int, ...]) -> int:
    """A query of sensitivity 1 that looks at an answer, for the examples."""
    return sum(x > min(answers[-1], 5) for x in data) if answers else len(data)


def price(priced: Mechanism[Any, Any], sensitivity: Sensitivity | SupportsFloat | None) -> PrivacyLoss:
    """The loss at this sensitivity, or without one where the loss depends on none."""
    name = type(check_mechanism("what is measured with", priced)).__name__
    if sensitivity is None and priced.needs_sensitivity():
        raise InvalidParameter(
            f"{name} needs the sensitivity of its query.\n  found:  none\n"
            "  do:     give on(query, sensitivity): how far one person can move the query's answer"
        )
    if sensitivity is not None and not priced.needs_sensitivity():
        raise InvalidParameter(
            f"{name} has its price without the query's sensitivity.\n  found:  a sensitivity\n"
            "  do:     give on(query) alone"
        )
    return priced.loss() if sensitivity is None else priced.loss(sensitivity)


def check_query(query: object) -> None:
    if not callable(query):
        raise InvalidParameter(
            f"a query is a function of the data.\n  found:  a {type(query).__name__}\n  do:     give one, such as len"
        )
