"""Uniform integers below a bound: one at a time, bit for bit as the browser client draws them, or many at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import Uniform
from sfumato.noise.entropy import Source

Below = Callable[[int], int]  # bound ↦ a uniform integer in [0, bound)
Words64 = NDArray[np.uint64]

HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


def below(source: Source) -> Below:
    """Draws below a bound of at most 2⁵³, from two 32-bit words each; drawn again where the remainder would be biased.

    The browser client does the same with the words of its own generator, so that both agree on recorded words.
    """

    def draw(bound: int) -> int:
        limit = 2**53 - 2**53 % bound
        while True:
            x = (source.bits(32) >> 11) << 32 | source.bits(32)
            if x < limit:
                return x % bound

    return draw


def many_below(bound: int, count: int, source: Source) -> Words64:
    """`count` independent uniform integers below a bound of at most 2⁵³.

    Up to 2³²: ⌊w·bound/2⁶⁴⌋ of a 64-bit word w, drawn again where w·bound mod 2⁶⁴ < 2⁶⁴ mod bound.
    Theorem: multiplication instead of division is exact after this rejection [Lemire 2019]
    """
    if bound > 1 << 32:
        return Uniform(bound, source).draw(count).view(np.uint64)
    size, spare = np.uint64(bound), np.uint64((1 << 64) % bound)
    words = source.words(count, 64).astype(np.uint64, copy=False)
    found = multiply_high(words, size)
    if spare:
        again = np.flatnonzero(words * size < spare)
        if again.size:
            found[again] = many_below(bound, again.size, source)
    return found


def multiply_high(words: Words64, size: np.uint64) -> Words64:
    """⌊w·size/2⁶⁴⌋ for size ≤ 2³²: two products of 32 bits each; their sum stays below 2⁶⁴."""
    low = words & LOW
    low *= size
    low >>= HALF
    high = words >> HALF
    high *= size
    high += low
    high >>= HALF
    return high
