"""Shared vocabulary: which data sets count as neighbours, and how far an answer moves between them."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import SupportsFloat

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.rounding import product_up, sqrt_up, sum_up


class Relation(Enum):
    """When two data sets are neighbours. A guarantee about one relation says nothing about another.

    `AddRemove`: one has one person more. `ReplaceOne`: same size, one person's data differ.
    `Remove`, `Add`, `Replace` are one-way: the first data set of the pair is fixed to be the larger, the smaller,
    or either; they arise from looking at one direction of a loss.
    """

    AddRemove = "add/remove"
    ReplaceOne = "replace-one"
    Remove = "remove"
    Add = "add"
    Replace = "replace, one way"

    def __repr__(self) -> str:
        return self.name

    @property
    def one_way(self) -> bool:
        """Does an answer look at (P, Q) only, and not at (Q, P)?"""
        return self in (Relation.Remove, Relation.Add, Relation.Replace)

    @property
    def reversed(self) -> "Relation":
        """The relation of the pair read backwards."""
        return {Relation.Remove: Relation.Add, Relation.Add: Relation.Remove}.get(self, self)


AddRemove = Relation.AddRemove
ReplaceOne = Relation.ReplaceOne


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How far one person can move an answer f, in several norms, over all neighbours of one relation.

    l0: how many coordinates change; linf, l1, l2: the norms of the change. Norms that are not given follow from those
    that are, rounded up; a bare number stands for a scalar answer, add/remove.

    Theorem: ‖x‖₁ ≤ ‖x‖₀‖x‖_∞, ‖x‖₂² ≤ ‖x‖₁‖x‖_∞, ‖x‖₁² ≤ ‖x‖₀‖x‖₂², ‖x‖_∞ ≤ ‖x‖₂ ≤ ‖x‖₁ [Hölder 1889]

    >>> Sensitivity(l0=4, linf=1).l2
    2.0
    """

    l0: float = math.inf
    linf: float = math.inf
    l1: float = math.inf
    l2: float = math.inf
    relation: Relation = AddRemove

    def __post_init__(self) -> None:
        for name in ("l0", "linf", "l1", "l2"):
            given = getattr(self, name)
            found = math.inf if given == math.inf else checks.non_negative(f"the {name} sensitivity", given)
            object.__setattr__(self, name, found)
        if not isinstance(self.relation, Relation):
            raise InvalidParameter(
                f"relation must be a Relation.\n  found:  a {type(self.relation).__name__}\n"
                "  do:     give sf.AddRemove or sf.ReplaceOne"
            )
        if min(self.linf, self.l1, self.l2) == math.inf:
            raise InvalidParameter(
                "this sensitivity bounds no norm.\n  found:  l0 alone, or nothing\n"
                "  do:     give l1=, l2= or linf= (for vectors, linf= with l0=)"
            )
        for _ in range(2):  # each norm from the others; twice, since what was found may help
            object.__setattr__(self, "linf", min(self.linf, self.l2, self.l1))
            by_l2 = sqrt_up(self.l0, self.l2, self.l2)
            object.__setattr__(self, "l1", min(self.l1, product_up(self.l0, self.linf), by_l2))
            object.__setattr__(self, "l2", min(self.l2, self.l1, sqrt_up(self.l1, self.linf)))

    @staticmethod
    def of(value: "Sensitivity | SupportsFloat") -> "Sensitivity":
        """A sensitivity, or a number: that of one coordinate."""
        if isinstance(value, Sensitivity):
            return value
        size = checks.non_negative("sensitivity", value)
        return Sensitivity(l0=1, linf=size, l1=size, l2=size)

    def norm(self, name: str, user: str) -> float:
        """One of the norms, which `user` needs."""
        found: float = getattr(self, name)
        if found == math.inf:
            raise InvalidParameter(
                f"{user} needs the {name} sensitivity.\n  found:  none that follows from {self}\n"
                f"  do:     give Sensitivity({name}=…), or l0= and linf="
            )
        return found

    def rounded(self, step: SupportsFloat, coordinates: int) -> "Sensitivity":
        """After rounding each of so many coordinates to a lattice: two neighbours may be one step further apart."""
        g, d = checks.positive("step", step), checks.whole("coordinates", coordinates, 1)
        return Sensitivity(
            l0=d,
            linf=sum_up(self.linf, g),
            l1=sum_up(self.l1, product_up(d, g)),
            l2=sum_up(self.l2, sqrt_up(d, g, g)),
            relation=self.relation,
        )

    def __repr__(self) -> str:
        known = [f"{name}={getattr(self, name):.6g}" for name in ("l0", "linf", "l1", "l2") if _finite(self, name)]
        about = [] if self.relation is AddRemove else [f"relation={self.relation!r}"]
        return f"Sensitivity({', '.join(known + about)})"


def _finite(found: Sensitivity, name: str) -> bool:
    return bool(getattr(found, name) < math.inf)
