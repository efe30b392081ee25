"""The integer table of a transform: a release reads counts through it, and its privacy depends on nothing else.

G(x) = ⌊Ĝ(x)⌋, where Ĝ is increasing, concave and linear between knots; this is enforced in integers, knot by knot.
Noise with a standard deviation of 2^p steps makes the release exactly (|G(x′) − G(x)|/2^p)-Gaussian-DP. No double
affects that.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.mechanisms.groups.transforms import MOST, Given, Identity, Transform
from sfumato.noise.balls import ball, floor, precision
from sfumato.noise.draw_table import Integers

CHUNK = 1 << 15  # counts processed at a time, so that they stay in the cache
OCTAVES = 50  # 10^15 < 2^50
FINE = 96  # bits after the binary point while a table is built
FINEST, COARSEST = 46, 16  # largest and smallest p
HIGHEST, STEEPEST = 60, 40  # bits of a value, and of the rise of a segment
FEWEST, MANIEST = 10, 12  # bits of a count that name its segment
OFF = 5e-5  # σ: the target distance of a table from its transform; exceeded only with MANIEST bits
BENT = 1e-3  # σ: a function that exceeds a concave one by more than this is refused as not concave


class Steps(ABC):
    """A map from counts to integer steps."""

    @property
    @abstractmethod
    def spread(self) -> Fraction:
        """σ in steps."""

    @abstractmethod
    def steps(self, counts: Integers) -> Integers:
        """G of each count, clipped to 0 … 10¹⁵."""

    @abstractmethod
    def height(self, count: int) -> Fraction:
        """Ĝ of a count from 0 to 10¹⁵: increasing and concave, and G = ⌊Ĝ⌋."""

    @property
    @abstractmethod
    def off(self) -> float:
        """An upper bound of the distance from g, in σ, including half a step for the rounding of noise."""

    def rise(self, count: int, rows: int) -> int:
        """The sensitivity in steps: the largest change of G when `rows` rows join or leave a group of this size.

        Theorem: |G(x′) − G(x)| ≤ ⌈Ĝ(max(x, m)) − Ĝ(max(x − m, 0))⌉ for |x′ − x| ≤ m, which is non-increasing in x
            [docs/theorems/groups.md, Theorem 1]
        """
        x, m = min(count, MOST), min(rows, MOST)
        return math.ceil(self.height(max(x, m)) - self.height(max(x - m, 0)))


@dataclass(frozen=True)
class Counts(Steps):
    """The identity: one step is one person, G(x) = x."""

    sigma: Fraction

    @property
    def spread(self) -> Fraction:
        return self.sigma

    @property
    def off(self) -> float:
        return 0.5 / float(self.sigma)

    def steps(self, counts: Integers) -> Integers:
        return np.clip(counts, 0, MOST)

    def height(self, count: int) -> Fraction:
        return Fraction(count)


@dataclass(frozen=True, eq=False)
class IntegerTable(Steps):
    """The values at knots, and the rise of each segment between two knots.

    u = x + 1, from 1 to 2⁵⁰, is exact as a double: its exponent and the first `bits` bits of its mantissa name the
    segment, the other 52 − bits are the position in it, as the fraction y/2^(52−bits). So every u < 2^bits is a knot.
    Reading these bits is integer arithmetic and takes the same time for every count.
    """

    bits: int
    power: int  # p
    base: Integers = field(repr=False)
    gain: Integers = field(repr=False)
    slack: int  # knots lie at most this many steps below ⌊g⌋
    chord: int  # g lies at most this many steps above a segment

    @property
    def spread(self) -> Fraction:
        return Fraction(2) ** self.power

    @property
    def off(self) -> float:
        return float((self.slack + self.chord + 4) / self.spread) * (1 + 1e-12)

    def steps(self, counts: Integers) -> Integers:
        out = np.empty(counts.shape, np.int64)
        flat, found = counts.reshape(-1), out.reshape(-1)
        for at in range(0, flat.size, CHUNK):
            found[at : at + CHUNK] = self._part(flat[at : at + CHUNK])
        return out

    def _part(self, counts: Integers) -> Integers:
        """⌊R·y/2^l⌋ with y split into two halves, as R·y exceeds 64 bits: ⌊(R·y₁ + ⌊R·y₀/2^h⌋)/2^(l−h)⌋."""
        low = 52 - self.bits
        half = low // 2
        u = np.clip(counts, 0, MOST).astype(np.float64)
        u += 1.0  # exact
        word = u.view(np.int64)
        k = word >> low
        k -= 1023 << self.bits
        word &= (1 << low) - 1
        gain = self.gain.take(k, mode="clip")  # k is always in range; "clip" is faster than "raise"
        part = word & ((1 << half) - 1)
        part *= gain
        part >>= half
        word >>= half
        word *= gain
        word += part
        word >>= low - half
        word += self.base.take(k, mode="clip")
        return word

    def height(self, count: int) -> Fraction:
        u = count + 1
        exponent = u.bit_length() - 1
        share = Fraction(u, 1 << exponent) - 1
        k = math.floor(share * (1 << self.bits))
        place = share * (1 << self.bits) - k
        at = (exponent << self.bits) + k
        return int(self.base[at]) + int(self.gain[at]) * place


def knots(bits: int) -> list[int]:
    """All integers u at which a segment begins, and the end of the last one."""
    found = list(range(1, 1 << bits))
    for e in range(bits, OCTAVES):
        found += range(1 << e, 2 << e, 1 << (e - bits))
    return [*found, 1 << OCTAVES]


def segment_index(u: int, bits: int) -> int:
    """The index of the segment that begins at u."""
    e = u.bit_length() - 1
    return (e << bits) + ((u - (1 << e)) << bits >> e)


@lru_cache(maxsize=64)
def table_of(transform: Transform, sigma: float) -> Steps:
    """The table of a transform, for noise of this standard deviation."""
    if isinstance(transform, Identity):
        return Counts(Fraction(sigma))
    rough = table_with_bits(transform, sigma, FEWEST)
    if rough.off <= OFF:
        return rough
    more = math.ceil(math.log(rough.off / OFF, 4))  # halving the width of a segment divides its error by four
    return table_with_bits(transform, sigma, min(FEWEST + more, MANIEST))


def table_with_bits(transform: Transform, sigma: float, bits: int) -> IntegerTable:
    ends = knots(bits)
    heights = scaled_heights(transform, sigma, ends)
    power = finest_power(transform, heights, ends, bits)
    return build_table(transform, [h >> (FINE - power) for h in heights], ends, bits, power)


def scaled_heights(transform: Transform, sigma: float, ends: list[int]) -> list[int]:
    """Approximately ⌊2^FINE·(g − g(0))/σ⌋ at the knots; privacy does not depend on these numbers."""
    with precision(FINE + 96):
        unit, first = ball(Fraction(2) ** FINE / Fraction(sigma)), transform.ball(0)
        return [floor((transform.ball(u - 1) - first) * unit) for u in ends]


def finest_power(transform: Transform, heights: list[int], ends: list[int], bits: int) -> int:
    """The largest p that 64 bits allow."""
    long = [after - h for h, after, u in zip(heights, heights[1:], ends, strict=False) if u >> bits]
    spare = [HIGHEST - (heights[-1].bit_length() - FINE), STEEPEST - (max(long).bit_length() - FINE)]
    if isinstance(transform, Given):
        spare.append(48 - (heights[-1].bit_length() - FINE))  # the precision of doubles
    power = min(FINEST, *spare)
    if power < COARSEST:
        raise InvalidParameter(
            "sigma is too small for this transform: its values do not fit into 64 bits.\n"
            f"  found:  g(1e15) − g(0) is about 2^{heights[-1].bit_length() - FINE} sigma\n"
            "  do:     choose a larger sigma, or a transform that grows more slowly"
        )
    return power


def build_table(transform: Transform, wanted: list[int], ends: list[int], bits: int, power: int) -> IntegerTable:
    """The concave integer table that approximates the wanted values at the knots from below.

    A segment rises as wanted, but never more steeply than the segment before. For a concave transform this only removes
    rounding errors; a transform that is not concave would lose much more, and is refused.
    """
    size = OCTAVES << bits
    base, gain = np.zeros(size, np.int64), np.zeros(size, np.int64)
    at, before, width, slack = 0, -1, 1, 0  # −1: there is no segment before
    for (u, v), target in zip(pairwise(ends), wanted[1:], strict=True):
        rise = min(target - at, before * (v - u) // width) if before >= 0 else target
        if rise < 0 and target < at - 2:
            raise not_concave(transform, u - 1, "decreases")
        k, rise = segment_index(u, bits), max(rise, 0)
        base[k], gain[k] = at, rise
        at, before, width = at + rise, rise, v - u
        slack = max(slack, target - at)
    if slack > BENT * 2**power:
        raise not_concave(transform, None, "is not concave, or too straight for steps of this size")
    return IntegerTable(bits, power, base, gain, slack, chord_error(wanted, ends))


def chord_error(values: list[int], ends: list[int]) -> int:
    """An upper bound of the distance of a concave function above its chords: width·(difference of slopes)/4.

    On a segment the function lies below the extensions of the segments on both sides, which meet at most that far
    above. Widths are powers of two, each at most twice the one before; values are floors, which adds less than a step.
    """
    found = 0
    for i in range(1, len(ends) - 2):
        left, width, right = (ends[j + 1] - ends[j] for j in (i - 1, i, i + 1))
        if width > 1:
            steep = (values[i] - values[i - 1]) * width // left - (values[i + 2] - values[i + 1]) * width // right
            found = max(found, steep // 4 + 2)
    return found


def not_concave(transform: Transform, count: int | None, how: str) -> InvalidParameter:
    where = f" at {count:,}" if count is not None else ""
    return InvalidParameter(
        f"a transform must be increasing and concave.\n  found:  {transform!r}, which {how}{where}\n"
        "  do:     give a concave function of counts, such as a logarithm or a root"
    )
