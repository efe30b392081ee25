"""What composes a sum of losses: closed forms, the lattice and the contour look alike from outside."""

from collections.abc import Callable
from typing import Protocol

from sfumato.loss.bound import Bound
from sfumato.loss.numeric import Enclosure, Floats


class Engine(Protocol):
    """Anything that can tell the forward profile of a composition."""

    @property
    def method(self) -> str: ...

    def forward(self, eps: Floats, tolerance: float = ...) -> Enclosure:
        """δ at every ε."""

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        """The profile, sharp at least around the ε where it is `delta`."""

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """The least ε with δ(ε) ≤ goal, if the engine has a shorter way than to search its profile."""
