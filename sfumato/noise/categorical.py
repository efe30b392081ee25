"""Categorical draws: an index with probability proportional to its weight.

`Categorical` has a table, for many draws from one law. `choose` uses cumulative sums, for a few draws.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from math import frexp

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, Real, ball, below, ceiling, enclosure, floor, precision, rational
from sfumato.noise.bernoulli import happens
from sfumato.noise.draw_table import CHUNK, MOST_DRAWS, USUAL, DrawTable, Integers, Law, Words
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.exponential_weights import Numbers, finite_numbers
from sfumato.noise.monotone import PREC
from sfumato.noise.uniform import Uniform, uniform_below

MOST_WEIGHT = Fraction(10**300)
ENOUGH = 1 << 20
MOST_BITS = 62  # of the sum of all weights
MOST_SHIFT = 1000  # powers of two up to here, and sums of two exponents, are doubles
MORE = 64  # bits of precision for a weight beyond those for its fraction


@dataclass(frozen=True, init=False)
class Categorical(Law):
    """P(i) = wᵢ/Σw, i = 0, 1, …  Only ratios of weights matter.

    Theorem 1 with bins of one integer and no tails. Integer weights below 2⁴⁴ in all need no balls: C·w is an integer.
    """

    weights: tuple[Fraction | Real, ...]

    def __init__(self, weights: Sequence[Fraction | float | Real]) -> None:
        found = tuple(
            w if isinstance(w, Real) else rational(f"weights[{i}]", w, 0, MOST_WEIGHT) for i, w in enumerate(weights)
        )
        with precision(PREC):
            if not sum((enclosure(w, PREC) for w in found), arb(0)) > 0:
                raise InvalidParameter(
                    f"weights must not all be 0.\n  found:  {len(found)} weights, whose sum is not surely positive\n"
                    "  do:     give at least one positive weight"
                )
        object.__setattr__(self, "weights", found)

    def table(self, words: Words) -> DrawTable:
        return _table(self, words)


@lru_cache(maxsize=64)
def _table(law: Categorical, words: Words) -> DrawTable:
    C, low, rest = integer_bounds(law, words.word)
    return DrawTable(words, 0, range(len(low)), low, rest, (), partial(_acceptance, law, C, low, rest))


def integer_bounds(law: Categorical, bits: int) -> tuple[Fraction, list[int], list[int]]:
    """C and integers low ≤ C·w ≤ low + rest, whose sum is below 2^bits."""
    with precision(PREC):
        balls = [enclosure(w, PREC) for w in law.weights]
        C = below(((1 << bits) - 2 * len(balls) - 1) / sum(balls, arb(0)))
        C = Fraction(int(C)) if C >= ENOUGH else C  # whole: then whole weights have no rest
        low, high = [], []
        for w, enclosed in zip(law.weights, balls, strict=True):
            scaled = ball(C) * enclosed
            low.append(max(0, floor(scaled)) if isinstance(w, Real) else int(C * w))
            high.append(ceiling(scaled) if isinstance(w, Real) else -int(-C * w // 1))
    return C, low, [h - s for s, h in zip(low, high, strict=True)]


def _acceptance(law: Categorical, C: Fraction, low: list[int], rest: list[int], q: int, k: int, prec: int) -> Ball:
    """(C·wₖ − low)/rest."""
    return (ball(C) * enclosure(law.weights[k], prec + 64) - low[q]) / rest[q]


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Integers low ≤ C·wᵢ ≤ high, i < size; `weight(i, prec)` encloses C·wᵢ.

    They are computed by parts, from start to stop, so that they stay in the cache: `high` of all parts first, and then
    `both` of the parts in which a draw falls. The sum of a part is below 2⁶³; for `draw`, the sum of all is.
    """

    size: int
    high: Callable[[int, int], Integers]
    both: Callable[[int, int], tuple[Integers, Integers]]
    weight: Callable[[int, int], Ball]

    def one(self, words: Words, source: Source) -> int:
        """An index i with probability wᵢ/Σw.

        A uniform integer below Σhigh falls into the interval of one i. Its first `low` places choose i, the others
        choose i with probability (C·wᵢ − low)/(high − low), and else one starts again.
        Theorem: P(i) ∝ wᵢ, whatever the bounds [docs/theorems/noise.md, Theorem 7]
        """
        sums = self._sums()
        ends = list(accumulate(sums))
        while True:
            u = uniform_below(ends[-1], source)
            part = bisect_right(ends, u)
            u -= ends[part] - sums[part]
            low, high = self.both(part * CHUNK, (part + 1) * CHUNK)
            inner = high.cumsum()
            at = int(inner.searchsorted(u, "right"))
            i, least, most = part * CHUNK + at, int(low[at]), int(high[at])
            if u - int(inner[at]) + most < least or self._accepts(i, least, most, words, source):
                return i

    def draw(self, count: int, words: Words, source: Source) -> Integers:
        """`count` independent indices, as `one` gives them, in another order of bits."""
        sums = np.array(self._sums(), np.int64)
        ends = np.cumsum(sums)
        uniform, found, todo = Uniform(int(ends[-1]), source), np.empty(count, np.int64), np.arange(count)
        while todo.size:
            u = uniform.draw(todo.size)
            parts = np.searchsorted(ends, u, "right")
            u -= (ends - sums)[parts]
            again = np.zeros(todo.size, np.bool_)
            for part in sorted(set(parts.tolist())):
                here = np.flatnonzero(parts == part)
                found[todo[here]], again[here] = self._inside(part * CHUNK, u[here], words, source)
            todo = todo[again]
        return found

    def _sums(self) -> list[int]:
        return [int(self.high(start, start + CHUNK).sum()) for start in range(0, self.size, CHUNK)]

    def _inside(self, start: int, u: Integers, words: Words, source: Source) -> tuple[Integers, NDArray[np.bool_]]:
        """The indices in whose intervals places u of one part lie, and which of them must start again."""
        low, high = self.both(start, start + CHUNK)
        ends = np.cumsum(high)
        at = np.searchsorted(ends, u, "right")
        again = u - ends[at] + high[at] >= low[at]
        for t in np.flatnonzero(again).tolist():
            i = int(at[t])
            again[t] = not self._accepts(start + i, int(low[i]), int(high[i]), words, source)
        return at + start, again

    def _accepts(self, i: int, low: int, high: int, words: Words, source: Source) -> bool:
        """True with probability (C·wᵢ − low)/(high − low)."""

        def theta(prec: int) -> Ball:
            with precision(prec + MORE):
                kept: Ball = (self.weight(i, prec + MORE) - low) / (high - low)
                return kept

        return happens(theta, source, step=words.step)


