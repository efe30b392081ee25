"""What releases, and what it costs: one class, in one file.

Fields are public; private data are only ever arguments, so that every `repr` may be logged.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, SupportsFloat, TypeVar

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sensitivity import Sensitivity

if TYPE_CHECKING:
    from sfumato.mechanisms.composition import Following, Measured

Value = TypeVar("Value", contravariant=True)
Output = TypeVar("Output", covariant=True)


@dataclass(frozen=True)
class Mechanism(ABC, Generic[Value, Output]):
    """A random answer about a private value, and its price.

    `loss` takes what the price depends on besides the fields: a sensitivity for additive noise, mostly nothing.
    """

    source: Source = field(default=SYSTEM, repr=False, compare=False, kw_only=True)  # other than SYSTEM: for tests only

    known: ClassVar[dict[str, type["Mechanism[Any, Any]"]]] = {}  # every class that can be built

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not inspect.isabstract(cls):
            Mechanism.known[cls.__name__] = cls

    @abstractmethod
    def release(self, value: Value) -> Output:
        """One answer, freshly drawn."""

    @abstractmethod
    def loss(self, *args: Any, **kwargs: Any) -> PrivacyLoss:
        """The privacy loss of one release."""

    def then(self, process: Callable[[Output], Any]) -> "Processed":
        """The same release, and something made of it: free, as it sees nothing else.

        Theorem: post-processing cannot raise a divergence [Dwork & Roth 2014, Prop. 2.1]
        """
        return Processed(self, process)

    def on(
        self, query: "Callable[[Any], Value]", sensitivity: "Sensitivity | SupportsFloat | None" = None
    ) -> "Measured":
        """This mechanism on the answer of a question to data, which has this sensitivity."""
        from sfumato.mechanisms.composition import Measured

        return Measured(self, query, sensitivity)

    def following(
        self, query: "Callable[[Any, tuple[Any, ...]], Value]", sensitivity: "Sensitivity | SupportsFloat | None" = None
    ) -> "Following":
        """The same in a `Chain`, where the question may look at the answers before it."""
        from sfumato.mechanisms.composition import Following

        return Following(self, query, sensitivity)

    def ready(self, count: int) -> None:  # most mechanisms have nothing to draw ahead
        """Draw what the next `count` releases need, as far as it can be, before data are read."""

    def needs_sensitivity(self) -> bool:
        """Does the price depend on how far one person can move the value?"""
        return False


@dataclass(frozen=True)
class Processed(Mechanism[Any, Any]):
    """Post-processing: what `process` makes of a release. Same loss."""

    inner: Mechanism[Any, Any]
    process: Callable[[Any], Any] = field(repr=False)

    def __post_init__(self) -> None:
        mechanism("inner", self.inner)
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


def mechanism(name: str, value: object) -> "Mechanism[Any, Any]":
    """`value`, if it is a mechanism."""
    if not isinstance(value, Mechanism):
        raise InvalidParameter(
            f"{name} must be a mechanism.\n  found:  a {type(value).__name__}\n  do:     give one: sf.Gaussian(2)"
        )
    return value
