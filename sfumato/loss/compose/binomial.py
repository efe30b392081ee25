"""Equal randomized responses, composed: a binomial law, exactly."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.loss.base import TOLERANCE
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Enclosure, Floats

NEGLIGIBLE = 1e-30  # of the largest term: what is less is not summed


@dataclass(frozen=True)
class Binomial:
    """k-fold randomized response with ε₀, of which `leak` gives everything away.

    L = (2X − k)ε₀ with X ~ Bin(k, e^ε₀/(1+e^ε₀)) under P;
    δ(t) = leak + (1 − leak)·Σ_{(2i−k)ε₀ > t} P[X = i](1 − e^{t−(2i−k)ε₀}): positive terms only.

    Theorem: optimal composition of equal (ε, δ) [Kairouz, Oh & Viswanath 2015, Thm 3.3]
    """

    eps: float
    count: int
    leak: float

    method = "closed form"

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        sides = np.array([self.delta(float(t)) for t in eps.ravel()]).reshape(*eps.shape, 2)
        return Enclosure(sides[..., 0], sides[..., 1])

    def delta(self, t: float) -> tuple[float, float]:
        """δ(t) from both sides."""
        sum_, error = self.finite(t)
        value = self.leak + (1 - self.leak) * sum_
        error += ULP * (400 + 16 * math.log(self.count + 2) + 8 * min(t, 1e3)) * value
        return max(value - error, 0.0), min(value + error, 1.0)

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        """Sharp everywhere."""
        return self.forward

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """Between two atoms δ = A − e^t·B with A = P[L > t] and B = Q[L > t]: solve there, then certify both sides."""
        wanted = (goal - self.leak) / (1 - self.leak) if self.leak < 1 else 0.0
        if wanted <= 0 or self.eps == 0:
            return None
        _, losses, pmf = self.law
        first = self.first_below(wanted)
        start = float(losses[first])
        above = float(pmf[first:].sum())
        below = float(pmf[first:] @ np.exp(start - losses[first:]))  # B·e^start: e^loss itself may overflow
        fall = above - wanted  # the slope, −dδ/dt = e^t·B
        t = start + math.log(fall / below) if fall > 0 and below > 0 else -1.0
        if t <= 0:
            return Bound(0.0, 0.0, self.method) if self.delta(0.0)[1] <= goal else None
        # δ is convex in e^t: to the left it rises at least as fast as at t, to the right it falls as fast until an atom
        lower, upper = self.delta(t)
        step = 1.01 * max(upper - goal, goal - lower) / (fall * (1 - self.leak)) + 4 * ULP * t
        certain = step < 1e-3 and t > step and t + step < losses[first] * (1 - 8 * ULP)
        return Bound(t - step, t + step, self.method) if certain else None

    def first_below(self, wanted: float) -> int:
        """The first atom at which the finite part of δ is about ≤ wanted: it falls, to 0 at the last one."""
        losses = self.law[1]
        low, high = int(np.searchsorted(losses, 0.0, side="right")) - 1, len(losses) - 1
        low = max(low, -1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.finite(float(losses[middle]))[0] <= wanted else (middle, high)
        return high

    @cached_property
    def law(self) -> tuple[Floats, Floats, Floats]:
        """i, the loss (2i − k)ε₀ and P[X = i] around the mode.

        P comes from the ratios e^ε₀(k−i)/(i+1) of neighbours, made to sum to one.

        What lies 10 standard deviations and 60 below is less than e^{−50}, nothing beside a rounding; what lies 40 and
        60 above, on the side that small δ are read from, is less than e^{−800}.

        Theorem: Bernstein's inequality [Bernstein 1924]; P[X ≥ kp + x] ≤ e^{−x²/2kp(1−p)} for p ≥ ½ [Okamoto 1959]
        """
        k, mode = self.count, self.mode
        down, up = math.ceil(10 * self.spread + 60), math.ceil(40 * self.spread + 60)
        i = np.arange(max(mode - down, 0), min(k, mode + up) + 1, dtype=np.float64)
        falls = math.exp(-self.eps) * i[1:] / (k - i[:-1])  # P[X = i−1]/P[X = i]
        at = mode - int(i[0])
        pmf = np.ones(i.size)
        falls[:at][::-1].cumprod(out=pmf[:at][::-1])
        (1 / falls[at:]).cumprod(out=pmf[at + 1 :])
        pmf /= pmf.sum()
        return i, (2 * i - k) * self.eps, pmf

    @cached_property
    def mode(self) -> int:
        """The most likely X, to within one."""
        return min(self.count, math.floor((self.count + 1) / (1 + math.exp(-self.eps))))

    @cached_property
    def spread(self) -> float:
        """The standard deviation of X."""
        small = math.exp(-self.eps)
        return math.sqrt(self.count * small) / (1 + small)

    def finite(self, t: float) -> tuple[float, float]:
        """The sum for the part that does not leak, from its first term on until terms no longer matter, and its error.

        n ratios away from the mode, P[X = i] is off by 3n ulps, and by as much as that on average from the sum. A gap
        g = (2i−k)ε₀ − t is off by 4 ulps of |2i−k|ε₀ + t ≤ g + 2t + 2ε₀, and weighs e^−g, where g·e^−g ≤ 0.37.
        """
        k, e = self.count, self.eps
        if e == 0 or t > k * e * (1 + 8 * ULP):
            return 0.0, 0.0
        i, losses, pmf = self.law
        # one more at the left: rounding may have put it on the wrong side of t
        first = max(math.floor((t / e + k) / 2) - int(i[0]), 0)
        peak = min(max(first, self.mode - int(i[0])), len(pmf) - 1)  # from here on P falls
        least = NEGLIGIBLE * float(pmf[peak])
        last = peak + int(np.searchsorted(-pmf[peak:], -least, side="right"))
        dropped = (len(pmf) - last) * least
        i, pmf = i[first:last], pmf[first:last]
        gap = np.maximum(losses[first:last] - t, 0.0)
        terms = -pmf * np.expm1(-gap)
        mass, total = float(pmf.sum()), float(terms.sum())
        error = 4 * (float(terms @ np.abs(i - self.mode)) + (self.spread + 2) * total)
        error += 4.01 * (0.37 * mass + 2 * (t + e) * (mass - total + 1e-13 * mass))
        return total, error * ULP + dropped + 1e-300
