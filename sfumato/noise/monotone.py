"""Laws whose probabilities fall with the distance from the centre: their tables, and the radius that holds a share."""

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol, SupportsFloat

import numpy as np
from flint import arb
from numpy.typing import NDArray

from sfumato.checks import number, whole
from sfumato.noise.balls import Ball, ball, below, ceiling, floor, precision
from sfumato.noise.draw_table import DrawTable, Integers, Law, Squeeze, TableTail, Words

Floats = NDArray[np.float64]
Acceptance = Callable[[int, int, int], Ball]  # bin, value, precision ↦ the probability to keep it

PREC = 128  # of the balls in tables
FIRST, LAST = 128, 1024  # bits of the balls that decide a radius
LEAST, MOST = Fraction(1, 1000), Fraction(10**18)
BOTH_SIDES = (0, 1)  # k = x ≥ 0 has magnitude x; k = −1 − x has magnitude x + 1
BETWEEN = (0, 0)  # symmetric about −½: both have magnitude x
ONE_SIDE = (0,)
NEVER = (-1, 2**63 - 1)  # no magnitude is on a flat piece


class MonotoneLaw(Law):
    """p(k) ∝ weight(m), non-increasing in the magnitude m of k.

    `sides` says how far the magnitude m is ahead of x ≥ 0, for k = x and, if there is a second side, k = −1 − x.
    """

    sides: tuple[int, ...] = BOTH_SIDES

    @property
    @abstractmethod
    def spread(self) -> Fraction:
        """The scale. It decides how wide bins are, nothing else."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """How many scales the bins cover; beyond are the tails."""

    @abstractmethod
    def weight(self, m: int, prec: int) -> Ball:
        """An enclosure of the weight of magnitude m ≥ 0, of about `prec` bits.

        The working precision is at least `prec`: the caller has set it.
        """

    def curve(self, m: int, prec: int) -> Ball:
        """A non-increasing function that is nowhere below the weight, and equals it for m > 0."""
        return self.weight(m, prec)

    def halving(self) -> Fraction | None:
        """A distance over which the weight falls to half or less, wherever it starts; None: it is log-concave."""
        return None

    def halves(self, start: int, distance: int) -> bool:
        """Is weight(start + g·distance + x) ≤ 2^-g·weight(start) surely, for all g, x ≥ 0?

        If weight is log-concave from `start` on, its ratio over a fixed distance falls, so g = 1, x = 0 is enough.
        """
        if (enough := self.halving()) is not None:
            return distance >= enough
        with precision(PREC):
            return bool(2 * self.weight(start + distance, PREC) <= self.weight(start, PREC))

    def bend(self, edge: Floats, width: int) -> Floats | None:
        """Bounds b with width²·|curve''| ≤ b·curve(max(0, edge − width)) on [edge, edge + width]; None: no bounds."""
        return None

    def flat(self, j: int, width: int) -> tuple[int, int] | None:
        """(a, b): in bin j the weight is that of j·width up to magnitude a, and that of (j + 1)·width from b on."""
        return None

    def table(self, words: Words) -> DrawTable:
        return _table(self, words)


class TailedLaw(MonotoneLaw):
    """A monotone law whose tails are known, too: all that a mechanism needs of its noise."""

    @abstractmethod
    def beyond(self, m: int, prec: int) -> Ball:
        """An enclosure of P(|K| > m), or one of a number that is nowhere below it, of about `prec` bits."""


@lru_cache(maxsize=256)
def _table(law: MonotoneLaw, words: Words) -> DrawTable:
    """Bins of B integers on each side with certified weights, and the tails after K = J·B.

    `room` leaves a unit free for each number that is rounded up; DrawTable asserts the sum. Squeeze: Lemma 4.
    """
    bits = max(0, int(law.spread / words.bins).bit_length() - 1)
    width = 1 << bits
    count = words.reach or min(max(2, int(law.reach * law.spread / width) + 1), (1 << 63) // width - 1)
    end = count * width
    distance = width
    while not law.halves(end, distance):
        distance *= 2
    sides, blocks = law.sides, distance // width
    with precision(PREC):
        point = law.curve if bits else law.weight
        points = [point(j * width, PREC) for j in range(count + 1)]
        first = [points[0 if bits else ahead :][:count] for ahead in sides]
        room = (1 << words.word) - len(sides) * (count + 1) - 2  # a unit for each rounding, and two
        total = sum((sum(side, arb(0)) for side in first), arb(0)) + 2 * len(sides) * blocks * points[count]
        C = below(room / total)
        constant = ball(C)
        scaled = [constant * x for x in points]
        down, up = [max(0, floor(x)) for x in scaled], [ceiling(x) for x in scaled]
        edge = max(1, ceiling(2 * blocks * scaled[count]))
    low = [x for ahead in sides for x in (down[1:] if bits else down[ahead:][:count])]
    high = [x for ahead in sides for x in (up[:count] if bits else up[ahead:][:count])]
    rest = [h - s for s, h in zip(low, high, strict=True)]
    acceptance = partial(_acceptance, law, C, low, rest)
    # A bin's least integer: x = j·width on the first side; on the second −1 − x, for the last x of the bin.
    return DrawTable(
        words,
        bits,
        [
            k
            for side in range(len(sides))
            for k in (range(0, end, width) if side == 0 else range(-width, -end - width, -width))
        ],
        low,
        rest,
        tuple(
            TableTail(
                edge,
                distance.bit_length() - 1,
                partial(_outcome, side, end),
                partial(_tail_acceptance, law, side, end, C * blocks / edge),
            )
            for side in range(len(sides))
        ),
        acceptance,
        _squeeze(law, words, bits, high[:count], rest[:count], acceptance) if bits else None,
    )


def _outcome(side: int, end: int, x: int) -> int:
    return end + x if side == 0 else -1 - end - x


def _magnitude(law: MonotoneLaw, k: int) -> int:
    return k + law.sides[0] if k >= 0 else -1 - k + law.sides[1]


def _acceptance(law: MonotoneLaw, C: Fraction, low: list[int], rest: list[int], q: int, k: int, prec: int) -> Ball:
    """(C·p(k) − low)/rest."""
    return (ball(C) * law.weight(_magnitude(law, k), prec) - low[q]) / rest[q]


def _tail_acceptance(law: MonotoneLaw, side: int, end: int, factor: Fraction, g: int, x: int, prec: int) -> Ball:
    """c·S·2^(g+1)·p(k)/t, with c·S = C·blocks."""
    return ball(factor * (2 << g)) * law.weight(_magnitude(law, _outcome(side, end, x)), prec)


def _squeeze(
    law: MonotoneLaw, words: Words, bits: int, high: list[int], rest: list[int], acceptance: Acceptance
) -> Squeeze | None:
    width = 1 << bits
    units = np.maximum(1, np.array(rest, float)) / 2.0**words.coin
    if (bend := law.bend(np.arange(len(high), dtype=np.float64) * width, width)) is not None:
        before = np.array([high[0], *high[:-1]], float)
        # 1.01 pays for the roundings of these doubles (IEEE + · /) and for the balls' widths: see Lemma 4.
        return _bend_squeeze(law, words.coin, bits, (1.01 * before * bend / 8 + 4) / units)
    if law.flat(0, width) is not None:
        flats = [law.flat(j, width) or NEVER for j in range(len(high))]
        return _step_squeeze(law, words.coin, bits, flats, rest, acceptance, 4 / units)
    return None


def _slack(law: MonotoneLaw, bound: Floats) -> Integers:
    return np.tile(np.minimum(bound + 4, 2.0**40).astype(np.int64), len(law.sides))


def _magnitudes(law: MonotoneLaw, k: Integers) -> Integers:
    return np.where(k >= 0, k + law.sides[0], law.sides[-1] - 1 - k)


def _bend_squeeze(law: MonotoneLaw, coin: int, bits: int, bound: Floats) -> Squeeze:
    """Lemma 4: the acceptance probability within a bin runs along its chord, up to the curve's bend and four units."""
    count, width = len(bound), 1 << bits

    def chord(k: Integers, q: Integers) -> Integers:
        """2^coin·d/B, with d = (j + 1)·B − m: how far the magnitude m of k is from the bin's outer end."""
        d = (q % count + 1) * width - _magnitudes(law, k)
        return d << (coin - bits) if bits <= coin else d >> (bits - coin)

    def undecided(k: Integers, q: Integers) -> NDArray[np.bool_]:
        zero: NDArray[np.bool_] = k == 0  # the curve may lie above the weight there
        return zero

    return Squeeze(chord, _slack(law, bound), undecided)


