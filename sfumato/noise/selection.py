"""Selection of a candidate by its score: the exponential mechanism, permute-and-flip, peeling."""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike

from sfumato.checks import whole
from sfumato.noise.balls import Ball, precision
from sfumato.noise.bernoulli import flip_coins, happens
from sfumato.noise.categorical import MORE, Intervals
from sfumato.noise.draw_table import CHUNK, USUAL, Integers, Words
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.exponential_weights import below_top, finite_numbers, powers
from sfumato.noise.uniform import uniform_below


def select(scores: ArrayLike, rate: Fraction | float, *, words: Words = USUAL, source: Source = SYSTEM) -> int:
    """An index i with probability e^{rate·scoreᵢ}/Σe^{rate·score} exactly. Scores are finite doubles or integers.

    Weights are e^{rate·(score − top)}, known by integers in units of 2⁻⁴⁰. Parts of 2¹⁵ candidates stay below 2⁵⁶ and
    are added up as Python integers, so there may be any number. Each candidate costs the same, whatever its score; one
    selection in about 370 needs balls. Integer scores that lie 2⁶³ or more apart take longer to convert.
    Theorem: P(i) ∝ e^{rate·scoreᵢ}, whatever the bounds [docs/theorems/noise.md, Theorem 7]
    Theorem: this is ε-DP if rate = ε/2Δ for scores of sensitivity Δ [McSherry & Talwar 2007, Thm 6]

    >>> select([0, 10**6, 5], 1)
    1
    """
    gaps, bound = below_top(scores), powers(rate, words.word)

    def steps(start: int, stop: int) -> Integers:
        return bound.steps(gaps.near(start, stop)).astype(np.int64)

    def high(start: int, stop: int) -> Integers:
        return bound.high[steps(start, stop)]

    def both(start: int, stop: int) -> tuple[Integers, Integers]:
        q = steps(start, stop)
        return bound.low[q], bound.high[q]

    def weight(i: int, prec: int) -> Ball:
        scaled: Ball = bound.exactly(gaps.exactly(i), prec) * 2**bound.unit
        return scaled

    return Intervals(gaps.size, high, both, weight).one(words, source)


def permute_and_flip(
    scores: ArrayLike, rate: Fraction | float, *, words: Words = USUAL, source: Source = SYSTEM
) -> int:
    """The first candidate, in random order, whose coin of probability e^{rate·(score − top)} shows heads.

    All coins are flipped, and one of the heads is chosen uniformly: the first head in a uniform order is uniform among
    the heads, given the coins. The top's coin always shows heads. The law is also that of the highest score + Exp(rate)
    noise, so this is report-noisy-max with exponential noise, without the noise.
    Theorem: the first head in a uniform order is uniform among the heads [docs/theorems/noise.md, Theorem 8]
    Theorem: ε-DP if rate = ε/2Δ, and never worse than exponential selection [McKenna & Sheldon 2020]
    Theorem: permute-and-flip is report-noisy-max with exponential noise [Ding, Kifer, Sencan, Wang & Zhang 2021]

    >>> permute_and_flip([0, 10**6, 5], 1)
    1
    """
    heads = flip_coins(below_top(scores), rate, words, source)
    counts = [int(np.count_nonzero(heads[start : start + CHUNK])) for start in range(0, heads.size, CHUNK)]
    ends = list(accumulate(counts))
    u = uniform_below(ends[-1], source)
    part = bisect_right(ends, u)
    found = np.flatnonzero(heads[part * CHUNK : (part + 1) * CHUNK])
    return part * CHUNK + int(found[u - ends[part] + counts[part]])


def peel(
    scores: ArrayLike, count: int, rate: Fraction | float, *, words: Words = USUAL, source: Source = SYSTEM
) -> Integers:
    """`count` different indices in the order chosen: each time exponential selection among those that are left.

    The law is that of the `count` highest of score + Gumbel(1/rate) noise, in order.
    Theorem: peeling is the one-shot Gumbel mechanism [Durfee & Rogers 2019, section 4.1]
    """
    row = finite_numbers("scores", scores).copy()
    left, names = whole("count", count, 0, row.size), np.arange(row.size)
    chosen = np.empty(left, np.int64)
    for turn in range(left):
        last = row.size - 1 - turn
        at = select(row[: last + 1], rate, words=words, source=source)
        chosen[turn] = names[at]
        row[at], names[at] = row[last], names[last]
    return chosen


def select_run(
    gaps: ArrayLike, counts: ArrayLike, rate: Fraction | float, *, words: Words = USUAL, source: Source = SYSTEM
) -> tuple[int, int]:
    """(i, k), k < countᵢ, with probability e^{−rate·gapᵢ}/Σcount·e^{−rate·gap} exactly: runs of one score.

    As `select`, where candidate (i, k) has `high` places for itself: a uniform place among all of them says which
    candidate it is, and which of its places. Runs may have any length, or be empty; gaps are whole, from 0 up to
    2⁵³, and that of one run with candidates is 0.
    Theorem: P(i, k) ∝ e^{−rate·gapᵢ}, whatever the bounds [docs/theorems/noise.md, Theorem 7]

    >>> select_run([10**6, 0], [2**40, 1], 1)
    (1, 0)
    """
    apart, sizes, bound = np.asarray(gaps, np.int64), np.asarray(counts, np.int64), powers(rate, words.word)
    least, most = bound.bounds(bound.steps(apart.astype(np.float64)))
    long = int(sizes.sum()) * int(most.max()) >= 1 << 62
    ends = np.cumsum(sizes.astype(object) * most.astype(object) if long else sizes * most)
    while True:
        u = uniform_below(int(ends[-1]), source)
        i = int(np.searchsorted(ends, u, "right"))
        low, high = int(least[i]), int(most[i])
        k, place = divmod(u - int(ends[i]) + int(sizes[i]) * high, high)

        def theta(prec: int, gap: int = int(apart[i]), low: int = low, high: int = high) -> Ball:
            with precision(prec + MORE):
                kept: Ball = (bound.exactly(gap, prec + MORE) * 2**bound.unit - low) / (high - low)
                return kept

        if place < low or happens(theta, source, step=words.step):
            return i, k
