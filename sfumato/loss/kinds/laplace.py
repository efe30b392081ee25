"""The Laplace loss."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.loss.base import TOLERANCE, Symmetric
from sfumato.loss.bound import Bound, widen
from sfumato.loss.compose.transforms.bounded import LARGEST, BoundedTransform
from sfumato.loss.compose.transforms.edges import EdgedTransform
from sfumato.loss.numeric import ULP, Enclosure, Floats, bend, logsumexp, relative
from sfumato.rounding import product_up


@dataclass(frozen=True)
class LaplaceLoss(Symmetric):
    """Laplace noise of scale sensitivity/ε: L in [−ε, ε], atoms ½ at ε and ½e^{−ε} at −ε, density ¼e^{(t−ε)/2} between.

    δ(t) = 1 − e^{(t−ε)/2} for 0 ≤ t ≤ ε.

    Theorem: profile of the Laplace mechanism [Balle, Barthe & Gaboardi 2020, Thm 3]
    Theorem: Rényi curve of the Laplace mechanism [Mironov 2017, Prop. 6]
    """

    eps: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return relative(-np.expm1(np.minimum(eps - self.eps, 0.0) / 2), 8)

    def supremum(self) -> tuple[float, float]:
        return self.eps, self.eps

    def leak(self) -> tuple[float, float]:
        return 0.0, 0.0

    def log_moment(self, s: float) -> Bound:
        """M(s) = ½e^{sε} + ½e^{−(s+1)ε} + ¼∫e^{st+(t−ε)/2}dt = 1 + ∫ of the excess, written so that small ε keeps
        digits.

        With c = s + ½: M − 1 = e^{−ε/2}·[cosh(cε) − cosh(ε/2) + ½·(sinh(cε)/c − 2 sinh(ε/2))], and cosh x − cosh y is
        2 sinh((x+y)/2) sinh((x−y)/2).
        """
        c, eps = s + 0.5, self.eps
        if abs(c) * eps > 30 or (s < 0 and eps > 30):  # no cancellation any more; stay in logarithms
            parts = np.array([s * eps, -(s + 1) * eps, log_sinhc(c * eps) - eps / 2 + math.log(eps)])
            value = logsumexp(parts + math.log(0.5))
            return widen(value, ULP * (64 + 8 * (abs(s) + 1) * eps), "closed form")
        ratio = math.sinh(c * eps) / c if abs(c) > 1e-9 else eps
        first = 2 * math.sinh((s + 1) * eps / 2) * math.sinh(s * eps / 2)
        second = ratio / 2 - math.sinh(eps / 2)
        excess = math.exp(-eps / 2) * (first + second)
        error = ULP * 16 * math.exp(-eps / 2) * (abs(first) + abs(ratio) + math.sinh(eps / 2))
        floor = math.ulp(1.0) - 1  # M > 0 always: a lower bound below that would have no logarithm
        return Bound(math.log1p(max(excess - error, floor)), math.log1p(excess + error), "closed form")

    def transform(self) -> EdgedTransform:
        return EdgedTransform.of(self.eps, 0.5, 0.5 * math.exp(-self.eps), 0.0, 0.25)

    def bounded_transform(self) -> BoundedTransform | None:
        """The loss under Q: half at −ε, half of e^{−ε} at ε, and a density between, to be sampled."""
        if not 0 < self.eps <= LARGEST:
            return None
        return BoundedTransform(1.0, self.eps, 0.5 * math.exp(-self.eps), 0.5, 0.25)

    def mean(self) -> Bound:
        """ε − 1 + e^{−ε}."""
        return widen(*bend(self.eps), "closed form")

    def group(self, size: int) -> "LaplaceLoss":
        return LaplaceLoss(product_up(checks.whole("size", size, 0), self.eps), relation=self.relation)


def log_sinhc(x: float) -> float:
    """log(sinh(x)/x)."""
    x = abs(x)
    if x > 20:
        return x - math.log(2 * x)
    return math.log(math.sinh(x) / x) if x > 1e-9 else 0.0
