"""Neighbour relations, and sensitivity: how far an answer moves between neighbouring data sets."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import SupportsFloat

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.rounding import product_up, sqrt_up, sum_up


class Relation(Enum):
    """Which data sets are neighbours. A guarantee about one relation says nothing about another.

    `AddRemove`: one of the two has one more person. `ReplaceOne`: same size, one person's data differ.
    `Remove`, `Add` and `Replace` are the relations of one direction of a loss: the first data set of the pair is the
    larger one, the smaller one, or either.
    """

    AddRemove = "add/remove"
    ReplaceOne = "replace-one"
    Remove = "remove"
    Add = "add"
    Replace = "replace, one way"

    def __init__(self, words: object) -> None:
        self.one_way = words in ("remove", "add", "replace, one way")  # about (P, Q) only, and not about (Q, P)?

    def __repr__(self) -> str:
        return self.name

    @property
    def reversed(self) -> "Relation":
        """The relation of the pair (Q, P)."""
        return {Relation.Remove: Relation.Add, Relation.Add: Relation.Remove}.get(self, self)


AddRemove = Relation.AddRemove
ReplaceOne = Relation.ReplaceOne


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How far an answer f can move between neighbours of one relation, in several norms.

    l0 is the number of coordinates that change; linf, l1 and l2 are norms of the change. Norms that are not given
    follow from those that are, rounded up. A bare number means a scalar answer under add/remove.

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
            size = math.inf if given == math.inf else checks.non_negative(f"the {name} sensitivity", given)
            object.__setattr__(self, name, size)
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
        for _ in range(2):  # each norm from the others; twice, since a new norm may tighten another
            object.__setattr__(self, "linf", min(self.linf, self.l2, self.l1))
            by_l2 = sqrt_up(self.l0, self.l2, self.l2)
            object.__setattr__(self, "l1", min(self.l1, product_up(self.l0, self.linf), by_l2))
            object.__setattr__(self, "l2", min(self.l2, self.l1, sqrt_up(self.l1, self.linf)))

    @staticmethod
    def of(value: "Sensitivity | SupportsFloat") -> "Sensitivity":
        """A sensitivity as it is; a number means one coordinate."""
        if isinstance(value, Sensitivity):
            return value
        size = checks.non_negative("sensitivity", value)
        return Sensitivity(l0=1, linf=size, l1=size, l2=size)

    def norm(self, name: str, user: str) -> float:
        """One of the norms. Raises if it is unknown; `user` is named in the message."""
        size: float = getattr(self, name)
        if size == math.inf:
            raise InvalidParameter(
                f"{user} needs the {name} sensitivity.\n  found:  none that follows from {self}\n"
                f"  do:     give Sensitivity({name}=…), or l0= and linf="
            )
        return size

    def rounded(self, step: SupportsFloat, coordinates: int) -> "Sensitivity":
        """The sensitivity after rounding each coordinate to a lattice: two neighbours may be one step further apart."""
        g, d = checks.positive("step", step), checks.whole("coordinates", coordinates, 1)
        return Sensitivity(
            l0=d,
            linf=sum_up(self.linf, g),
            l1=sum_up(self.l1, product_up(d, g)),
            l2=sum_up(self.l2, sqrt_up(d, g, g)),
            relation=self.relation,
        )

    def __repr__(self) -> str:
        sizes = {name: getattr(self, name) for name in ("l0", "linf", "l1", "l2")}
        known = [f"{name}={size:.6g}" for name, size in sizes.items() if size < math.inf]
        about = [] if self.relation is AddRemove else [f"relation={self.relation!r}"]
        return f"Sensitivity({', '.join(known + about)})"
