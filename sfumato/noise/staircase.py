"""Staircase noise rounded to the integers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import expm1, lcm

import numpy as np

from sfumato.noise.balls import Ball, ball, precision, ratio, rational
from sfumato.noise.density import Density, Rounded
from sfumato.noise.monotone import LEAST, MOST, NEVER, Floats

LEAST_EPS, MOST_EPS = Fraction(1, 10**9), Fraction(10**3)
MOST_BINS = 4096
LOW_STAIRS = Fraction(1, 200)  # ε below which bins are wider than stairs


@dataclass(frozen=True)
class StaircaseDensity(Density):
    """e^{−jε} on [jΔ, (j+γ)Δ) and e^{−(j+1)ε} on [(j+γ)Δ, (j+1)Δ), j ≥ 0, and the same for −x.

    f(x + Δ) = e^{−ε}f(x), so it halves over ⌈ln 2/ε⌉ periods wherever one starts; it is not log-concave.
    Theorem: Staircase noise is ε-DP for sensitivity Δ, and optimal for some γ [Geng & Viswanath 2016, Thm 1]
    """

    eps: Fraction | float
    sensitivity: Fraction | float
    gamma: Fraction | float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", rational("eps", self.eps, LEAST_EPS, MOST_EPS))
        object.__setattr__(self, "sensitivity", rational("sensitivity", self.sensitivity, LEAST, 4 * MOST))
        object.__setattr__(self, "gamma", rational("gamma", self.gamma, 0, 1))
        rational("sensitivity/eps", Fraction(self.sensitivity) / Fraction(self.eps), 0, 4 * MOST)

    def times(self, factor: int) -> "StaircaseDensity":
        return StaircaseDensity(self.eps, Fraction(self.sensitivity) * factor, self.gamma)

    @cached_property
    def spread(self) -> Fraction:
        """A scale for bins such that one draw in 16 to 32 needs a ball, and no bin has two breaks.

        With B cells in a bin, breaks take B of Δ(γ + 1/(e^ε − 1)). If ε is so small that bins no wider than stairs
        would be too many, bins follow the decay and have several breaks (see `bend`).
        """
        eps, period = Fraction(self.eps), Fraction(self.sensitivity)
        if eps < LOW_STAIRS:
            return period / eps
        share = (Fraction(self.gamma) or 1) + Fraction(1 / expm1(float(eps) if eps < 100 else 100.0))
        return period * min(Fraction(60), 4 * share)

    @property
    def reach(self) -> float:
        decay = Fraction(self.sensitivity) / Fraction(self.eps)
        return float(min(12 * decay / self.spread + 1, Fraction(MOST_BINS, 128)))

    def bend(self, edge: Floats, width: int) -> Floats | None:
        """Low stairs stay within e^{±ε/2} of a curve e^{c − εx/Δ}, whose bend is known (Lemma 4, low stairs)."""
        eps, period = float(self.eps), float(self.sensitivity)
        if not self.eps < LOW_STAIRS:
            return None
        return np.full(edge.shape, 8.2 * eps + 4 * eps / period + 1.01 * (eps * width / period) ** 2)

    def halving(self) -> Fraction:
        periods = int(Fraction(7, 10) / Fraction(self.eps)) + 1  # 0.7 > ln 2
        return periods * Fraction(self.sensitivity)

    @cached_property
    def units(self) -> tuple[int, int, int]:
        """(Δ, γΔ, ½) as integers, in a common unit."""
        period = Fraction(self.sensitivity)
        step = period * Fraction(self.gamma)
        one = lcm(2, period.denominator, step.denominator)
        return int(period * one), int(step * one), one // 2

    def mass(self, a: Fraction, b: Fraction, prec: int) -> Ball:
        period, step, half = self.units
        finer = lcm(a.denominator, b.denominator)
        one = 2 * half * finer
        return self._mass(int(a * one), int(b * one), period * finer, step * finer, one, prec)

    def beyond(self, x: Fraction, prec: int) -> Ball:
        """e^{−jε}·((γΔ − y)₊ + b(Δ − max(y, γΔ)) + bT)/T for x = jΔ + y, y < Δ: the period's end, and the rest.

        b = e^{−ε} and T = Δ(γ + b(1 − γ))/(1 − b), the mass of a side.
        """
        period, eps = Fraction(self.sensitivity), Fraction(self.eps)
        step = period * Fraction(self.gamma)
        j = x // period
        y = x - j * period
        with precision(prec + 16):
            b = ball(-eps).exp()
            total = (ball(step) + b * ball(period - step)) / -ball(-eps).expm1()
            left = ball(max(step - y, Fraction(0))) + b * ball(period - max(y, step)) + b * total
            return ball(-j * eps).exp() * left / total

    def cell(self, twice: int, prec: int) -> Ball:
        period, step, half = self.units
        if not twice:
            return 2 * self._mass(0, half, period, step, 2 * half, prec)
        return self._mass((twice - 1) * half, (twice + 1) * half, period, step, 2 * half, prec)

    def flat(self, j: int, width: int, ahead: int) -> tuple[int, int]:
        """Cells that end before the only break in reach of bin j, and cells that start after it.

        Breaks are at (i + γ)Δ: at iΔ nothing changes.
        """
        period, step, half = self.units
        start = max(0, (2 * j * width + ahead) * half)
        end = (2 * (j + 1) * width + ahead + 2) * half
        first = step + ((start - step) // period + 1) * period  # the next one after `start`
        if first + period < end:
            return NEVER
        upper, lower = (first // half - 2 - ahead) // 2, (-(-first // half) - ahead + 1) // 2
        return min(upper, NEVER[1]), min(lower, NEVER[1])

    def _mass(self, a: int, b: int, period: int, step: int, one: int, prec: int) -> Ball:
        """Σ e^{−jε}·(length on the upper stair of period j + e^{−ε}·length on the lower one), lengths in 1/one."""
        (first, a), (last, b) = divmod(a, period), divmod(b, period)
        above, below = Fraction(self.eps).as_integer_ratio()
        if first == last:
            lengths = [(first, min(b, step) - min(a, step)), (first + 1, max(b, step) - max(a, step))]
        else:
            lengths = [(first, step - min(a, step)), (first + 1, period - max(a, step))]
            lengths += [(last, min(b, step)), (last + 1, max(b, step) - step)]
        with precision(prec + 16):
            total = ratio(0, 1)
            for j, length in lengths:
                if length:
                    total += ratio(-j * above, below).exp() * ratio(length, one)
            if last > first + 1:  # whole periods between: a geometric sum
                full = ratio(step, one) + ratio(-above, below).exp() * ratio(period - step, one)
                between = ratio(-(last - first - 1) * above, below).expm1() / ratio(-above, below).expm1()
                total += full * ratio(-(first + 1) * above, below).exp() * between
            return total


def rounded_staircase(
    eps: Fraction | float, sensitivity: Fraction | float, gamma: Fraction | float | None = None
) -> Rounded:
    """Staircase noise, rounded; `gamma` is by default the double next to 1/(1 + e^{ε/2}), of least expected |noise|.

    Any γ is equally private, so this one needs no certificate.
    """
    exact = rational("eps", eps, LEAST_EPS, MOST_EPS)
    with precision(64):
        best = 1 / (1 + (ratio(*(exact / 2).as_integer_ratio())).exp())
    chosen = Fraction(float(best)) if gamma is None else gamma
    return Rounded(StaircaseDensity(exact, rational("sensitivity", sensitivity, LEAST, MOST), chosen))
