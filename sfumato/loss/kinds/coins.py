"""Losses that take the values −ε, 0, +ε only, and perhaps give everything away: randomized response and its kin.

With probability `leak` the output names its data set. Otherwise L = ε with weight w, −ε with weight w·e^{−ε}, and 0
with the rest: δ(t) = leak + w·(1 − e^{t−ε}) for 0 ≤ t ≤ ε.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato import checks
from sfumato.loss.base import TOLERANCE, Outcomes, PrivacyLoss, Symmetric
from sfumato.loss.bound import Bound, widen
from sfumato.loss.compose.transforms.bounded import LARGEST, BoundedTransform
from sfumato.loss.compose.transforms.edges import EdgedTransform
from sfumato.loss.kinds.discrete_laplace import DiscreteLaplaceLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.loss.numeric import ULP, Enclosure, Floats, logsumexp, relative
from sfumato.loss.views.divergences import log
from sfumato.rounding import product_up
from sfumato.sensitivity import Relation

# Groups at (ε, δ) are geometric noise where that pays: it gains a share of about kε, which below NARROW is less than
# what rounding costs; beyond WIDE e^ε is no float, and of more than LISTED loss values the moments are slow to sum.
NARROW, WIDE, LISTED = 1e-6, 600.0, 100_000


class SignedLoss(Symmetric):
    """A symmetric pair with losses ±ε and 0; subclasses say how likely +ε is under P."""

    eps: float

    @abstractmethod
    def weight(self) -> float:
        """P[L = ε]."""

    def leak_mass(self) -> float:
        """P[L = ∞]."""
        return 0.0

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return relative(self.leak_mass() + self.weight() * -np.expm1(np.minimum(eps - self.eps, 0.0)), 16)

    def supremum(self) -> tuple[float, float]:
        return self.eps, self.eps

    def leak(self) -> tuple[float, float]:
        return self.leak_mass(), self.leak_mass()

    def log_moment(self, s: float) -> Bound:
        return signed_moment(self.eps, self.weight(), self.silent(), self.leak_mass(), s)

    def transform(self) -> EdgedTransform:
        return EdgedTransform.of(self.eps, self.weight(), self.weight() * math.exp(-self.eps), self.silent())

    def bounded_transform(self) -> BoundedTransform | None:
        """The loss of a coin under Q, to be sampled or repeated very often; None if it can be 0 or leaks."""
        if self.silent() or self.leak_mass() or not 0 < self.eps <= LARGEST:
            return None
        right = 1 / (1 + math.exp(self.eps))
        return BoundedTransform(1.0, self.eps, right, 1 - right, 0.0)

    def silent(self) -> float:
        """P[L = 0]."""
        return 0.0

    def outcomes(self) -> Outcomes:
        back = self.weight() * math.exp(-self.eps)
        return Outcomes(
            np.array([-self.eps, 0.0, self.eps]), np.array([back, self.silent(), self.weight()]), 4 * ULP * self.eps
        )

    def mean(self) -> Bound:
        """w(1 − e^{−ε})ε."""
        if self.leak_mass() > 0:
            return Bound(math.inf, math.inf, "closed form")
        value = self.weight() * -math.expm1(-self.eps) * self.eps
        return widen(value, 16 * ULP * value, "closed form")

    def atoms(self) -> tuple[float, float] | None:
        return (self.eps, 0.0) if self.eps > 0 else None


@dataclass(frozen=True)
class RandomizedResponseLoss(SignedLoss):
    """Tells the truth with probability e^ε/(e^ε + k − 1), else one of the k − 1 other answers.

    L = ε with that probability, −ε with 1/(e^ε + k − 1), 0 otherwise (the answer is neither of the two in question).

    Theorem: k-ary randomized response is ε-DP with three loss values [Warner 1965; Kairouz, Oh & Viswanath 2016]
    """

    eps: float
    k: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))
        object.__setattr__(self, "k", checks.whole("k", self.k, 2))

    def weight(self) -> float:
        return 1 / (1 + (self.k - 1) * math.exp(-self.eps))

    def silent(self) -> float:
        return (self.k - 2) * math.exp(-self.eps) * self.weight()

    def atoms(self) -> tuple[float, float] | None:
        if self.eps == 0:
            return None
        return (2 * self.eps, self.eps) if self.k == 2 else (self.eps, 0.0)


@dataclass(frozen=True)
class PureLoss(SignedLoss):
    """Anything that is ε-DP: dominated by binary randomized response.

    Theorem: every ε-DP mechanism is post-processed randomized response [Kairouz, Oh & Viswanath 2015, Thm 3.1]
    """

    eps: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))

    def weight(self) -> float:
        return 1 / (1 + math.exp(-self.eps))

    def atoms(self) -> tuple[float, float] | None:
        return (2 * self.eps, self.eps) if self.eps > 0 else None

    def group(self, size: int) -> PrivacyLoss:
        """Geometric noise moved by k steps: kε-DP, and less than that says (see ApproxLoss.group at δ = 0)."""
        size = checks.whole("size", size, 0)
        if size == 1:
            return self
        return geometric(self.eps, size, self.relation) or PureLoss(product_up(size, self.eps), relation=self.relation)


@dataclass(frozen=True, init=False)
class ApproxLoss(SignedLoss):
    """Anything that is (ε, δ)-DP: dominated by leaky randomized response.

    With probability δ the output says which data set it came from; otherwise it is randomized response with ε.

    Theorem: leaky randomized response dominates every (ε, δ)-DP mechanism [Kairouz, Oh & Viswanath 2015, Thm 3.1]
    """

    eps: float
    failure: float  # the parameter δ: `delta` is the name of the view

    aliases: ClassVar[dict[str, str]] = {"delta": "failure"}

    def __init__(self, eps: float, delta: float, *, relation: Relation = Relation.AddRemove) -> None:
        object.__setattr__(self, "eps", checks.non_negative("eps", eps))
        object.__setattr__(self, "failure", checks.probability("delta", delta))
        object.__setattr__(self, "relation", relation)
        super().__post_init__()

    def weight(self) -> float:
        return (1 - self.failure) / (1 + math.exp(-self.eps))

    def leak_mass(self) -> float:
        return self.failure

    def atoms(self) -> tuple[float, float] | None:
        return (2 * self.eps, self.eps) if self.eps > 0 else None

    def group(self, size: int) -> PrivacyLoss:
        """Everything with probability a_k = δ(e^{kε} − 1)/(e^ε − 1), else geometric noise moved by k steps of ε.

        The classical answer is (kε, a_k) [Dwork & Roth 2014, Thm 2.2; Vadhan 2017, Lemma 2.2]; this one lies below it.

        Theorem: a chain of k (ε, δ)-DP steps costs no more than geometric noise at distance k and a leak of a_k
            [Dong, Roth & Su 2022, Thm 2.14, and the proof below]

        Proof. A step is r(x) = min(1, δ + e^ε x, 1 − e^{−ε}(1 − δ − x)), k of them are r^{∘k}, and H(t) is the largest
        r^{∘k}(x) − e^t x. As r is concave in (x, δ) and rises in both, r^{∘k} is concave, too, and H is concave in δ.
        Our bound a_k + (1 − a_k)G, with the profile G of the noise, is linear in δ and the same at δ = 0: it is enough
        to look at small δ. With c_j = r^{−j}(c₀) = e^{−jε}(c₀ − a_j), c₀ = (1−δ)/(1+e^ε), and r its own mirror image,
        the corners of r^{∘k} are then (c_{k−1−i}, 1 − c_i), i < k; δ = 0 gives those of the noise. Both are linear in
        e^t between t = (k−2i)ε, i ≤ k, where ours exceeds H by δ(1 − e^{−iε})(e^{(k−i)ε} − 1)/(e^ε − 1) ≥ 0.
        """
        size = checks.whole("size", size, 0)
        if size == 1:
            return self
        leak, noise = self.leak_of_group(size), geometric(self.eps, size, self.relation)
        if leak == 1 or noise is None:
            return ApproxLoss(product_up(size, self.eps), leak, relation=self.relation)
        return LeakyLoss(noise, leak, relation=self.relation) if leak else noise

    def leak_of_group(self, size: int) -> float:
        """δ(1 + e^ε + … + e^{(k−1)ε}), rounded up."""
        last = (size - 1) * self.eps
        if self.failure == 0 or size == 0 or last > 700:
            return float(self.failure > 0 and size > 0)
        spread = math.exp(last) * (math.expm1(-size * self.eps) / math.expm1(-self.eps) if self.eps else size)
        return min(1.0, self.failure * spread * (1 + (16 + 4 * last) * ULP))


def geometric(eps: float, size: int, relation: Relation) -> DiscreteLaplaceLoss | None:
    """Geometric noise with steps of ε, moved by `size` of them; None where they are too many, small or large."""
    if size > LISTED or not NARROW < size * eps < WIDE:
        return None
    return DiscreteLaplaceLoss(1 / (eps * (1 + 4 * ULP)), size, relation=relation)


@dataclass(frozen=True)
class StaircaseLoss(SignedLoss):
    """Staircase noise: steps of width γ and 1 − γ times the sensitivity, each lower by e^{−ε}.

    A shift by the sensitivity turns heights into neighbours' heights, so L is ±ε, or 0 where both agree: a fraction
    |1 − 2γ| of one period, at height a = (1 − b)/(2(γ + b(1−γ))), b = e^{−ε} (lowered by b when γ < ½).

    Theorem: the staircase mechanism is ε-DP, and optimal for expected error [Geng & Viswanath 2016, Thm 1]
    """

    eps: float
    gamma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))
        object.__setattr__(self, "gamma", checks.probability("gamma", self.gamma))

    def weight(self) -> float:
        return (1 - self.silent()) / (1 + math.exp(-self.eps))

    def silent(self) -> float:
        b = math.exp(-self.eps)
        if self.gamma == 0:
            return -math.expm1(-self.eps) / 2  # a·b: the only step there is
        height = -math.expm1(-self.eps) / (2 * (self.gamma + b * (1 - self.gamma)))
        return abs(1 - 2 * self.gamma) * height * (b if self.gamma < 0.5 else 1.0)


def signed_moment(eps: float, weight: float, silent: float, leak: float, s: float) -> Bound:
    """log of M = 1 − leak + w(1 − e^{−(s+1)ε})(e^{sε} − 1), or of a sum of positive terms where that cancels."""
    if s > 0 and leak > 0:
        return Bound(math.inf, math.inf, "closed form")
    if eps * abs(s) > 1 and (s < 0 or eps * s > 500):
        value = logsumexp(np.array([log(weight) + s * eps, log(weight) - (s + 1) * eps, log(silent)]))
        error = ULP * (64 + 8 * (abs(s) + 1) * eps)
        return widen(value, error, "closed form") if value > -math.inf else Bound(value, value, "closed form")
    excess = weight * -math.expm1(-(s + 1) * eps) * math.expm1(s * eps) - leak
    if excess <= -1:
        return Bound(-math.inf, -math.inf, "closed form")
    return widen(math.log1p(excess), ULP * 64 * abs(excess) / (1 + excess), "closed form")


def coin_moment(eps: float, s: float) -> Bound:
    """The log-moment of binary randomized response."""
    return signed_moment(eps, 1 / (1 + math.exp(-eps)), 0.0, 0.0, s)
