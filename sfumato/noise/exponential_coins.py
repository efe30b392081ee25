"""Many coins at once, each with its own probability e^{−rate·x}."""

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.noise.coin import happens
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.gaps import Gaps, above_zero
from sfumato.noise.powers import powers
from sfumato.noise.sampler import CHUNK
from sfumato.noise.table import USUAL, Words

MOST_COIN = 32


def exponential_coins(
    x: ArrayLike, rate: Fraction | float = 1, *, words: Words = USUAL, source: Source = SYSTEM
) -> NDArray[np.bool_]:
    """True with probability e^{−rate·xᵢ} exactly, independently for each xᵢ ≥ 0 (finite doubles or integers).

    >>> exponential_coins([0.0, 1e300]).tolist()
    [True, False]
    """
    if not np.size(x):
        return np.empty(0, np.bool_)
    return flips(above_zero("x", x), rate, words, source)


def flips(gaps: Gaps, rate: Fraction | float, words: Words, source: Source) -> NDArray[np.bool_]:
    """`coin` bits U against integers low ≤ 2^coin·e^{−rate·x} ≤ high; in between Theorem 2 goes on with U."""
    bound = powers(rate, min(words.coin, MOST_COIN))
    unit = bound.unit
    heads = np.empty(gaps.size, np.bool_)
    for start in range(0, gaps.size, CHUNK):
        part = heads[start : start + CHUNK]
        u = source.words(part.size, unit)
        y = bound.steps(gaps.near(start, start + part.size))
        sure = np.take(bound.narrow, y.astype(np.int64), mode="clip")  # clip never acts; it is faster than raise
        np.less(u, sure, out=part)
        u -= sure  # wraps below: such numbers are large, or looked at again in vain
        again = np.flatnonzero(u < bound.width)
        first = u[again] + sure[again]
        least, most = bound.bounds(y[again])
        part[again] = first < least
        for at in np.flatnonzero((first >= least) & (first < most)).tolist():
            theta = partial(bound.exactly, gaps.exactly(start + int(again[at])))
            part[again[at]] = happens(theta, source, int(first[at]), unit, words.step)
    return heads
