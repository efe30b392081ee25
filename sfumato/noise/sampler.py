"""Draws from a table, one at a time or by the million: the same rounds with the bits in another order."""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import whole
from sfumato.noise.bernoulli import happens
from sfumato.noise.draw_table import CHUNK, MOST_DRAWS, UNDECIDED, USUAL, DrawTable, Integers, Law, Words
from sfumato.noise.entropy import SYSTEM, Source, Unsigned

LARGEST = 2**63 - 1
BLOCK = 1 << 19  # draws whose slow cases are gathered
NEAR, FAR = 1 << 61, 1 << 62  # if |noise| ≤ NEAR, a sum that leaves 64 bits wraps to a number beyond ±FAR


@dataclass(frozen=True)
class Sampler:
    """Integers with the law `law`, exactly.

    >>> from sfumato.noise import DiscreteLaplace, Sampler
    >>> Sampler(DiscreteLaplace(3)).draw(5).dtype
    dtype('int64')
    """

    law: Law
    words: Words = USUAL
    source: Source = SYSTEM
    table: DrawTable = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", self.law.table(self.words))

    def __reduce__(self) -> tuple[type["Sampler"], tuple[Law, Words, Source]]:
        return Sampler, (self.law, self.words, self.source)

    # ---- one draw: the definition -----------------------------------------------------------------------------------

    def one(self) -> int:
        """One draw, an integer of any size."""
        while (k := self.round()) is None:
            pass
        return k

    def round(self) -> int | None:
        """One round: the outcome of one word, or None if a new round must start."""
        table, words, source = self.table, self.words, self.source
        u = source.bits(words.guide)
        if (base := table.guide.item(u)) != UNDECIDED:
            return base + source.bits(table.bits)
        u = u << (words.word - words.guide) | source.bits(words.word - words.guide)
        i, n = bisect_right(table.ends, u), len(table.base)
        if i >= 2 * n:
            return self.draw_tail(i - 2 * n)
        k = table.base[i % n] + source.bits(table.bits)
        return k if i < n or self.accepts(i - n, k) else None

    def accepts(self, q: int, k: int, u: int = 0, known: int = 0) -> bool:
        """Accept k of bin q with probability (C·p(k) − low)/rest."""
        return happens(lambda prec: self.table.acceptance(q, k, prec), self.source, u, known, self.words.step)

    def draw_tail(self, side: int) -> int | None:
        """A draw of a tail: block g with probability 2^-(g+1), a uniform place in it, accepted with its probability."""
        if side >= len(self.table.tails):
            return None
        tail, g = self.table.tails[side], 0
        while not self.source.bits(1):
            g += 1
        x = (g << tail.bits) + self.source.bits(tail.bits)
        stays = happens(lambda prec: tail.acceptance(g, x, prec), self.source, step=self.words.step)
        return tail.outcome(x) if stays else None

    # ---- many draws -------------------------------------------------------------------------------------------------

    def draw(self, count: int) -> Integers:
        """`count` independent draws, saturated at ±(2⁶³ − 1).

        To add noise to private values use `about`: v + N saturates; v + saturated N would reveal v where N is large.
        """
        values, beyond = self.draw_with_beyond(count)
        for place, k in beyond.items():
            values[place] = max(-LARGEST, min(LARGEST, k))
        return values

    def about(self, values: Integers) -> Integers:
        """v + N, one independent N for each v, saturated at ±(2⁶³ − 1); v = −2⁶³ counts as −(2⁶³ − 1).

        The exact sum is saturated, so this is post-processing of it. Wrapping or an error would reveal the sum.
        """
        flat = values.reshape(-1)
        total, beyond = self.draw_with_beyond(flat.size)
        add = add_near if self.near and not beyond else add_saturating
        for start in range(0, flat.size, CHUNK):
            add(flat[start : start + CHUNK], total[start : start + CHUNK])
        for place, k in beyond.items():
            total[place] = max(-LARGEST, min(LARGEST, max(-LARGEST, int(flat[place])) + k))
        return total.reshape(values.shape)

    @cached_property
    def near(self) -> bool:
        """Do all bins lie within ±NEAR? The table decides, so this is public."""
        return max(map(abs, self.table.base)) + (1 << self.table.bits) <= NEAR

    def draw_with_beyond(self, count: int) -> tuple[Integers, dict[int, int]]:
        """`count` draws, and {place: value} for those of the tails that are beyond ±2⁶¹."""
        values, beyond = np.empty(whole("count", count, 0, MOST_DRAWS), np.int64), dict[int, int]()
        for start in range(0, values.size, BLOCK):
            self._block(values[start : start + BLOCK], start, beyond)
        return values, beyond

    def _block(self, values: Integers, start: int, beyond: dict[int, int]) -> None:
        """Fill one block: all guides first, then the places that their guide leaves open, together."""
        places, heads = [], []
        for at in range(0, values.size, CHUNK):
            part = values[at : at + CHUNK]
            words = self.source.words(part.size, self.words.guide)
            np.take(self.table.guide, words, out=part, mode="clip")  # clip never acts; it is faster than raise
            open_ = np.flatnonzero(part == UNDECIDED)
            places.append(open_ + at)
            heads.append(words[open_])
            if self.table.bits:
                part += self._offsets(part.size)  # also where open: those are overwritten
        todo = np.concatenate(places)
        more = self.words.word - self.words.guide  # bits after the guide's, fewer than 64
        u = np.concatenate(heads).astype(np.uint64) << np.uint64(more)
        u |= self.source.words(todo.size, more).astype(np.uint64, copy=False)
        while todo.size:
            again = self._rounds(values, todo, u, start, beyond)
            todo = todo[again]
            u = self.source.words(todo.size, self.words.word).astype(np.uint64, copy=False)

    def _rounds(
        self, values: Integers, todo: NDArray[np.intp], u: NDArray[np.uint64], start: int, beyond: dict[int, int]
    ) -> NDArray[np.bool_]:
        """Finish one round at each place of `todo`, whose word is u; return which must start again."""
        n, last = len(self.table.base), 2 * len(self.table.base) + len(self.table.tails)
        i = np.searchsorted(self.table.ends, u, "right")
        q = np.where(i < 2 * n, i % n, 0)
        k = self.table.bases[q]
        if self.table.bits:
            k += self._offsets(k.size)
        values[todo] = k
        again = i >= 2 * n
        rest = np.flatnonzero((i >= n) & ~again)
        again[rest] = ~self._accepts(k[rest], q[rest])
        for at in np.flatnonzero((i >= 2 * n) & (i < last)).tolist():
            if (far := self.draw_tail(int(i[at]) - 2 * n)) is not None:
                again[at], place = False, int(todo[at])
                if abs(far) <= NEAR:
                    values[place] = far
                else:
                    beyond[start + place] = far
        return again

    def _offsets(self, count: int) -> Unsigned | Integers:
        """Uniform places inside a bin. Those of more than 32 bits are read as int64, which holds them: bits < 63."""
        words = self.source.words(count, self.table.bits)
        return words.view(np.int64) if words.dtype == np.uint64 else words

    def _accepts(self, k: Integers, q: Integers) -> NDArray[np.bool_]:
        """`accepts` for arrays: `coin` bits against integer bounds, and balls for the few in between."""
        if self.table.squeeze is None:
            return np.array([self.accepts(*pair) for pair in zip(q.tolist(), k.tolist(), strict=True)], bool)
        squeeze, coin = self.table.squeeze, self.words.coin
        u = self.source.words(k.size, coin).astype(np.int64)
        chord, slack = squeeze.chord(k, q), squeeze.slack[q]
        keep = u + slack < chord
        for at in np.flatnonzero(~keep & (u <= chord + slack) | squeeze.undecided(k, q)).tolist():
            keep[at] = self.accepts(int(q[at]), int(k[at]), int(u[at]), coin)
        return keep


