"""Rényi moments of a loss, from its law on a lattice: one law gives all orders, from both sides.

With H_α the hockey-stick divergence and any c ≤ 1, every order s > −1 has
    E_P[e^{sL}] = 1 + s(s+1)·I,   KL = I at s = 0,   I = ∫₀^∞ α^{s−1}·(H_α − (1 − α)₊) dα.
An atom of P-mass m at l ≥ log c contributes m·φ(l) to the part of I from c on, with u = l − log c and
    φ(l) = ∫_c^{e^l} α^{s−1}(1 − αe^{−l}) dα = c^s·(e^{su} − 1 + s(e^{−u} − 1))/(s(s+1)),
and (1 − α)₊ takes φ(0) away. Upper side: the law's H lies above the true one; what it holds at +∞ counts up to its last
point, and moments of higher orders bound the rest. Below c, H_α − 1 + α over α does not fall. Lower side: the law is
dominated by the truth plus a Gaussian with 2τ (docs/theorems/lattice.md), whose log-moment is s(s+1)τ.

Theorem: f-divergences are mixtures of hockey-stick divergences [Sason & Verdú 2016, Thm 11]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.loss.bound import Bound
from sfumato.loss.compose.discretise import Discrete
from sfumato.loss.numeric import ULP, Floats, exp, log_peak

METHOD = "lattice"
GAINS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # orders above s whose moments bound the tail


@dataclass(frozen=True, eq=False)
class LatticeMoments:
    """All moments of one loss: its law, and a bound of its log-moments (for orders s > 0) where the law ends."""

    law: Discrete
    ceiling: Callable[[float], float]

    def log_moment(self, s: float) -> Bound:
        """log E_P[e^{sL}] for s > −1."""
        if s == 0:
            return Bound(0.0, 0.0, METHOD)
        low, high = self.integral(s)
        c, slip = s * (s + 1), 2 * (abs(s) + 1) * self.law.slip
        sides = [log_one_plus(c * low) - c * self.tau, log_one_plus(c * high)]
        most = self.ceiling(s) if s > 0 else math.inf
        return Bound(min(sides) - slip, min(max(sides) + slip, most), METHOD)

    def mean(self) -> Bound:
        """E_P[L]."""
        low, high = self.integral(0.0)
        slip = 2 * self.law.slip
        return Bound(max(low - self.tau - slip, 0.0), high + slip, METHOD)

    @property
    def tau(self) -> float:
        """Half the variance of the Gaussian that covers what was split."""
        return self.law.splits.squares * math.pi / 16 * (1 + 8 * ULP)

    @cached_property
    def heights(self) -> Floats:
        """u of every atom."""
        return self.law.h * np.arange(len(self.law.masses), dtype=np.float64)

    def integral(self, s: float) -> tuple[float, float]:
        """I from below and above."""
        law, first = self.law, float(self.law.losses[0])
        last = first + float(self.heights[-1])
        if s * (last - min(first, 0.0)) > 600 or first > 0:
            return 0.0, math.inf
        weights, unit = kernel(self.heights, s), exp(s * first)
        zero = float(kernel(np.array([-first]), s)[0])
        noise = law.noise if law.noise is not None else np.zeros_like(law.masses)
        all_, unsure = float(law.masses @ weights), float(noise @ weights)
        rounding = (len(weights) + 256) * ULP * (all_ + zero)
        low = exp(-law.excess) * (all_ - unsure - law.lifted * zero) - zero - rounding
        width = last - first
        certain = law.infinite * (math.expm1(s * width) / s if s else width)
        high = all_ - zero + certain + self.before(first) / (s + 1) + rounding
        return max(low, 0.0) * unit, (max(high, 0.0) * unit + self.beyond(last, s)) * (1 + 16 * ULP)

    def before(self, first: float) -> float:
        """H_α − 1 + α at c, from above: what the law holds there, which it lifted."""
        masses, c = self.law.masses, math.exp(first)
        total, other = float(masses.sum()) + self.law.infinite, float(masses @ np.exp(-self.heights))
        return max(total - other - 1 + c, 0.0) + (len(masses) + 64) * ULP * (total + other + 1)

    def beyond(self, last: float, s: float) -> float:
        """∫ of H over α > e^last: nothing if the law has no mass at +∞, else by Chernoff's bound (divergences.py)."""
        if self.law.infinite == 0:
            return 0.0
        powers = [
            self.ceiling(s + gain) + log_peak(s + gain) - gain * last - math.log(gain) for gain in GAINS if s + gain > 0
        ]
        return exp(min(powers))


def kernel(u: Floats, s: float) -> Floats:
    """φ(l)/c^s."""
    found = u + np.expm1(-u) if s == 0 else (np.expm1(s * u) + s * np.expm1(-u)) / (s * (s + 1))
    return np.maximum(found, 0.0)


def log_one_plus(x: float) -> float:
    """log(1 + x), −∞ from −1 down."""
    return math.log1p(x) if x > -1 else -math.inf