def choose(
    weights: ArrayLike | Sequence[Fraction | Real],
    count: int = 1,
    *,
    words: Words = USUAL,
    source: Source = SYSTEM,
) -> Integers:
    """`count` independent indices, i with probability wᵢ/Σw exactly.

    Weights are integers or finite doubles ≥ 0, taken as they are; or rational numbers and balls, which take longer. For
    thousands of draws of one law, `Sampler(Categorical(weights))` is quicker.

    >>> choose([0, 0.5, 0], 3).tolist()
    [1, 1, 1]
    """
    row, bits = np.asarray(weights), min(MOST_BITS, words.word)
    if row.dtype.kind == "O":
        intervals = _of_balls(Categorical(list(row)), bits)
    else:
        exact = finite_numbers("weights", row)
        if exact.min() < 0 or not exact.max() > 0:
            raise InvalidParameter(
                "weights must be ≥ 0, and not all 0.\n  found:  a negative weight, or only zeros\n"
                "  do:     give at least one positive weight and no negative one"
            )
        intervals = _of_floats(exact, bits) if exact.dtype.kind == "f" else _of_integers(exact, bits)
    return intervals.draw(whole("count", count, 0, MOST_DRAWS), words, source)


def _of_integers(row: Numbers, bits: int) -> Intervals:
    """C = 2^−s. If the sum fits, s = 0, and there is nothing to ask."""
    s = min(63, max(0, int(row.max()).bit_length() + row.size.bit_length() - bits))

    def low(start: int, stop: int) -> Integers:
        part = row[start:stop]
        return np.right_shift(part, part.dtype.type(s)).astype(np.int64) if s else part.astype(np.int64, copy=False)

    def high(start: int, stop: int) -> Integers:
        return low(start, stop) + 1 if s else low(start, stop)

    return Intervals(
        row.size,
        high,
        lambda start, stop: (low(start, stop), high(start, stop)),
        lambda i, prec: ball(Fraction(int(row[i]), 1 << s)),
    )


def _of_floats(row: Numbers, bits: int) -> Intervals:
    """C = 2^k, which scales doubles exactly, unless they underflow: then 0 ≤ C·w ≤ 1 holds all the same."""
    k = bits - row.size.bit_length() - frexp(row.max())[1]
    lift = max(0, k - MOST_SHIFT)
    raised, factor = row * 2.0**lift if lift else row, 2.0 ** (k - lift)

    def low(start: int, stop: int) -> Integers:
        return (raised[start:stop] * factor).astype(np.int64)

    def both(start: int, stop: int) -> tuple[Integers, Integers]:
        first = low(start, stop)
        return first, first + 1

    return Intervals(
        row.size,
        lambda start, stop: low(start, stop) + 1,
        both,
        lambda i, prec: ball(Fraction(float(row[i])) * Fraction(2) ** k),
    )


def _of_balls(law: Categorical, bits: int) -> Intervals:
    C, least, rest = integer_bounds(law, max(bits, len(law.weights).bit_length() + 3))  # room for a unit of rest each
    low = np.array(least, np.int64)
    high = low + np.array(rest, np.int64)
    return Intervals(
        low.size,
        lambda start, stop: high[start:stop],
        lambda start, stop: (low[start:stop], high[start:stop]),
        lambda i, prec: ball(C) * enclosure(law.weights[i], prec),
    )
