"""Noise on several numbers that one person moves at once: one law for all of them, on the integers."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, ball, precision, rational
from sfumato.noise.coin import uniform_below
from sfumato.noise.discrete_laplace import DiscreteLaplace
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.joint_level import Level
from sfumato.noise.sampler import BLOCK, LARGEST, MOST_DRAWS, Sampler, saturating_sum
from sfumato.noise.table import USUAL, Integers, Words
from sfumato.noise.uniform import below_each

LEAST_EPS, MOST_EPS = Fraction(1, 10**15), Fraction(10**4)
MOST_SIZE = 2**60
FINE, MOST_LEVELS = 4, 256  # levels to a unit of the norm times ε; at most
FAR = 1 << 61


@dataclass(frozen=True)
class JointLaplace:
    """P(z) ∝ e^{−ε·N(z)} for whole z₁ … z_d, N(z) = Σ wⱼ|zⱼ|/sⱼ + λ·⌈M·maxⱼ |zⱼ|/sⱼ⌉/M, λ = 1 − Σ wⱼ > 0.

    `sizes` are the sⱼ, `favours` the wⱼ (none: all 0): a part with a share of its own has less noise, the others more.
    Theorem: whoever moves every zⱼ by at most sⱼ, all at once, changes no P(z) by more than the factor e^ε
      [docs/theorems/joint.md, Theorem 1; a K-norm mechanism, Hardt & Talwar 2010]
    Theorem: given a level R, with P(R) as in `Level` times that of all |zⱼ| ≤ R·sⱼ/M, the zⱼ are independent: uniform,
      or discrete Laplace of scale sⱼ/(wⱼε), in that box [docs/theorems/joint.md, Theorem 3]
    """

    eps: Fraction | float
    sizes: tuple[int, ...]
    favours: tuple[Fraction | float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", rational("eps", self.eps, LEAST_EPS, MOST_EPS))
        sizes = tuple(whole("size", s, 1, MOST_SIZE) for s in self.sizes)
        favours = tuple(rational("favour", w, 0, 1) for w in self.favours or (0,) * len(sizes))
        if len(favours) != len(sizes) or not sizes or sum(favours) >= 1:
            raise InvalidParameter(
                "each size has a share of its own, and together they leave some.\n"
                f"  found:  {len(sizes)} sizes, {len(favours)} shares\n  do:     give shares that sum to less than 1"
            )
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "favours", favours)
        for slope in self.slopes.values():
            DiscreteLaplace(1 / slope)  # refuses what cannot be drawn, before anything is

    # ---- what it is made of -----------------------------------------------------------------------------------------

    @cached_property
    def common(self) -> Fraction:
        """λ·ε."""
        return Fraction(self.eps) * (1 - sum((Fraction(w) for w in self.favours), Fraction(0)))

    @cached_property
    def levels(self) -> int:
        """M. Any M is private; with four to 1/(λε) noise is within a percent of that of the norm itself."""
        return min(max(1, ceil(FINE * self.common)), MOST_LEVELS)

    @cached_property
    def level(self) -> Level:
        free = tuple(s for s, w in zip(self.sizes, self.favours, strict=True) if not w)
        return Level(self.common / self.levels, free, self.levels)

    @cached_property
    def slopes(self) -> dict[int, Fraction]:
        """wⱼε/sⱼ of each favoured part."""
        each = enumerate(zip(self.sizes, self.favours, strict=True))
        return {j: Fraction(w) * Fraction(self.eps) / s for j, (s, w) in each if w}

    def side(self, j: int, r: int) -> int:
        """The largest |zⱼ| in the box of level r."""
        return r * self.sizes[j] // self.levels

    def reached(self, j: int, m: int) -> int:
        """The least level whose box holds zⱼ = m."""
        return -(-m * self.levels // self.sizes[j])

    def cost(self, z: Sequence[int]) -> Fraction:
        """ε·N(z): what it costs to move by z, as N is subadditive."""
        own = sum((slope * abs(z[j]) for j, slope in self.slopes.items()), Fraction(0))
        return own + self.common * max(self.reached(j, abs(k)) for j, k in enumerate(z)) / self.levels

    def weight(self, z: Sequence[int], prec: int) -> Ball:
        """e^{−ε·N(z)}."""
        with precision(prec + 16):
            return ball(-self.cost(z)).exp()

    # ---- draws ------------------------------------------------------------------------------------------------------

    def about(self, values: Integers, words: Words = USUAL, source: Source = SYSTEM) -> Integers:
        """v + z for each row v of `values`, independently, saturated at ±(2⁶³ − 1)."""
        total = np.empty_like(values)
        for start in range(0, len(values), BLOCK):
            rows = values[start : start + BLOCK]
            noise, beyond = self.draw_with_beyond(len(rows), words, source)
            total[start : start + BLOCK] = saturating_sum(rows, noise)
            for at, z in beyond.items():
                exact = (int(v) + k for v, k in zip(rows[at], z, strict=True))
                total[start + at] = [max(-LARGEST, min(LARGEST, k)) for k in exact]
        return total

    def draw_with_beyond(
        self, count: int, words: Words = USUAL, source: Source = SYSTEM
    ) -> tuple[Integers, dict[int, list[int]]]:
        """`count` rows, and {row: z} for those that may not fit into 64 bits.

        A level, and each favoured part as if there were no box; again where one is outside. Then the others, uniform in
        the box. Levels so high that numbers might not fit are looked at one by one, as Python integers.
        """
        noise = np.zeros((whole("count", count, 0, MOST_DRAWS), len(self.sizes)), np.int64)
        levels, far = np.zeros(count, np.int64), dict[int, list[int]]()
        radius = Sampler(self.level, words, source)
        own = {j: Sampler(DiscreteLaplace(1 / slope), words, source) for j, slope in self.slopes.items()}
        high, todo = FAR // max(self.sizes), np.arange(count)  # R ≤ high: no side is above 2⁶¹
        while todo.size:
            r, rare = radius.draw_with_beyond(todo.size)
            drawn = {j: sampler.draw_with_beyond(todo.size) for j, sampler in own.items()}
            for at in {*rare, *np.flatnonzero(r > high).tolist()}:
                rare[at] = rare.get(at, int(r[at]))
                r[at] = 0
            inside = np.ones(todo.size, np.bool_)
            for j, (k, beyond) in drawn.items():
                inside &= np.abs(k) <= self._sides(j, r)
                inside[list(beyond)] = False
                noise[todo, j] = k
            levels[todo] = r
            for at, level in rare.items():
                mine = {j: beyond.get(at, int(k[at])) for j, (k, beyond) in drawn.items()}
                inside[at] = all(abs(k) <= self.side(j, level) for j, k in mine.items())
                if inside[at]:
                    far[int(todo[at])] = [mine[j] if j in mine else self._one(j, level, source) for j in self._parts]
            todo = todo[~inside]
        for j in self._parts:
            if j not in own:
                sides = self._sides(j, levels)
                noise[:, j] = below_each(2 * sides + 1, source) - sides
        return noise, far

    @property
    def _parts(self) -> range:
        return range(len(self.sizes))

    def _sides(self, j: int, r: Integers) -> Integers:
        """`side` for arrays. R·s itself might wrap; R = aM + b and s = cM + d give ⌊R·s/M⌋ = as + bc + ⌊bd/M⌋."""
        a, b = np.divmod(r, self.levels)
        c, d = divmod(self.sizes[j], self.levels)
        found: Integers = a * self.sizes[j] + b * c + b * d // self.levels
        return found

    def _one(self, j: int, level: int, source: Source) -> int:
        side = self.side(j, level)
        return uniform_below(2 * side + 1, source) - side
