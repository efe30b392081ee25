"""Uniform integers below a bound."""

from dataclasses import dataclass

import numpy as np

from sfumato.checks import whole
from sfumato.noise.draw_table import MOST_DRAWS, Integers
from sfumato.noise.entropy import SYSTEM, Source

MOST_BOUND = 2**63


def uniform_below(bound: int, source: Source) -> int:
    """A uniform integer in [0, bound), bound ≥ 1: as many bits as needed, drawn again while they are too large."""
    if bound < 1:
        raise AssertionError("no integer lies in [0, 0): the weights of this choice are wrong")  # else it would not end
    bits = (bound - 1).bit_length()
    while True:
        if (u := source.bits(bits)) < bound:
            return u


@dataclass(frozen=True)
class Uniform:
    """P(k) = 1/bound for 0 ≤ k < bound.

    As many bits as bound − 1 has; a number that is too large is drawn again, which happens less than every other time.
    """

    bound: int
    source: Source = SYSTEM

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", whole("bound", self.bound, 1, MOST_BOUND))

    def one(self) -> int:
        """One integer."""
        return uniform_below(self.bound, self.source)

    def draw(self, count: int) -> Integers:
        """`count` independent integers."""
        bits = (self.bound - 1).bit_length()
        numbers = self.source.words(whole("count", count, 0, MOST_DRAWS), bits).astype(np.int64)  # bits ≤ 63
        if self.bound == 1 << bits:
            return numbers
        while (again := np.flatnonzero(numbers >= self.bound)).size:
            numbers[again] = self.source.words(again.size, bits)
        return numbers


def below_each(bounds: Integers, source: Source = SYSTEM) -> Integers:
    """Independent integers, each uniform below its own bound, from 1 to 2⁶³ − 1: the same, for bounds that differ."""
    last = bounds - 1
    mask = last.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> shift  # all bits that bound − 1 has
    bits = int(mask.max(initial=0)).bit_length()
    numbers, todo = np.zeros(bounds.shape, np.int64), np.arange(bounds.size)
    while todo.size:
        numbers[todo] = source.words(todo.size, bits).astype(np.int64) & mask[todo]
        todo = todo[numbers[todo] > last[todo]]
    return numbers
