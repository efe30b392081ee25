"""The loss of a local randomizer: ±ε and 0, with any weight on +ε."""

import math
from dataclasses import dataclass
from typing import ClassVar

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.coins import SignedLoss
from sfumato.loss.numeric import ULP
from sfumato.sensitivity import Relation


@dataclass(frozen=True, init=False)
class SignedPairLoss(SignedLoss):
    """L = ε with probability w under P, −ε with w·e^{−ε}, and 0 otherwise: δ(t) = w(1 − e^{t−ε}) for 0 ≤ t ≤ ε.

    A report that supports a set of values has this loss: it supports the one value and not the other (+ε), the other
    and not the one (−ε), both or neither (0). w is the probability of the first case.

    Theorem: the report of a pure frequency oracle has three loss values [docs/theorems/local.md, Theorem 1]
    """

    eps: float
    chance: float  # the parameter w: `weight` is the method of all such losses

    aliases: ClassVar[dict[str, str]] = {"weight": "chance"}

    def __init__(self, eps: float, weight: float, *, relation: Relation = Relation.AddRemove) -> None:
        object.__setattr__(self, "eps", checks.non_negative("eps", eps))
        object.__setattr__(self, "chance", checks.probability("weight", weight))
        object.__setattr__(self, "relation", relation)
        super().__post_init__()
        if self.chance * (1 + math.exp(-self.eps)) > 1 + 16 * ULP:
            raise InvalidParameter(
                f"the weight is too large for this ε: w(1 + e^−ε) would exceed 1.\n"
                f"  found:  weight = {self.chance!r}, eps = {self.eps!r}\n"
                "  do:     give P[L = ε], at most e^ε/(1 + e^ε)"
            )

    def weight(self) -> float:
        return self.chance

    def silent(self) -> float:
        return max(0.0, 1 - self.chance * (1 + math.exp(-self.eps)))

    def atoms(self) -> tuple[float, float] | None:
        if self.eps == 0:
            return None
        return (self.eps, 0.0) if self.silent() > 0 else (2 * self.eps, self.eps)
