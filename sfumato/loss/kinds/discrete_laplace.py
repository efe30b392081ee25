"""The discrete Laplace (two-sided geometric) loss."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.loss.base import TOLERANCE, Symmetric
from sfumato.loss.bound import Bound, widen
from sfumato.loss.compose.transforms.edges import EdgedTransform
from sfumato.loss.numeric import ULP, Enclosure, Floats, bend, enclose, logsumexp


@dataclass(frozen=True)
class DiscreteLaplaceLoss(Symmetric):
    """Integer noise with P[x] ∝ e^{−|x|/scale}, integer sensitivity d: L = (|x| − |x − d|)/scale.

    L = (2j − d)/scale for j = 0…d: ends j = 0, d carry the tails, each j between is one integer. With r = e^{−1/scale}
    P[L ≥ (2j−d)/scale] = 1 − r^{d+1−j}/(1+r) and Q[…] = r^j/(1+r) for j ≥ 1.

    Theorem: the geometric mechanism is sensitivity/scale-DP [Ghosh, Roughgarden & Sundararajan 2012]
    """

    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scale", checks.number("scale", self.scale, 1e-3, 1e100, allowed="a number ≥ 0.001"))
        object.__setattr__(self, "sensitivity", checks.whole("sensitivity", self.sensitivity, 0))

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        d, r = self.sensitivity, 1 / self.scale
        beyond = eps > d * r * (1 + 8 * ULP)
        eps = np.minimum(eps, d * r * (1 + 8 * ULP))
        j = np.floor((eps * self.scale + d) / 2) + 1  # first loss value above eps
        last = j >= d
        j = np.minimum(j, d)
        tail_p = 1 - np.exp(-(d + 1 - j) * r) / (1 + math.exp(-r))
        tail_q = np.exp(np.minimum(eps - j * r, 1.0)) / (1 + math.exp(-r))
        # above the last but one loss value only the top atom counts, and nothing cancels but eps − d·r itself
        top = -np.expm1(np.minimum(eps - d * r, 0.0)) / (1 + math.exp(-r))
        value = np.where(last, top, np.maximum(tail_p - tail_q, 0.0))
        slip = np.where(last, 16 * value + 4 * (eps + d * r), (tail_p + tail_q) * (16 + 4 * (eps + j * r)))
        return enclose(np.where(beyond, 0.0, value), np.where(beyond, 0.0, slip * ULP))

    def supremum(self) -> tuple[float, float]:
        top = math.nextafter(self.sensitivity / self.scale, math.inf) if self.sensitivity else 0.0
        return top, top

    def leak(self) -> tuple[float, float]:
        return 0.0, 0.0

    def log_moment(self, s: float) -> Bound:
        d, r = self.sensitivity, 1 / self.scale
        if d == 0:
            return Bound(0.0, 0.0, "closed form")
        # the d − 1 masses between the ends form a geometric series
        inner = math.log(-math.expm1(-r)) - (1 + s) * d * r + log_powers((1 + 2 * s) * r, d - 1)
        value = logsumexp(np.array([-(1 + s) * d * r, inner, s * d * r])) - math.log1p(math.exp(-r))
        return widen(value, ULP * (64 + 16 * (abs(s) + 1) * d * r), "closed form")

    def mean(self) -> Bound:
        """r·(E|x + d| − E|x|) = (dr − 1 + e^{−dr}) + (1 − r/sinh r)(1 − e^{−dr}) with r = 1/scale: what Laplace noise
        tells, and a little more.
        """
        d, r = self.sensitivity, 1 / self.scale
        if d == 0:
            return Bound(0.0, 0.0, "closed form")
        (smooth, slip), x = bend(d * r), min(r, 700.0)
        step = x * x / 6 * (1 - 7 * x * x / 60) if x < 1e-3 else 1 - x / math.sinh(x)
        rough = -math.expm1(-d * r) * step
        error = slip + 8 * ULP * (smooth + rough) + (x**6 / 400 if x < 1e-3 else 4 * ULP)
        return widen(smooth + rough, error, "closed form")

    def transform(self) -> EdgedTransform | None:
        """A step of one is a coin: the noise either stays on its side or not."""
        if self.sensitivity != 1:
            return None
        fall = math.exp(-1 / self.scale)
        return EdgedTransform.of(1 / self.scale, 1 / (1 + fall), fall / (1 + fall), 0.0)

    def atoms(self) -> tuple[float, float] | None:
        return (2 / self.scale, self.sensitivity / self.scale) if self.sensitivity else None

    def group(self, size: int) -> "DiscreteLaplaceLoss":
        size = checks.whole("size", size, 0)
        return DiscreteLaplaceLoss(self.scale, size * self.sensitivity, relation=self.relation)


def log_powers(c: float, n: int) -> float:
    """log Σ e^{cj} over j = 1…n."""
    if n == 0 or c == 0:
        return math.log(n) if n else -math.inf
    top = c * n if c > 0 else c
    return top + math.log(math.expm1(-abs(c) * n) / math.expm1(-abs(c)))
