"""The integer table of a transform: what a release is made of, and all that its privacy depends on.

G(x) = ⌊Ĝ(x)⌋, where Ĝ is linear between knots, rises, and is concave: made so in whole numbers, knot by knot. Noise
with a standard deviation of 2^p steps makes the release exactly (|G(x′) − G(x)|/2^p)-Gaussian-DP. No double decides it.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.mechanisms.groups.custom import MOST, Given
from sfumato.mechanisms.groups.identity import Identity
from sfumato.mechanisms.groups.transform import Transform
from sfumato.noise.balls import ball, floor, precision
from sfumato.noise.table import Integers

CHUNK = 1 << 15  # counts at a time: they stay in the cache
OCTAVES = 50  # 10^15 < 2^50
FINE = 96  # bits after the point while a table is made
FINEST, COARSEST = 46, 16  # p
HIGHEST, STEEPEST = 60, 40  # bits of a value, and of what a segment rises
FEWEST, MANIEST = 10, 12  # bits of a count that name its segment
OFF = 5e-5  # σ: how far a table is to be from its transform; further only with MANIEST bits
BENT = 1e-3  # σ: a function that is so much above a concave one is not concave


class Steps(ABC):
    """Counts as whole steps."""

    @property
    @abstractmethod
    def spread(self) -> Fraction:
        """σ in steps."""

    @abstractmethod
    def steps(self, counts: Integers) -> Integers:
        """G of each count; those below 0 or above 10¹⁵ are put there."""

    @abstractmethod
    def height(self, count: int) -> Fraction:
        """Ĝ of a count from 0 to 10¹⁵: concave, rising, and G = ⌊Ĝ⌋."""

    @property
    @abstractmethod
    def off(self) -> float:
        """No value is further from g than this, in σ; half a step for the rounding of noise included."""

    def rise(self, count: int, rows: int) -> int:
        """No one with at most so many rows moves a group of this size by more steps, by coming or by leaving.

        Theorem: |G(x′) − G(x)| ≤ ⌈Ĝ(max(x, m)) − Ĝ(max(x − m, 0))⌉ for |x′ − x| ≤ m, which never rises with x
            [docs/theorems/groups.md, Theorem 1]
        """
        x, m = min(count, MOST), min(rows, MOST)
        return math.ceil(self.height(max(x, m)) - self.height(max(x - m, 0)))


@dataclass(frozen=True)
class Counts(Steps):
    """Steps that are people: G(x) = x."""

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
class Table(Steps):
    """Values at knots, and what each segment between two of them rises.

    u = x + 1 ≥ 1, below 2⁵⁰, is exactly a double: its exponent and the first `bits` bits after the point name the
    segment, the 52 − bits others are the place in it, as a share y/2^(52−bits). So u < 2^bits are knots themselves.
    Reading these bits is whole arithmetic, and takes as long for every count.
    """

    bits: int
    power: int  # p
    base: Integers = field(repr=False)
    gain: Integers = field(repr=False)
    slack: int  # steps by which knots lie below ⌊g⌋ at most
    chord: int  # steps by which g lies above a segment at most

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
        """⌊R·y/2^l⌋ in halves of y, as R·y has more than 64 bits: ⌊(R·y₁ + ⌊R·y₀/2^h⌋)/2^(l−h)⌋."""
        low = 52 - self.bits
        half = low // 2
        u = np.clip(counts, 0, MOST).astype(np.float64)
        u += 1.0  # exact
        word = u.view(np.int64)
        k = word >> low
        k -= 1023 << self.bits
        word &= (1 << low) - 1
        gain = self.gain.take(k, mode="clip")  # clip never acts; it is faster than raise
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
    """All u at which a segment begins and that are whole, and the end."""
    found = list(range(1, 1 << bits))
    for e in range(bits, OCTAVES):
        found += range(1 << e, 2 << e, 1 << (e - bits))
    return [*found, 1 << OCTAVES]


def place(u: int, bits: int) -> int:
    """The segment that begins at u."""
    e = u.bit_length() - 1
    return (e << bits) + ((u - (1 << e)) << bits >> e)


@lru_cache(maxsize=64)
def table_of(transform: Transform, sigma: float) -> Steps:
    """The table of a transform, for noise of this standard deviation."""
    if isinstance(transform, Identity):
        return Counts(Fraction(sigma))
    rough = with_bits(transform, sigma, FEWEST)
    if rough.off <= OFF:
        return rough
    more = math.ceil(math.log(rough.off / OFF, 4))  # a segment of half the width is four times as near
    return with_bits(transform, sigma, min(FEWEST + more, MANIEST))


def with_bits(transform: Transform, sigma: float, bits: int) -> Table:
    ends = knots(bits)
    heights = raised(transform, sigma, ends)
    power = finest(transform, heights, ends, bits)
    return made(transform, [h >> (FINE - power) for h in heights], ends, bits, power)


def raised(transform: Transform, sigma: float, ends: list[int]) -> list[int]:
    """⌊2^FINE·(g − g(0))/σ⌋ at knots, nearly: privacy does not depend on it."""
    with precision(FINE + 96):
        unit, first = ball(Fraction(2) ** FINE / Fraction(sigma)), transform.ball(0)
        return [floor((transform.ball(u - 1) - first) * unit) for u in ends]


def finest(transform: Transform, heights: list[int], ends: list[int], bits: int) -> int:
    """p, as large as 64 bits allow."""
    long = [after - h for h, after, u in zip(heights, heights[1:], ends, strict=False) if u >> bits]
    spare = [HIGHEST - (heights[-1].bit_length() - FINE), STEEPEST - (max(long).bit_length() - FINE)]
    if isinstance(transform, Given):
        spare.append(48 - (heights[-1].bit_length() - FINE))  # doubles know no more
    power = min(FINEST, *spare)
    if power < COARSEST:
        raise InvalidParameter(
            "sigma is too small for this transform: its values do not fit into 64 bits.\n"
            f"  found:  g(1e15) − g(0) is about 2^{heights[-1].bit_length() - FINE} sigma\n"
            "  do:     choose a larger sigma, or a transform that grows more slowly"
        )
    return power


def made(transform: Transform, wanted: list[int], ends: list[int], bits: int, power: int) -> Table:
    """Knots as near to what is wanted as a concave table of whole numbers comes, from below.

    A segment rises by what is wanted, but never more steeply than the one before. That acts where rounding makes slopes
    rise, and loses little; a transform that is not concave loses much, and is refused.
    """
    size = OCTAVES << bits
    base, gain = np.zeros(size, np.int64), np.zeros(size, np.int64)
    at, before, width, slack = 0, -1, 1, 0  # −1: nothing comes before
    for (u, v), target in zip(pairwise(ends), wanted[1:], strict=True):
        rise = min(target - at, before * (v - u) // width) if before >= 0 else target
        if rise < 0 and target < at - 2:
            raise bent(transform, u - 1, "falls")
        k, rise = place(u, bits), max(rise, 0)
        base[k], gain[k] = at, rise
        at, before, width = at + rise, rise, v - u
        slack = max(slack, target - at)
    if slack > BENT * 2**power:
        raise bent(transform, None, "is not concave, or too straight for steps of this size")
    return Table(bits, power, base, gain, slack, chord(wanted, ends))


def chord(values: list[int], ends: list[int]) -> int:
    """How far a concave function is above its segments at most: a quarter of their width times the slopes' difference.

    On a segment it lies below the continued segments on both sides, which meet at most that much above. Widths are
    powers of two, a segment at most twice as wide as the one before; values are floors, which adds less than a step.
    """
    found = 0
    for i in range(1, len(ends) - 2):
        left, width, right = (ends[j + 1] - ends[j] for j in (i - 1, i, i + 1))
        if width > 1:
            steep = (values[i] - values[i - 1]) * width // left - (values[i + 2] - values[i + 1]) * width // right
            found = max(found, steep // 4 + 2)
    return found


def bent(transform: Transform, count: int | None, how: str) -> InvalidParameter:
    where = f" at {count:,}" if count is not None else ""
    return InvalidParameter(
        f"a transform rises, ever more slowly.\n  found:  {transform!r}, which {how}{where}\n"
        "  do:     give a concave function of counts, such as a logarithm or a root"
    )
