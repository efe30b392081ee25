"""Joint Laplace noise for several integers that one person moves at once: its law, its draws and its marginal tails."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import pairwise, product
from math import ceil, prod

import numpy as np
from flint import arb

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, ball, below, ceiling, floor, precision, ratio, rational
from sfumato.noise.discrete_laplace import DiscreteLaplace
from sfumato.noise.draw_table import MOST_DRAWS, USUAL, DrawTable, Integers, Law, TableTail, Words
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.monotone import PREC
from sfumato.noise.sampler import BLOCK, LARGEST, Sampler, saturating_sum
from sfumato.noise.uniform import below_each, uniform_below

LEAST_EPS, MOST_EPS = Fraction(1, 10**15), Fraction(10**4)
MOST_SIZE = 2**60
FINE, MOST_LEVELS = 4, 256  # levels to a unit of the norm times ε; at most
FAR = 1 << 61
GUARD = 96  # bits for each favoured part: A and B·rⁿ may nearly agree
Pieces = tuple[tuple[Ball, bool], ...]  # a sum of constants, and of constants times rⁿ


@dataclass(frozen=True)
class Level(Law):
    """P(R) ∝ e^{−rate·R}·Π (2⌊R·sⱼ/M⌋ + 1), R ≥ 0: as many as the points of the box |zⱼ| ≤ R·sⱼ/M.

    Theorem: Theorem 1 holds for its table [docs/theorems/joint.md, Lemma 2]
    """

    rate: Fraction
    sizes: tuple[int, ...]
    levels: int  # M

    def points(self, r: int) -> int:
        """Of the box of level r."""
        return prod(2 * (r * size // self.levels) + 1 for size in self.sizes)

    def weight(self, r: int) -> Ball:
        """At the working precision."""
        return self.fall(r) * self.points(r)

    def curve(self, r: int) -> Ball:
        """Nowhere below the weight, and log-concave: the box as real numbers have it."""
        sides = prod(2 * r * size + self.levels for size in self.sizes)
        return self.fall(r) * ratio(sides, self.levels ** len(self.sizes))

    def fall(self, r: int) -> Ball:
        return ratio(-r * self.rate.numerator, self.rate.denominator).exp()

    def table(self, words: Words) -> DrawTable:
        return _table(self, words)


@lru_cache(maxsize=64)
def _table(law: Level, words: Words) -> DrawTable:
    """Bins of B levels, in which the falling and the rising factor are bounded at their ends, and a tail after K = J·B.

    K·rate ≥ parts + 1, so that the curve falls from K on: its log has the slope −rate + Σ 2s/(2Ks + M) < 0.
    """
    scale, parts = 1 / law.rate, len(law.sizes)
    bits = max(0, int(scale / words.bins).bit_length() - 1)
    width = 1 << bits
    count = max(words.reach or int((14 + 2 * parts) * scale / width) + 1, ceil((parts + 1) * scale / width))
    end, distance = count * width, width
    with precision(PREC):
        while not 2 * law.curve(end + distance) <= law.curve(end):
            distance *= 2
        blocks = distance // width
        falls = [law.fall(a) for a in range(0, end + width, width)]
        inner = [law.fall(a + width - 1) for a in range(0, end, width)] if bits else falls
        points = [law.points(a) for a in range(0, end, width)]
        outer = [law.points(a + width - 1) for a in range(0, end, width)] if bits else points
        highest = [f * p for f, p in zip(falls, outer, strict=False)]
        lowest = [f * p for f, p in zip(inner, points, strict=False)]
        last = law.curve(end)
        C = below(((1 << words.word) - count - 3) / (sum(highest, arb(0)) + 2 * blocks * last))
        low = [max(0, floor(ball(C) * x)) for x in lowest]
        high = [ceiling(ball(C) * x) for x in highest]
        edge = max(1, ceiling(2 * blocks * ball(C) * last))
    rest = [h - s for s, h in zip(low, high, strict=True)]
    tail = TableTail(
        edge, distance.bit_length() - 1, partial(_outcome, end), partial(_tail_acceptance, law, end, C * blocks / edge)
    )
    return DrawTable(words, bits, range(0, end, width), low, rest, (tail,), partial(_acceptance, law, C, low, rest))


def _outcome(end: int, x: int) -> int:
    return end + x


def _acceptance(law: Level, C: Fraction, low: list[int], rest: list[int], q: int, r: int, prec: int) -> Ball:
    """(C·p(R) − low)/rest."""
    return (ball(C) * law.weight(r) - low[q]) / rest[q]


def _tail_acceptance(law: Level, end: int, factor: Fraction, g: int, x: int, prec: int) -> Ball:
    """c·S·2^(g+1)·p(R)/t, with c·S = C·blocks."""
    return ball(factor * (2 << g)) * law.weight(end + x)


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

    def first_level(self, j: int, m: int) -> int:
        """The least level whose box holds zⱼ = m."""
        return -(-m * self.levels // self.sizes[j])

    def cost(self, z: Sequence[int]) -> Fraction:
        """ε·N(z): what it costs to move by z, as N is subadditive."""
        own = sum((slope * abs(z[j]) for j, slope in self.slopes.items()), Fraction(0))
        return own + self.common * max(self.first_level(j, abs(k)) for j, k in enumerate(z)) / self.levels

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
        the box. Levels so high that numbers might not fit are treated one by one, as Python integers.
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


@dataclass(frozen=True)
class Margin:
    """The law of z_place alone."""

    joint: JointLaplace
    place: int

    def beyond(self, m: int, prec: int) -> Ball:
        """P(|z_place| > m)."""
        with precision(_work(self.joint, prec)):
            first = self.joint.first_level(self.place, m + 1)
            return _sum(self.joint, first, self.place, m) / _whole(self.joint, prec)


def level_tail(joint: JointLaplace, r: int, prec: int) -> Ball:
    """P(R > r) for the level R."""
    with precision(_work(joint, prec)):
        return _sum(joint, r + 1) / _whole(joint, prec)


def _work(joint: JointLaplace, prec: int) -> int:
    return prec + GUARD * (len(joint.slopes) + 1)


@lru_cache(maxsize=256)
def _whole(joint: JointLaplace, prec: int) -> Ball:
    return _sum(joint, 0)


def _sum(joint: JointLaplace, first: int, place: int | None = None, m: int = 0) -> Ball:
    """Σ e^{−λεR/M} · Π (number of points, each with its weight, that zⱼ has in the box of R) over R ≥ first.

    Of `place` only those with |z| > m count, which no box before `first` has. With R = iM + t, a side is n = i·s +
    ⌊ts/M⌋: the number is a polynomial in i for a uniform part, and A − B·rⁿ for the others, r = e^{−wε/s}. So for each
    t < M there is Σ xⁱ·P(i) for a few x, such as e^{−λε} and e^{−(λ+w)ε}: see `_powers`.
    """
    free = [j for j in range(len(joint.sizes)) if j not in joint.slopes]
    cut = {j: m if j == place else None for j in range(len(joint.sizes))}
    starts = [max(0, -((t - first) // joint.levels)) for t in range(joint.levels)]

    def points(r: int) -> int:
        return prod(_points(joint.side(j, r), cut[j]) for j in free)

    degrees = range(len(free) + 1)
    rows = [_differences([points((i + k) * joint.levels + t) for k in degrees]) for t, i in enumerate(starts)]
    total = arb(0)
    for chosen in product(*(_pieces(slope, cut[j]) for j, slope in joint.slopes.items())):
        falling = {j: joint.slopes[j] for j, (_, falls) in zip(joint.slopes, chosen, strict=True) if falls}
        constant = prod((piece for piece, _ in chosen), start=arb(1))
        rate = joint.common + sum(slope * joint.sizes[j] for j, slope in falling.items())
        powers = _powers(ball(-rate), len(free) + 1)
        for t, (i, row) in enumerate(zip(starts, rows, strict=True)):
            log = i * rate + joint.common * t / joint.levels
            log += sum(slope * joint.side(j, t) for j, slope in falling.items())
            total += constant * ball(-log).exp() * sum((d * x for d, x in zip(row, powers, strict=True)), arb(0))
    return total


def _points(side: int, cut: int | None) -> int:
    """Integers of [−side, side], or those of them beyond ±cut."""
    return 2 * side + 1 if cut is None else 2 * (side - cut)


def _pieces(slope: Fraction, cut: int | None) -> Pieces:
    """Σ r^|k| over |k| ≤ n is A − B·rⁿ, A = (1 + r)/(1 − r), B = 2r/(1 − r); over cut < |k| ≤ n, B·(r^cut − rⁿ)."""
    r, rest = ball(-slope).exp(), -ball(-slope).expm1()
    b = 2 * r / rest
    return ((1 + r) / rest if cut is None else b * ball(-cut * slope).exp(), False), (-b, True)


def _differences(values: Sequence[int]) -> list[int]:
    """P(0), ΔP(0), Δ²P(0), … of a polynomial with these values at 0, 1, 2, …"""
    row, found = list(values), list[int]()
    while row:
        found.append(row[0])
        row = [b - a for a, b in pairwise(row)]
    return found


def _powers(log: Ball, count: int) -> list[Ball]:
    """xʲ/(1 − x)^{j+1}, x = e^log.

    Theorem: Σ xⁱ·P(i) over i ≥ 0 is Σ ΔʲP(0)·xʲ/(1 − x)^{j+1} over j up to the degree [Newton's forward differences]
    """
    rest = -log.expm1()
    return [(j * log).exp() / rest ** (j + 1) for j in range(count)]
