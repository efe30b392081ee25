"""Private values in order, all of them or only those of the ranks that matter."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.mechanisms.values import read_numbers
from sfumato.noise.sampler import LARGEST
from sfumato.noise.table import Integers

FEW = 1 << 62  # sums below this are int64


@dataclass(frozen=True, eq=False, repr=False)
class Ordered:
    """x_1 ≤ … ≤ x_size, whole numbers from low to high; x_r = low for ranks r < 1, and high for r > size.

    `blocks` holds runs of neighbouring ranks, the first of which are `firsts`; `between` has the sums of what lies
    between a block and the next. All data are one block. What SQL fetches around a rank is one, around two ranks two.
    """

    size: int
    low: int
    high: int
    firsts: tuple[int, ...]
    blocks: tuple[Integers, ...]
    between: tuple[int, ...] = ()

    @staticmethod
    def of(data: ArrayLike, low: int, high: int, scale: float = 1.0) -> "Ordered":
        """Values times `scale`, rounded to whole numbers and put into the range, each by itself; NaN counts as low."""
        row = read_numbers(data)
        if row.ndim != 1:
            raise InvalidParameter(
                f"data must be one row of values.\n  found:  shape {row.shape}\n  do:     give one value per person"
            )
        if row.dtype.kind == "f":
            with np.errstate(over="ignore"):
                near = np.clip(np.rint(row * scale), low, high)
            whole: Integers = np.where(np.isnan(near), low, near).astype(np.int64)
        elif scale == 1:
            whole = np.clip(row, low, high).astype(np.int64, copy=False)
        elif scale > 1:
            top, bottom = high // int(scale), -(-low // int(scale))
            inside = np.clip(row, bottom - 1, top + 1).astype(np.int64)
            whole = np.clip(inside * int(scale), low, high)
        else:
            wide = round(1 / scale)  # values beyond the range are put to its ends first: no sum overflows
            inside = np.clip(row, max(low * wide, -LARGEST), min(high * wide, LARGEST - wide)).astype(np.int64)
            whole = np.clip((inside + wide // 2) // wide, low, high)
        whole.sort()  # it is ours: what was given has been copied
        return Ordered(whole.size, low, high, (1,), (whole,))

    @cached_property
    def starts(self) -> Integers:
        """Where each block begins among all known values."""
        return np.cumsum([0, *(block.size for block in self.blocks)])[:-1]

    @cached_property
    def values(self) -> Integers:
        return np.concatenate(self.blocks)

    @cached_property
    def sums(self) -> NDArray[Any]:
        """Of ranks up to each one, block after block, each block beginning with what came before it."""
        kind = np.int64 if (self.size + 1) * max(abs(self.low), abs(self.high), 1) < FEW else object
        parts, base = [], 0
        for block, gap in zip(self.blocks, (*self.between, 0), strict=True):
            part = np.concatenate([[0], np.cumsum(block.astype(kind))]).astype(kind) + base
            parts.append(part)
            base = int(part[-1]) + gap
        return np.concatenate(parts)

    def at(self, ranks: ArrayLike) -> Integers:
        """x_r for each rank r."""
        r = np.asarray(ranks, np.int64)
        if not self.values.size:
            return np.where(r > self.size, self.high, self.low).astype(np.int64)
        inside = np.clip(r, 1, self.size) if self.size else r
        known = self.values[self._place(inside, 0)]
        return np.where(r < 1, self.low, np.where(r > self.size, self.high, known)).astype(np.int64)

    def up_to(self, ranks: ArrayLike) -> NDArray[Any]:
        """Σ x_q over q ≤ r, up to one and the same constant: differences are sums over ranks."""
        r = np.asarray(ranks, np.int64)
        inside = np.clip(r, 0, self.size)
        place = self._place(inside, 1) + np.searchsorted(self.firsts, inside + 1, "right") - 1 if self.size else 0 * r
        below: NDArray[Any] = np.minimum(r, 0).astype(self.sums.dtype)
        above: NDArray[Any] = np.maximum(r - self.size, 0).astype(self.sums.dtype)
        found: NDArray[Any] = self.sums[place] + (below * self.low + above * self.high)
        return found

    def _place(self, ranks: Integers, before: int) -> Integers:
        """Where these ranks lie among the known values; with `before`, the place after each."""
        block = np.searchsorted(self.firsts, ranks + before, "right") - 1
        place = ranks - np.asarray(self.firsts)[block]
        lengths = np.array([part.size for part in self.blocks])
        if np.any(block < 0) or np.any(place + before > lengths[block] - 1 + before) or np.any(place < -before):
            raise AssertionError("a rank that was not fetched: the window is too small")
        found: Integers = self.starts[block] + place + before
        return found

    @cached_property
    def mirrored(self) -> "Ordered":
        """−x in order."""
        firsts = tuple(self.size + 2 - first - part.size for first, part in zip(self.firsts, self.blocks, strict=True))
        blocks = tuple(-part[::-1] for part in self.blocks)
        between = tuple(-gap for gap in self.between)
        return Ordered(self.size, -self.high, -self.low, firsts[::-1], blocks[::-1], between[::-1])

    def window(self, parts: Sequence[tuple[int, int]]) -> "Ordered":
        """What is left if only ranks first … last of each part are fetched, and the sums between parts."""
        ends = merged([(max(first, 1), min(last, self.size)) for first, last in parts])
        blocks = tuple(self.at(np.arange(first, last + 1)) for first, last in ends)
        gaps = tuple(int(self.up_to(b - 1)) - int(self.up_to(a)) for (_, a), (b, _) in pairwise(ends))
        return Ordered(self.size, self.low, self.high, tuple(first for first, _ in ends), blocks, gaps)


def merged(parts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of ranks in order, those that touch or overlap as one; empty ones are left out."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(part for part in parts if part[0] <= part[1]):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found or [(1, 0)]
