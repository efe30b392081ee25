"""Losses made from other losses by a change of view: one direction, reversed, the worse of several."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.base import TOLERANCE, Outcomes, PrivacyLoss, Wrapped, same_relation
from sfumato.loss.bound import Bound
from sfumato.loss.compose.transforms.base import Transform, spectral_moment
from sfumato.loss.numeric import Enclosure, Floats, maximum
from sfumato.loss.views.divergences import log_moment
from sfumato.sensitivity import Relation


@dataclass(frozen=True)
class OneWay(Wrapped):
    """One direction of a loss: answers look at (P, Q) only.

    Theorem: the two directions of an add/remove loss bound removal and addition apart [Zhu, Dong & Wang 2022, Sec. 2]
    """

    inner: PrivacyLoss
    relation: Relation = field(default=Relation.Remove, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.inner, PrivacyLoss):
            raise InvalidParameter(f"OneWay needs a loss inside, found {type(self.inner).__name__}")
        if not self.relation.one_way or self.inner.relation is not Relation.AddRemove:
            raise MixedRelations("OneWay looks at one direction (Remove or Add) of an add/remove loss")

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.inner.forward(eps, tolerance)

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.inner.backward(eps, tolerance)

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        return self.inner.near(delta, tolerance, eps)

    def least(self, goal: float, tolerance: float) -> Bound | None:
        return self.inner.least(goal, tolerance)

    def transform(self) -> Transform | None:
        return self.inner.transform()

    def supremum(self) -> tuple[float, float]:
        return self.inner.supremum()

    def leak(self) -> tuple[float, float]:
        return self.inner.leak()

    def log_moment(self, s: float) -> Bound:
        return self.inner.log_moment(s)

    def mean(self) -> Bound:
        return self.inner.mean()

    def rho_ceiling(self) -> float:
        return self.inner.rho_ceiling()

    @property
    def reverse(self) -> PrivacyLoss:
        return OneWay(self.inner.reverse, relation=self.relation.reversed)

    def group(self, size: int) -> PrivacyLoss:
        return OneWay(self.inner.group(size), relation=self.relation)

    def atoms(self) -> tuple[float, float] | None:
        return self.inner.atoms()

    def outcomes(self) -> Outcomes | None:
        return self.inner.outcomes()


def one_way(loss: PrivacyLoss, relation: Relation) -> OneWay:
    """One direction of an add/remove loss."""
    if loss.relation is not Relation.AddRemove:
        raise MixedRelations(
            f"{relation.value!r} is a direction of add/remove losses.\n"
            f"  found:  a loss about {loss.relation.value}\n"
            "  do:     use .delta and the other views directly: they take the worse direction"
        )
    return OneWay(loss if relation is Relation.Remove else loss.reverse, relation=relation)


@dataclass(frozen=True)
class Reversed(Wrapped):
    """The pair (Q, P) of a loss that has no simpler name.

    Theorem: reversal, H_α(P‖Q) = α·H_{1/α}(Q‖P) + 1 − α [Zhu, Dong & Wang 2022, Lemma 47]
    """

    inner: PrivacyLoss

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.inner, PrivacyLoss):
            raise InvalidParameter(f"Reversed needs a loss inside, found {type(self.inner).__name__}")
        if self.relation is not self.inner.relation.reversed:
            raise MixedRelations(
                f"the reverse of a loss about {self.inner.relation.value} is not about {self.relation.value}"
            )

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.inner.backward(eps, tolerance)

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.inner.forward(eps, tolerance)

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        return self.inner.near_backward(delta, tolerance, eps)

    def near_backward(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        return self.inner.near(delta, tolerance, eps)

    def supremum(self) -> tuple[float, float]:
        top, bottom = self.inner.supremum()
        return bottom, top

    def leak(self) -> tuple[float, float]:
        ahead, back = self.inner.leak()
        return back, ahead

    def log_moment(self, s: float) -> Bound:
        """E_Q[e^{−sL}] = E_P[e^{−(s+1)L}]: of orders above 1 only a transform knows more than the integral."""
        sharp = s > 0 and self.leak() == (0.0, 0.0) and self.one_pair
        found = spectral_moment(self.transform(), s) if sharp else None
        return found if found is not None else log_moment(self, s)

    def rho_ceiling(self) -> float:
        """The less of two bounds: of this direction, and of both directions of the inner loss."""
        return min(super().rho_ceiling(), self.inner.rho_ceiling())

    @property
    def reverse(self) -> PrivacyLoss:
        return self.inner

    def group(self, size: int) -> PrivacyLoss:
        return self.inner.group(size).reverse

    def atoms(self) -> tuple[float, float] | None:
        found = self.inner.atoms()
        return found and (found[0], -found[1])

    def transform(self) -> Transform | None:
        found = self.inner.transform()
        return found and found.reverse


@dataclass(frozen=True)
class Either(PrivacyLoss):
    """The worst of several losses: what a mechanism costs that runs one of them and does not say in advance which.

    Theorem: the pointwise maximum of profiles is a profile that dominates each of them [Zhu, Dong & Wang 2022, Lemma 9]
    """

    options: tuple[PrivacyLoss, ...]

    method = "worst of several"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.options or not all(isinstance(option, PrivacyLoss) for option in self.options):
            raise InvalidParameter("Either needs one or more losses")
        if same_relation(self.options) is not self.relation:
            raise MixedRelations(f"these losses are not about {self.relation.value}")

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return reduce(maximum, (option.forward(eps, tolerance) for option in self.options))

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return reduce(maximum, (option.backward(eps, tolerance) for option in self.options))

    @property
    def sharp_ends(self) -> bool:
        return all(option.sharp_ends for option in self.options)

    @property
    def one_pair(self) -> bool:
        return False

    def supremum(self) -> tuple[float, float]:
        tops = [option.supremum() for option in self.options]
        return max(top for top, _ in tops), max(bottom for _, bottom in tops)

    def leak(self) -> tuple[float, float]:
        leaks = [option.leak() for option in self.options]
        return max(ahead for ahead, _ in leaks), max(back for _, back in leaks)

    def log_moment(self, s: float) -> Bound:
        return log_moment(self, s)

    def moment_ceiling(self, s: float) -> float:
        """log Σ M_i: the larger profile is below the sum of all."""
        return math.log(len(self.options)) + max(option.log_moment(s).upper for option in self.options)

    @property
    def reverse(self) -> PrivacyLoss:
        return either(*(option.reverse for option in self.options))

    def group(self, size: int) -> PrivacyLoss:
        return either(*(option.group(size) for option in self.options))


def either(*losses: PrivacyLoss) -> PrivacyLoss:
    """The loss of running one of these, whichever: the worse of them at every ε."""
    if not losses or not all(isinstance(loss, PrivacyLoss) for loss in losses):
        raise InvalidParameter("either(…) needs one or more losses, e.g. either(GaussianLoss(1), LaplaceLoss(0.5))")
    relation = same_relation(losses)
    options: list[PrivacyLoss] = []
    for loss in losses:
        options.extend(loss.options if isinstance(loss, Either) else [loss])
    distinct = tuple(sorted(set(options), key=lambda loss: loss.to_json()))
    return distinct[0] if len(distinct) == 1 else Either(distinct, relation=relation)
