"""A level, and uniform noise inside its box: how noise on several numbers at once is drawn."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, prod

from flint import arb

from sfumato.noise.balls import Ball, ball, below, ceiling, floor, precision, ratio
from sfumato.noise.law import Law
from sfumato.noise.monotone import PREC
from sfumato.noise.table import Table, Tail, Words


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

    def table(self, words: Words) -> Table:
        return _table(self, words)


@lru_cache(maxsize=64)
def _table(law: Level, words: Words) -> Table:
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
    tail = Tail(edge, distance.bit_length() - 1, partial(_outcome, end), partial(_far, law, end, C * blocks / edge))
    return Table(words, bits, range(0, end, width), low, rest, (tail,), partial(_kept, law, C, low, rest))


def _outcome(end: int, x: int) -> int:
    return end + x


def _kept(law: Level, C: Fraction, low: list[int], rest: list[int], q: int, r: int, prec: int) -> Ball:
    """(C·p(R) − low)/rest."""
    return (ball(C) * law.weight(r) - low[q]) / rest[q]


def _far(law: Level, end: int, factor: Fraction, g: int, x: int, prec: int) -> Ball:
    """c·S·2^(g+1)·p(R)/t, with c·S = C·blocks."""
    return ball(factor * (2 << g)) * law.weight(end + x)
