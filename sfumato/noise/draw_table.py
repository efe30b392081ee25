"""Tables for exact draws: a random word is accepted, needs a coin, lies in a tail, or starts a new round."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.noise.balls import Ball

Integers = NDArray[np.int64]

MOST_DRAWS = 2**40
CHUNK = 1 << 15  # draws at a time: their words and values stay in the cache
UNDECIDED = int(np.iinfo(np.int64).min)  # no draw of a bin: bins end below 2⁶³


@dataclass(frozen=True)
class Words:
    """Numbers of bits that draws read. They change the speed and never the law; tests use tiny ones.

    `guide`: bits of a word that are read first. `word`: all bits of a word. `coin`: bits of an integer comparison.
    `step`: further bits each time that balls do not decide. `bins`: bins per scale, for scales that need bins.
    `reach`: bins on each side; None leaves it to the law.
    """

    guide: int = 16
    word: int = 64
    coin: int = 32
    step: int = 64
    bins: int = 64
    reach: int | None = None


USUAL = Words()
BRIEF = Words(guide=14, bins=8)  # for few draws: faster to build, slower to draw from


@dataclass(frozen=True)
class Squeeze:
    """Bounds on the probability of accepting a draw of `rest`, for whole arrays: it lies within (D ± slack)/2^coin.

    `chord(k, q)` is D for values k of bins q, and `undecided(k, q)` says for which values balls must decide.
    """

    chord: Callable[[Integers, Integers], Integers]
    slack: Integers
    undecided: Callable[[Integers, Integers], NDArray[np.bool_]]


@dataclass(frozen=True)
class TableTail:
    """The outcomes beyond the bins on one side: block g has probability 2^-(g+1) and 2^bits equal places.

    `outcome(x)` is the integer at distance x ≥ 0 from the end of the bins; `acceptance(g, x, prec)` encloses the
    probability, in [0, 1], that it is accepted.
    """

    weight: int
    bits: int
    outcome: Callable[[int], int]
    acceptance: Callable[[int, int, int], Ball]


@dataclass(frozen=True)
class DrawTable:
    """Bins of 2^bits integers from `base` on, with integer weights low ≤ C·p(k) ≤ low + rest for every k of a bin.

    The range [0, 2^word) of a word is divided into the `sure` intervals (of width low), the `rest` intervals (of width
    rest), the tails, and a remainder that starts a new round. `acceptance(q, k, prec)` encloses (C·p(k) − low)/rest, in
    [0, 1].
    Theorem: One round gives k with probability 2^-word·c·p(k), the same c for all k, so the first round that does not
      start again has law p, whatever the normalising constant [docs/theorems/noise.md, Theorem 1]
    """

    words: Words
    bits: int
    base: Sequence[int]
    low: Sequence[int]
    rest: Sequence[int]
    tails: tuple[TableTail, ...]
    acceptance: Callable[[int, int, int], Ball]
    squeeze: Squeeze | None = None
    bases: Integers = field(init=False, repr=False, compare=False)
    ends: NDArray[np.uint64] = field(init=False, repr=False, compare=False)
    guide: Integers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weights = [*self.low, *self.rest, *(tail.weight for tail in self.tails)]
        if min(weights) < 0 or sum(weights) >= 1 << self.words.word:  # Python integers: a uint64 sum would wrap
            raise AssertionError("the weights of a table do not fit into its word")
        bases = np.array(self.base, np.int64)
        ends = np.cumsum(np.array(weights, np.uint64), dtype=np.uint64)
        object.__setattr__(self, "bases", bases)
        object.__setattr__(self, "ends", ends)
        object.__setattr__(self, "guide", _guide(ends, bases, self.words))


def _guide(ends: NDArray[np.uint64], bases: Integers, words: Words) -> Integers:
    """For the first bits of a word: the base of the bin in whose `sure` interval all its continuations lie."""
    shift, cells = np.uint64(words.word - words.guide), 1 << words.guide
    whole, part = ends >> shift, (ends & ((np.uint64(1) << shift) - np.uint64(1))) > 0
    # How many intervals end at or before the first, and before or at the last word that starts with c.
    first = np.cumsum(np.bincount((whole + part).astype(np.int64), minlength=cells))[:cells]
    last = np.cumsum(np.bincount(whole.astype(np.int64), minlength=cells))[:cells]
    sure = (first == last) & (first < len(bases))
    return np.where(sure, bases[np.minimum(first, len(bases) - 1)], UNDECIDED)


class Law(ABC):
    """A probability law on the integers that has tables to draw from."""

    @abstractmethod
    def table(self, words: Words) -> DrawTable:
        """The table of this law for words of this kind (cached: a scale pays for it once)."""
