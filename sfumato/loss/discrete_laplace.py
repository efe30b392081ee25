"""The discrete Laplace (two-sided geometric) loss."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.loss.base import TOLERANCE, Symmetric
from sfumato.loss.bound import Bound, widened
from sfumato.loss.numeric import ULP, Enclosure, Floats, enclose, floats, logsumexp
from sfumato.loss.transforms.edges import EdgedTransform


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
        j = np.floor((eps * self.scale + d) / 2) + 1  # first loss value above eps
        beyond, last = eps > d * r * (1 + 8 * ULP), j >= d
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
        inner = np.arange(1, d, dtype=np.float64)
        log_p = np.concatenate([[-d * r], -(d - inner) * r + math.log(-math.expm1(-r)), [0.0]]) - math.log1p(
            math.exp(-r)
        )
        losses = floats(2 * np.arange(d + 1) - d) * r
        value = logsumexp(log_p + s * losses)
        return widened(value, ULP * (64 + 8 * (abs(s) + 1) * d * r), "closed form")

    def mean(self) -> Bound:
        """Sum over the d + 1 loss values of P·L, in pairs ±L: P[L] − P[−L] = P[L](1 − e^{−L})."""
        d, r = self.sensitivity, 1 / self.scale
        j = np.arange(d // 2 + 1, d + 1, dtype=np.float64)
        losses = (2 * j - d) * r
        p = np.where(j == d, 1.0, np.exp(-(d - j) * r) * -math.expm1(-r)) / (1 + math.exp(-r))
        value = float((p * -np.expm1(-losses) * losses).sum())
        return widened(value, ULP * (32 + d) * value, "closed form")

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
