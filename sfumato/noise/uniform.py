"""Integers below a bound, all equally likely."""

from dataclasses import dataclass

import numpy as np

from sfumato.checks import whole
from sfumato.noise.coin import below
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.sampler import MOST_DRAWS
from sfumato.noise.table import Integers

MOST_BOUND = 2**63


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
        return below(self.bound, self.source)

    def draw(self, count: int) -> Integers:
        """`count` independent integers."""
        bits = (self.bound - 1).bit_length()
        numbers = self.source.words(whole("count", count, 0, MOST_DRAWS), bits).astype(np.int64)  # bits ≤ 63
        if self.bound == 1 << bits:
            return numbers
        while (again := np.flatnonzero(numbers >= self.bound)).size:
            numbers[again] = self.source.words(again.size, bits)
        return numbers
