"""Losses known by samples: certified values at nodes, and what convexity says between them.

Beyond the last node a profile lies below its last value, which therefore counts as leak. Losses given by Python
functions become tables at construction: a table is plain data, a function is not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsFloat

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import Enclosure, Floats, floats
from sfumato.loss.views import divergences
from sfumato.loss.views.convex_bounds import Side, both_sides


@dataclass(frozen=True)
class TabulatedLoss(PrivacyLoss):
    """Both profiles at the same nodes ε₀ = 0 < ε₁ < …, each from above and below.

    Upper: chords in e^ε, then the last value (leak). Lower: the line through (e^{ε₁}, u₁) and (e^{ε₂}, l₂), continued
    beyond ε₂, lies below every convex function between these values; so does its mirror image, and so does 0.

    Theorem: a profile lies under the chords of its values at nodes: connect the dots [Doroshenko et al. 2022]
    """

    nodes: tuple[float, ...]
    ahead_upper: tuple[float, ...]
    ahead_lower: tuple[float, ...]
    back_upper: tuple[float, ...]
    back_lower: tuple[float, ...]

    method = "tabulated"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("nodes", "ahead_upper", "ahead_lower", "back_upper", "back_lower"):
            object.__setattr__(self, name, column(name, getattr(self, name)))
        check_nodes(self.nodes)
        check_side("ahead", self.nodes, self.ahead_upper, self.ahead_lower)
        check_side("back", self.nodes, self.back_upper, self.back_lower)

    @cached_property
    def sides(self) -> "tuple[Side, Side]":
        """The two profiles as arrays, forward first."""
        ahead = Enclosure(floats(self.ahead_lower), floats(self.ahead_upper))
        back = Enclosure(floats(self.back_lower), floats(self.back_upper))
        return both_sides(floats(self.nodes), ahead, back)

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.sides[0](eps)

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.sides[1](eps)

    def supremum(self) -> tuple[float, float]:
        return self.nodes[-1], self.nodes[-1]

    def leak(self) -> tuple[float, float]:
        return self.ahead_upper[-1], self.back_upper[-1]

    @property
    def sharp_ends(self) -> bool:
        """No table proves that anything leaks: the profile may fall to 0 beyond the last node."""
        return False

    def log_moment(self, s: float) -> Bound:
        if s > 0 and self.leak()[0] > 0:  # infinite or not: nothing is known beyond the last node
            return Bound(0.0, math.inf, self.method)
        return divergences.log_moment(self, s)

    @property
    def reverse(self) -> "TabulatedLoss":
        back, ahead = (self.back_upper, self.back_lower), (self.ahead_upper, self.ahead_lower)
        return TabulatedLoss(self.nodes, *back, *ahead, relation=self.relation.reversed)

    def __repr__(self) -> str:
        """Short: thousands of numbers help nobody. `to_json` has them all; the brackets say they are left out."""
        ends = f"<{len(self.nodes)} nodes up to {self.nodes[-1]!r}>, leak={self.leak()!r}"
        return f"{type(self).__name__}({ends}, relation={self.relation!r})"


def column(name: str, values: Sequence[SupportsFloat]) -> tuple[float, ...]:
    """One column of finite numbers."""
    try:
        found = tuple(float(value) for value in values)
    except (TypeError, ValueError) as problem:
        raise InvalidParameter(f"{name} must be a sequence of numbers.\n  found:  {problem}") from problem
    if not all(map(math.isfinite, found)):
        raise InvalidParameter(f"{name} holds infinity or NaN.\n  do:     give finite numbers")
    return found


def check_nodes(nodes: tuple[float, ...]) -> None:
    """Nodes rise from 0."""
    if len(nodes) < 2 or nodes[0] != 0 or np.any(np.diff(nodes) <= 0):
        raise InvalidParameter(
            f"nodes must rise from 0, at least two of them.\n  found:  {len(nodes)} nodes that begin {nodes[:3]}\n"
            "  do:     give ε = 0 and larger values of ε, sorted, without repeats"
        )


def check_side(side: str, nodes: tuple[float, ...], upper: tuple[float, ...], lower: tuple[float, ...]) -> None:
    """Bounds that some profile can meet."""
    for name, found in ((f"{side}_upper", upper), (f"{side}_lower", lower)):
        if len(found) != len(nodes):
            raise InvalidParameter(f"{name} has {len(found)} values for {len(nodes)} nodes: give one per node.")
        if not 0 <= min(found) <= max(found) <= 1 or np.any(np.diff(found) > 0):
            raise InvalidParameter(
                f"{name} is no bound on a profile: it must lie in [0, 1] and not rise with ε.\n"
                f"  found:  values from {found[0]!r} to {found[-1]!r}, largest {max(found)!r}, least {min(found)!r}"
            )
    if np.any(floats(lower) > floats(upper)):
        raise InvalidParameter(f"{side}_lower is above {side}_upper somewhere.\n  do:     give lower ≤ truth ≤ upper")
