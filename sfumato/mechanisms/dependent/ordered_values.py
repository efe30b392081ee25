"""Sorted private values, or a window of their ranks, and statistics of one value per person."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.mechanisms.additive.base import bounds_in_steps, lattice_of_step
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.mechanisms.private_inputs import read_numbers
from sfumato.noise import Lattice
from sfumato.noise.draw_table import Integers
from sfumato.noise.sampler import LARGEST

FEW = 1 << 62  # sums below this are int64


@dataclass(frozen=True, eq=False, repr=False)
class Ordered:
    """Order statistics x_1 ≤ … ≤ x_size, integers from low to high; x_r = low for ranks r < 1 and high for r > size.

    Only some ranks may be known. `blocks` holds runs of consecutive ranks, which begin at the ranks `firsts`; `between`
    has the sum of the values between each block and the next. Complete data are one block. A window that SQL fetches
    around one rank is one block, around two ranks two.
    """

    size: int
    low: int
    high: int
    firsts: tuple[int, ...]
    blocks: tuple[Integers, ...]
    between: tuple[int, ...] = ()

    @staticmethod
    def of(data: ArrayLike, low: int, high: int, scale: float = 1.0) -> "Ordered":
        """Sorts values times `scale`, each rounded to an integer and clipped to the range; NaN counts as low."""
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
            wide = round(1 / scale)  # values are clipped to the range first, so that no sum overflows
            inside = np.clip(row, max(low * wide, -LARGEST), min(high * wide, LARGEST - wide)).astype(np.int64)
            whole = np.clip((inside + wide // 2) // wide, low, high)
        whole.sort()  # a copy: the caller's array is not changed
        return Ordered(whole.size, low, high, (1,), (whole,))

    @cached_property
    def starts(self) -> Integers:
        """The index of each block's first value among all known values."""
        return np.cumsum([0, *(block.size for block in self.blocks)])[:-1]

    @cached_property
    def values(self) -> Integers:
        return np.concatenate(self.blocks)

    @cached_property
    def sums(self) -> NDArray[Any]:
        """Cumulative sums over the ranks, block after block; each block starts with the sum of all ranks before it."""
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
        """Σ x_q over q ≤ r, up to a constant that is the same for all r: differences are sums over ranks."""
        r = np.asarray(ranks, np.int64)
        inside = np.clip(r, 0, self.size)
        place = self._place(inside, 1) + np.searchsorted(self.firsts, inside + 1, "right") - 1 if self.size else 0 * r
        below: NDArray[Any] = np.minimum(r, 0).astype(self.sums.dtype)
        above: NDArray[Any] = np.maximum(r - self.size, 0).astype(self.sums.dtype)
        found: NDArray[Any] = self.sums[place] + (below * self.low + above * self.high)
        return found

    def _place(self, ranks: Integers, before: int) -> Integers:
        """The indices of these ranks among the known values; with before = 1, the index after each."""
        block = np.searchsorted(self.firsts, ranks + before, "right") - 1
        place = ranks - np.asarray(self.firsts)[block]
        lengths = np.array([part.size for part in self.blocks])
        if np.any(block < 0) or np.any(place + before > lengths[block] - 1 + before) or np.any(place < -before):
            raise AssertionError("this rank was not fetched: the window is too small")
        found: Integers = self.starts[block] + place + before
        return found

    @cached_property
    def mirror(self) -> "Ordered":
        """The order statistics of −x."""
        firsts = tuple(self.size + 2 - first - part.size for first, part in zip(self.firsts, self.blocks, strict=True))
        blocks = tuple(-part[::-1] for part in self.blocks)
        between = tuple(-gap for gap in self.between)
        return Ordered(self.size, -self.high, -self.low, firsts[::-1], blocks[::-1], between[::-1])

    def window(self, parts: Sequence[tuple[int, int]]) -> "Ordered":
        """These values with only ranks first … last of each part known, and the sums between parts."""
        ends = merge_ranges([(max(first, 1), min(last, self.size)) for first, last in parts])
        blocks = tuple(self.at(np.arange(first, last + 1)) for first, last in ends)
        gaps = tuple(int(self.up_to(b - 1)) - int(self.up_to(a)) for (_, a), (b, _) in pairwise(ends))
        return Ordered(self.size, self.low, self.high, tuple(first for first, _ in ends), blocks, gaps)


def merge_ranges(parts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted ranges of ranks: adjacent and overlapping ones are merged, empty ones dropped."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(part for part in parts if part[0] <= part[1]):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found or [(1, 0)]


@dataclass(frozen=True)
class OfValues(Statistic[ArrayLike | Ordered]):
    """A statistic of one value per person, on the multiples of a public step (a power of two) from low to high.

    Values are clipped to the range (NaN counts as low) and rounded to the step. This is done to each value by itself,
    so neighbours stay neighbours and it costs nothing.
    """

    low: float
    high: float
    step: float | Fraction = 1

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        assert self.ends  # raises InvalidParameter for a bad range or step

    @cached_property
    def lattice(self) -> Lattice:
        return lattice_of_step(self.step)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The range in steps."""
        return bounds_in_steps(self.lattice, self.low, self.high)

    @property
    def span(self) -> Exact:
        return self.exact(self.ends[1] - self.ends[0])

    def order_values(self, data: ArrayLike | Ordered) -> Ordered:
        """The values in steps, sorted; an `Ordered`, possibly a window, is returned unchanged."""
        return data if isinstance(data, Ordered) else Ordered.of(data, *self.ends, scale=float(1 / self.lattice.step))

    def prepare(self, data: ArrayLike | Ordered) -> Ordered:
        return self.order_values(data)

    def exact(self, steps: Any) -> Exact:
        """Converts steps to a value."""
        if not isinstance(steps, Fraction) and self.lattice.exponent >= 0:
            return int(steps) << self.lattice.exponent
        found = (steps if isinstance(steps, Fraction) else int(steps)) * self.lattice.step
        return int(found) if found.denominator == 1 else found

    def value(self, data: ArrayLike | Ordered) -> Exact:
        return self.exact(self.value_in_steps(self.order_values(data)))

    def curve(self, data: ArrayLike | Ordered, most: int) -> tuple[Exact, ...]:
        return tuple(self.exact(size) for size in accumulate(self.curve_in_steps(self.order_values(data), most), max))

    @abstractmethod
    def value_in_steps(self, x: Ordered) -> Exact:
        """f(x), in steps."""

    @abstractmethod
    def curve_in_steps(self, x: Ordered, most: int) -> "list[Exact] | list[int] | list[Fraction]":
        """Numbers whose running maxima are LS_0 … LS_most, in steps."""

    @abstractmethod
    def ranks(self, size: int, most: int) -> tuple[tuple[int, int], ...]:
        """The ranks that `curve_in_steps` reads out of `size`: (first, last) of each part, to be fetched by SQL."""