def add_near(values: Integers, noise: Integers) -> None:
    """noise += values, saturated at ±(2⁶³ − 1), where |noise| ≤ NEAR: one addition and a look at the ends.

    An exact sum e that does not fit is at most 2⁶³ + NEAR in size and wraps to e ∓ 2⁶⁴, which is beyond ±FAR. So if no
    number is beyond ±FAR, nothing has wrapped. Wrapped or not, the number seen is beyond ±FAR if and only if the
    saturated answer is: the time of the rare path reveals nothing beyond the answers. max |value| would reveal more.
    """
    np.add(values, noise, out=noise)
    if noise.min(initial=0) <= -FAR or noise.max(initial=0) >= FAR:
        np.subtract(noise, values, out=noise)  # wraps back
        add_saturating(values, noise)


def add_saturating(values: Integers, noise: Integers) -> None:
    """noise += values, saturated at ±(2⁶³ − 1), for every |noise| ≤ 2⁶³ − 1, without branches.

    Noise is first put into the interval in which the sum fits. v = −2⁶³ counts as −(2⁶³ − 1).
    """
    values = np.maximum(values, -LARGEST)
    np.minimum(noise, LARGEST - np.maximum(values, 0), out=noise)
    np.maximum(noise, -LARGEST - np.minimum(values, 0), out=noise)
    np.add(values, noise, out=noise)


def saturating_sum(a: Integers, b: Integers) -> Integers:
    """a + b, saturated at ±(2⁶³ − 1): int64 sums would wrap, and an error would reveal the sum."""
    total = b.copy()
    add_saturating(a, total)
    return total
