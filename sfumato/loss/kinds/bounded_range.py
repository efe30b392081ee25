"""The loss of the exponential mechanism."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.loss.base import TOLERANCE, Symmetric
from sfumato.loss.bound import Bound
from sfumato.loss.compose.transforms.bounded import LARGEST, BoundedTransform
from sfumato.loss.kinds.coins import coin_moment
from sfumato.loss.numeric import ULP, Enclosure, Floats, enclose
from sfumato.loss.views.divergences import log_moment, mean
from sfumato.rounding import product_up


@dataclass(frozen=True)
class BoundedRangeLoss(Symmetric):
    """Losses that range over an interval of length ε, wherever it lies: the exponential mechanism
    e^{ε·u/(2·sensitivity)}.

    The worst pairs have two outcomes with losses t and t − ε; over all t they trace the trade-off curve
    f(x) = (1−x)/(1 + (e^ε−1)x) of a logistic law shifted by ε, so that pair dominates them all. Its conjugate is
    δ(t) = (1 − e^{−(ε−t)/2})²/(1 − e^{−ε}) for 0 ≤ t ≤ ε.
    Its GDP price is that of pure ε/2 (a quarter of the μ² of ε-DP).

    Theorem: bounded range, and its worst two-point pairs [Durfee & Rogers 2019; Dong, Durfee & Rogers 2020, Lemma 3.2]
    Theorem: bounded range ε is ε²/8-zCDP [Cesar & Rogers 2021, Thm 2]
    """

    eps: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        left = np.maximum(self.eps - eps, 0.0)
        if self.eps == 0:
            return Enclosure(0 * eps, 0 * eps)
        value = np.expm1(-left / 2) ** 2 / -math.expm1(-self.eps)
        return enclose(value, value * 24 * ULP)

    def bounded_transform(self) -> BoundedTransform | None:
        """The pair's loss, to be sampled: P[L > t] = δ(t) − δ′(t) = (1 − e^{(t−ε)/2})/(1 − e^{−ε}), so that its density
        under Q is e^{−(t+ε)/2}/(2(1 − e^{−ε})) on [−ε, ε], without atoms."""
        if not 0 < self.eps <= LARGEST:
            return None
        return BoundedTransform(1.0, self.eps, 0.0, 0.0, -0.5 / math.expm1(-self.eps))

    @property
    def one_pair(self) -> bool:
        return False

    def supremum(self) -> tuple[float, float]:
        return self.eps, self.eps

    def leak(self) -> tuple[float, float]:
        return 0.0, 0.0

    def rho_ceiling(self) -> float:
        return self.eps**2 / 8 * (1 + 4 * ULP)

    def log_moment(self, s: float) -> Bound:
        """At most the pair's moment and what ε²/8-zCDP says; at least that of randomized response at ε/2."""
        pair, centred = log_moment(self, s), coin_moment(self.eps / 2, s)
        if s <= 0:
            return Bound(min(pair.lower, centred.upper), centred.upper, pair.method)
        return Bound(centred.lower, min(pair.upper, s * (s + 1) * self.eps**2 / 8 * (1 + 8 * ULP)), "bounded range")

    def mean(self) -> Bound:
        """Between (ε/2)tanh(ε/4) and ε²/8."""
        low = self.eps / 2 * math.tanh(self.eps / 4) * (1 - 16 * ULP)
        return Bound(low, min(mean(self).upper, self.eps**2 / 8 * (1 + 8 * ULP)), "bounded range")

    def group(self, size: int) -> "BoundedRangeLoss":
        """kε for k people, exactly.

        Proof. Along a chain P₀, …, P_k the loss log P_k/P₀ is the sum of the losses of the k steps at the same outcome:
        if each ranges over an interval of length ε, their sum ranges over one of length kε. And every pair with range
        kε ends such a chain: P_j ∝ P₀^{1−j/k}·P_k^{j/k}, where each step has 1/k of the loss, and a constant.
        """
        return BoundedRangeLoss(product_up(checks.whole("size", size, 0), self.eps), relation=self.relation)


def range_of(mu: float) -> float:
    """The widest range that costs at most μ on a Gaussian ledger: η = 4·artanh(2Φ(μ/2) − 1), rounded down.

    Theorem: bounded range η is μ-GDP with μ = 2Φ⁻¹(e^{η/2}/(1 + e^{η/2})), as pure η/2 is [docs/theorems/price.md]

    >>> round(range_of(0.5**0.5), 5)
    1.1348
    """
    most = checks.positive("mu", mu)
    return 4 * math.atanh(math.erf(min(most, 8.0) / math.sqrt(8))) * (1 - 1e-10)  # beyond 8 the range of 8
