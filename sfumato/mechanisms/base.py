"""The base class of mechanisms: what a mechanism releases and what that costs; and mechanisms on queries.

Fields are public; private data are only ever arguments, so that every `repr` may be logged.
"""

import importlib
import inspect
import math
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, SupportsFloat, TypeVar

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sensitivity import Sensitivity

if TYPE_CHECKING:
    from sfumato.mechanisms.examples import Example

Value = TypeVar("Value", contravariant=True)
Output = TypeVar("Output", covariant=True)


@dataclass(frozen=True)
class Mechanism(ABC, Generic[Value, Output]):
    """A random answer about a private value, and its price.

    `loss` takes what the price depends on besides the fields: a sensitivity for additive noise, mostly nothing.
    """

    source: Source = field(default=SYSTEM, repr=False, compare=False, kw_only=True)  # other than SYSTEM: for tests only

    known: ClassVar[dict[str, type["Mechanism[Any, Any]"]]] = {}  # every class that was imported and can be built
    use: ClassVar[str] = ""  # when to choose it: a phrase for the table in docs/mechanisms.md

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not inspect.isabstract(cls):
            Mechanism.known[cls.__name__] = cls

    @classmethod
    def examples(cls) -> "tuple[Example, ...]":
        """Instances with neighbouring inputs: what the auditor and the common checks of the tests run."""
        return ()

    @abstractmethod
    def release(self, value: Value) -> Output:
        """One answer, with fresh noise."""

    @abstractmethod
    def loss(self, *args: Any, **kwargs: Any) -> PrivacyLoss:
        """The privacy loss of one release."""

    def then(self, process: Callable[[Output], Any]) -> "Processed":
        """Post-processing of the release: free, as `process` sees nothing but the answer.

        Theorem: post-processing cannot raise a divergence [Dwork & Roth 2014, Prop. 2.1]
        """
        return Processed(self, process)

    def on(
        self, query: "Callable[[Any], Value]", sensitivity: "Sensitivity | SupportsFloat | None" = None
    ) -> "Measured":
        """This mechanism on query(data), where the query has this sensitivity."""
        return Measured(self, query, sensitivity)

    def following(
        self, query: "Callable[[Any, tuple[Any, ...]], Value]", sensitivity: "Sensitivity | SupportsFloat | None" = None
    ) -> "Following":
        """This mechanism in a `Chain`, on query(data, answers): the query may look at earlier answers."""
        return Following(self, query, sensitivity)

    def with_source(self, source: Source) -> Self:
        """This mechanism, with all of its noise drawn from this source of bits."""
        return replace(self, **redirected_fields(self, source), source=source)

    def ready(self, count: int) -> None:  # most mechanisms have nothing to draw ahead
        """Draw the noise of the next `count` releases ahead, as far as possible, before data are read."""

    def needs_sensitivity(self) -> bool:
        """Does the loss depend on a sensitivity?"""
        return False


@dataclass(frozen=True)
class Processed(Mechanism[Any, Any]):
    """Post-processing: `process` applied to a release. The loss stays the same."""

    inner: Mechanism[Any, Any]
    process: Callable[[Any], Any] = field(repr=False)
    use = "for whatever is computed from a release: `mechanism.then(process)`"

    def __post_init__(self) -> None:
        check_mechanism("inner", self.inner)
        if not callable(self.process):
            raise InvalidParameter(
                f"process must be a function of the answer.\n  found:  a {type(self.process).__name__}\n"
                "  do:     give a function, such as round"
            )

    def release(self, value: object) -> Any:
        return self.process(self.inner.release(value))

    def loss(self, *args: Any, **kwargs: Any) -> PrivacyLoss:
        return self.inner.loss(*args, **kwargs)

    def ready(self, count: int) -> None:
        self.inner.ready(count)

    def needs_sensitivity(self) -> bool:
        return self.inner.needs_sensitivity()

    @classmethod
    def examples(cls) -> "tuple[Example, ...]":
        """Clamped noise, on numbers and on the answer of a query."""
        from sfumato.mechanisms.additive.base import Clamp
        from sfumato.mechanisms.additive.laplace import Laplace
        from sfumato.mechanisms.examples import NUMBERS, ZERO_ONE, Example, Inputs, Neighbours

        one, clamp, three = Fraction(1), Clamp(0, 3), Neighbours.numbers(3, 2)
        count = cls(Laplace(1.0), clamp).on(len, 1)
        return (
            Example(cls(Laplace(1.0), clamp), (three, ZERO_ONE, Neighbours.numbers(0.0, 1.0)), NUMBERS, True, one),
            Example(count, (Neighbours([7], []),), Inputs("data of a query", ([], [1.5], {}), ()), step=one),
        )


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
    def examples(cls) -> "tuple[Example, ...]":
        from sfumato.mechanisms.additive.laplace import Laplace
        from sfumato.mechanisms.examples import Example, Inputs, Neighbours

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
    def examples(cls) -> "tuple[Example, ...]":
        from sfumato.mechanisms.additive.laplace import Laplace
        from sfumato.mechanisms.examples import Example, Inputs, Neighbours

        inputs = Inputs("data and earlier answers", (([], ()), ([math.nan], (3,))), ())
        pair = Neighbours(([7, 7], (0,)), ([7], (0,)))
        return (Example(cls(Laplace(1.0), larger_than_the_last, 1), (pair,), inputs, step=Fraction(1)),)


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


def check_mechanism(name: str, value: object) -> "Mechanism[Any, Any]":
    """`value`, if it is a mechanism."""
    if not isinstance(value, Mechanism):
        raise InvalidParameter(
            f"{name} must be a mechanism.\n  found:  a {type(value).__name__}\n  do:     give one: sf.Gaussian(2)"
        )
    return value


def redirected_fields(holder: Any, source: Source) -> dict[str, Any]:
    """The fields of a dataclass that hold mechanisms, each with this source."""
    held = {f.name: getattr(holder, f.name) for f in fields(holder) if f.init and f.name != "source"}
    changed = {name: redirect_source(value, source) for name, value in held.items()}
    return {name: value for name, value in changed.items() if value is not held[name]}


def redirect_source(value: Any, source: Source) -> Any:
    """`value`, with this source for every mechanism in it; `value` itself if there is none."""
    if isinstance(value, Mechanism):
        return value.with_source(source)
    if type(value) is tuple:
        parts = tuple(redirect_source(part, source) for part in value)
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if is_dataclass(value) and not isinstance(value, type) and (changes := redirected_fields(value, source)):
        return replace(value, **changes)
    return value


def shipped_mechanisms() -> list[type[Mechanism[Any, Any]]]:
    """Every mechanism of the package that can be built, in the order of modules: all of them are imported first."""
    from sfumato import mechanisms

    for module in pkgutil.walk_packages(mechanisms.__path__, f"{mechanisms.__name__}."):
        importlib.import_module(module.name)
    ours = [kind for kind in Mechanism.known.values() if kind.__module__.startswith(f"{mechanisms.__name__}.")]
    return sorted(ours, key=lambda kind: kind.__module__)  # within one module: as defined