def _step_squeeze(
    law: MonotoneLaw,
    coin: int,
    bits: int,
    flats: list[tuple[int, int]],
    rest: list[int],
    acceptance: Acceptance,
    bound: Floats,
) -> Squeeze:
    """Where the weight is that of a bin's inner (outer) end, a draw is accepted (rejected), up to four units.

    The one cell across a break has a probability of its own, from its ball. On either side of 0 it is the same function
    of the magnitude, so the first side is undecided.
    """
    count = len(flats)
    upper, lower = (np.array(x, np.int64) for x in zip(*flats, strict=True))
    across = np.zeros(count, np.int64)
    with precision(PREC):
        for j, (before, after) in enumerate(flats):
            if after == before + 2 and rest[j] and j << bits <= before + 1 <= (j + 1) << bits:
                across[j] = floor(acceptance(j, before + 1, PREC) * 2**coin)

    def chord(k: Integers, q: Integers) -> Integers:
        m, j = _magnitudes(law, k), q % count
        return np.where(m <= upper[j], 1 << coin, np.where(m >= lower[j], 0, across[j]))

    def undecided(k: Integers, q: Integers) -> NDArray[np.bool_]:
        m, j = _magnitudes(law, k), q % count
        between: NDArray[np.bool_] = (m > upper[j]) & (m < lower[j]) & (lower[j] > upper[j] + 2)
        return between

    return Squeeze(chord, _slack(law, bound), undecided)


