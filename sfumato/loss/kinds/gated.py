"""A mechanism behind a test: it answers only where the data pass."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.base import TOLERANCE, PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Enclosure, Floats, floats
from sfumato.loss.views.divergences import log_moment

FAR = 700.0  # H_α is 1 − α below α = e^−700, up to less than the rounding of a double
DOUBT = 16 * ULP  # relative: what the given probabilities and sums of two of them may be off by


@dataclass(frozen=True)
class GatedLoss(PrivacyLoss):
    """At stability n the data pass with probability passes[n], fail with fails[n]; those that pass are answered.

    Neighbours have stabilities at most one apart, and where they are safe the answers have the inner loss. With
    p = passes[n], f = 1 − p and p′, f′ of the neighbour the profile of a safe pair is
    (f − e^ε·f′)₊ + p·H_inner(ε + ln p′/p); `failure` is the largest probability with which a pair that is not safe
    passes: its profile is at most that. The loss is the worst of all these.

    Theorem: of neighbours that are not safe and pass with p, p′ ≤ q one learns at most q: p + (f − e^ε·f′)₊ =
        max(p, 1 − e^ε·f′) ≤ q [Dwork & Lei 2009; docs/theorems/recipes.md, Theorem 1]
    Theorem: the pointwise maximum of profiles is a profile that dominates each of them [Zhu, Dong & Wang 2022, Lemma 9]
    """

    inner: PrivacyLoss
    passes: tuple[float, ...]
    fails: tuple[float, ...]
    failure: float

    method = "worst of several"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.inner, PrivacyLoss):
            raise InvalidParameter(f"GatedLoss needs a loss inside, found {type(self.inner).__name__}")
        if self.relation is not self.inner.relation:
            raise MixedRelations(
                f"a loss about {self.inner.relation.value} behind a test is not about {self.relation.value}"
            )
        for name in ("passes", "fails"):
            row = getattr(self, name)
            if isinstance(row, str | bytes) or not hasattr(row, "__iter__"):
                raise InvalidParameter(f"{name} must be a row of probabilities, found {type(row).__name__}")
            found = tuple(checks.probability(f"{name}[{i}]", p) for i, p in enumerate(row))
            object.__setattr__(self, name, found)
        if not self.passes or len(self.passes) != len(self.fails):
            raise InvalidParameter("passes and fails must have one probability for each stability, both as many")
        if any(abs(p + f - 1) > 1e-12 for p, f in zip(self.passes, self.fails, strict=True)):
            raise InvalidParameter("passes and fails must add up to 1 at each stability")
        object.__setattr__(self, "failure", checks.probability("failure", self.failure))

    @cached_property
    def pairs(self) -> tuple[Floats, Floats, Floats, Floats]:
        """p, f, p′, f′ of all neighbouring stabilities, in both orders; alike ones count where nobody ever fails."""
        p, f = floats(self.passes), floats(self.fails)
        n = np.arange(p.size)
        here, there = np.concatenate([n, n[:-1], n[1:]]), np.concatenate([n, n[1:], n[:-1]])
        different = np.unique(np.stack([p[here], f[here], p[there], f[there]]), axis=1)
        return different[0], different[1], different[2], different[3]

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self._worst(self.inner, eps, tolerance)

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self._worst(self.inner.reverse, eps, tolerance)

    def _worst(self, inner: PrivacyLoss, eps: Floats, tolerance: float) -> Enclosure:
        p, f, p2, f2 = (row[:, None] for row in self.pairs)
        grow = np.exp(np.minimum(eps, FAR))
        lost, size = f - grow * f2, DOUBT * (f + grow * f2)
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where((p > 0) & (p2 > 0), np.log(p2) - np.log(p), np.where(p > 0, -FAR, 0.0))
        answered = profile_at_any_sign(inner, (eps + shift).ravel(), tolerance)
        low, high = (side.reshape(lost.shape) for side in answered)
        least = np.maximum(lost - size, 0.0) + p * low * (1 - DOUBT)
        most = np.maximum(lost + size, 0.0) + p * high * (1 + DOUBT)
        bottom, top = least.max(axis=0), most.max(axis=0)
        return Enclosure(
            np.maximum(bottom, self.failure) * (1 - DOUBT),
            np.minimum(np.maximum(top, self.failure) * (1 + DOUBT), 1.0),
        )

    def supremum(self) -> tuple[float, float]:
        p, f, p2, f2 = self.pairs
        with np.errstate(divide="ignore", invalid="ignore"):
            passed = np.where((p > 0) & (p2 > 0), np.log(p) - np.log(p2), 0.0)
            failed = np.where((f > 0) & (f2 > 0), np.log(f) - np.log(f2), 0.0)
        more, alone = float(passed.max()), float(failed.max())
        ahead, back = (max(top + more, alone, 0.0) * (1 + 4 * ULP) + 4 * ULP for top in self.inner.supremum())
        return ahead, back

    def leak(self) -> tuple[float, float]:
        p, f, p2, f2 = self.pairs
        sure, most = float(np.max(np.where(p2 == 0, p, 0.0) + np.where(f2 == 0, f, 0.0))), float(np.max(p))
        ahead, back = (
            min(1.0, max(self.failure, (sure + most * inside) * (1 + DOUBT))) for inside in self.inner.leak()
        )
        return ahead, back

    @property
    def sharp_ends(self) -> bool:
        return False

    @property
    def one_pair(self) -> bool:
        return False

    def log_moment(self, s: float) -> Bound:
        return log_moment(self, s)

    @property
    def reverse(self) -> PrivacyLoss:
        back = self.inner.reverse
        if back == self.inner and not self.relation.one_way:
            return self
        return GatedLoss(back, self.passes, self.fails, self.failure, relation=self.relation.reversed)

    def __repr__(self) -> str:
        """Short: the probabilities are in `to_json`."""
        about = "" if self.relation.value == "add/remove" else f", relation={self.relation!r}"
        return f"GatedLoss({self.inner!r}, <{len(self.passes)} stabilities>, failure={self.failure!r}{about})"


def profile_at_any_sign(loss: PrivacyLoss, eps: Floats, tolerance: float) -> Enclosure:
    """H_{e^ε}(P‖Q) for ε of either sign: e^ε·H_{e^−ε}(Q‖P) + 1 − e^ε below 0."""
    ahead = loss.forward(np.maximum(eps, 0.0), tolerance)
    if not np.any(eps < 0):
        return ahead
    below = np.maximum(-eps, 0.0)
    back = loss.backward(np.minimum(below, FAR), tolerance)
    scale, rest = np.exp(-below), -np.expm1(-below)
    low, high = (scale * side + rest for side in back)
    return Enclosure(
        np.where(eps < 0, low * (1 - DOUBT), ahead.lower),
        np.where(eps < 0, np.minimum(high * (1 + DOUBT), 1.0), ahead.upper),
    )
