"""One of many outcomes by weight, for laws that are used a few times: cumulative sums instead of a guide."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import frexp

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, Real, ball
from sfumato.noise.categorical import Categorical, cut, kept
from sfumato.noise.coin import happens
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.gaps import numbers
from sfumato.noise.sampler import MOST_DRAWS
from sfumato.noise.table import USUAL, Integers, Words
from sfumato.noise.uniform import Uniform

MOST_BITS = 62  # of the sum of all weights


@dataclass(frozen=True, eq=False, repr=False)
class Cut:
    """Integers low ≤ C·w ≤ high; `kept(i, prec)` encloses (C·wᵢ − low)/(high − low) where they differ."""

    low: Integers
    high: Integers
    kept: Callable[[int, int], Ball]


def choose(
    weights: ArrayLike | Sequence[Fraction | Real],
    count: int = 1,
    *,
    words: Words = USUAL,
    source: Source = SYSTEM,
) -> Integers:
    """`count` independent indices, i with probability wᵢ/Σw exactly.

    Weights are integers or finite doubles ≥ 0, taken as they are; or rational numbers and balls, which take longer. For
    more than about a thousand draws of one law, `Sampler(Categorical(weights))` is quicker.
    Theorem: P(i) ∝ wᵢ, whatever the bounds [docs/theorems/noise.md, Theorem 7]

    >>> choose([0, 0.5, 0], 3).tolist()
    [1, 1, 1]
    """
    found, bits = np.empty(whole("count", count, 0, MOST_DRAWS), np.int64), min(MOST_BITS, words.word)
    row = np.asarray(weights)
    if row.dtype.kind == "O":
        table = _of_balls(Categorical(list(row)), bits)
    else:
        exact = numbers("weights", row)
        if exact.min() < 0 or not exact.max() > 0:
            raise InvalidParameter(
                "weights must be ≥ 0, and not all 0.\n  found:  a negative weight, or only zeros\n"
                "  do:     give at least one positive weight and no negative one"
            )
        table = (
            _of_integers(exact.astype(np.uint64), bits)
            if exact.dtype.kind in "iu"
            else _of_floats(exact.astype(np.float64, copy=False), bits)
        )
    ends = np.cumsum(table.high)
    uniform, todo = Uniform(int(ends[-1]), source), np.arange(found.size)
    while todo.size:
        u = uniform.draw(todo.size)
        i = np.searchsorted(ends, u, "right")
        found[todo] = i
        open_ = np.flatnonzero(u - ends[i] + table.high[i] >= table.low[i])
        again = [at for at in open_.tolist() if not happens(partial(table.kept, int(i[at])), source, step=words.step)]
        todo = todo[again]
    return found


def _of_integers(row: NDArray[np.uint64], bits: int) -> Cut:
    """C = 2^−s. If the sum fits, s = 0: nothing is left to ask."""
    s = min(63, max(0, int(row.max()).bit_length() + row.size.bit_length() - bits))
    part = np.uint64((1 << s) - 1)
    low = (row >> np.uint64(s)).astype(np.int64)
    return Cut(low, low + ((row & part) > 0), lambda i, prec: ball(Fraction(int(row[i] & part), 1 << s)))


def _of_floats(row: NDArray[np.float64], bits: int) -> Cut:
    """C = 2^k, which scales doubles exactly, unless they underflow: then 0 ≤ C·w ≤ 1 holds all the same."""
    k = bits - row.size.bit_length() - frexp(row.max())[1]
    with np.errstate(under="ignore"):
        scaled = np.ldexp(row, k)
    low = np.floor(scaled).astype(np.int64)
    high = np.maximum(np.ceil(scaled).astype(np.int64), row > 0)
    return Cut(low, high, lambda i, prec: ball(Fraction(float(row[i])) * Fraction(2) ** k - int(low[i])))


def _of_balls(law: Categorical, bits: int) -> Cut:
    C, low, rest = cut(law, max(bits, len(law.weights).bit_length() + 3))  # room for a unit of rest each
    first = np.array(low, np.int64)
    return Cut(first, first + np.array(rest, np.int64), lambda i, prec: kept(law, C, low, rest, i, i, prec))