# ---- radius ---------------------------------------------------------------------------------------------------------


class Tailed(Protocol):
    """A law on the integers whose tails are known."""

    def beyond(self, m: int, prec: int) -> Ball:
        """An enclosure of P(|K| > m), or one of a number that is nowhere below it, of about `prec` bits."""


def radius(law: Tailed, confidence: SupportsFloat, coordinates: int = 1) -> int:
    """The least m such that `coordinates` independent draws are all within ±m, with this probability or more.

    (1 − P(|K| > m))^d ≥ c is P(|K| > m) ≤ 1 − c^{1/d}. Where balls of 1024 bits do not decide, m is one more.

    >>> from sfumato.noise import DiscreteLaplace
    >>> radius(DiscreteLaplace(3), 0.95)
    9
    """
    c, d = open_probability(confidence), whole("coordinates", coordinates, 1)
    if _enough(law, 0, c, d):
        return 0
    low, high = 0, 1
    while not _enough(law, high, c, d):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _enough(law, middle, c, d) else (middle, high)
    return high


def _enough(law: Tailed, m: int, c: Fraction, d: int) -> bool:
    prec = FIRST
    while prec <= LAST:
        with precision(prec):
            missed, tail = -(ball(c).log() / d).expm1(), law.beyond(m, prec)
            if tail <= missed:
                return True
            if tail > missed:
                return False
        prec *= 2
    return False


def open_probability(confidence: SupportsFloat) -> Fraction:
    """A probability that is neither 0 nor 1."""
    least, most = math.ulp(0.0), math.nextafter(1.0, 0.0)
    return Fraction(
        number("confidence", confidence, least, most, allowed="a probability such as 0.95, not 0 and not 1")
    )
