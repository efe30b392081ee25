"""Reports that are sets of values, as rows of packed bits: how they are counted, read and written."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.local.frequency import Counts, FrequencyOracle, not_reports
from sfumato.local.randomizer import Reports

Bits = NDArray[np.bool_]
Plane = NDArray[np.uint64]
BLOCK = 255  # rows whose sum fits into a byte
PLANE = 12_288  # words of a plane, about: five of them fit into a core's second cache


def pack(bits: Bits) -> NDArray[np.uint8]:
    """Rows of bits as rows of bytes; value 0 is the highest bit of the first byte."""
    return np.packbits(bits, axis=1)


def integers(packed: NDArray[np.uint8], k: int) -> list[int]:
    """Packed rows as the integers of single reports: value v is the bit 2^v."""
    turned = np.packbits(np.unpackbits(packed, axis=1, count=k), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in turned]


def unpacked_sums(packed: NDArray[np.uint8]) -> Counts:
    """Sums of all columns of bits: bytes are unpacked and added up in blocks whose sums fit into a byte."""
    total = np.zeros(8 * packed.shape[1], np.int64)
    for start in range(0, len(packed), 16 * BLOCK):
        bits = np.unpackbits(packed[start : start + 16 * BLOCK], axis=1)
        for at in range(0, len(bits), BLOCK):
            total += np.add.reduce(bits[at : at + BLOCK], axis=0, dtype=np.uint8)
    return total


def count_bits(packed: NDArray[np.uint8], k: int) -> Counts:
    """How many rows hold each value, by vertical counters.

    Eight rows are a whole number of 64-bit words, so rows are added up as planes of words: a full adder makes three
    planes of one weight into one of that weight and one of twice it, with five operations on 64 columns at once. Each
    plane of reports needs about five operations in all; unpacking it would need fifty. The few planes that are left
    are unpacked.
    """
    width = packed.shape[1]
    words = max(1, PLANE // width) * width
    whole = packed.size // (8 * words)
    if whole < 4:
        return unpacked_sums(packed)[:k]
    flat = np.ascontiguousarray(packed).reshape(-1)
    counters = VerticalCounters(words)
    for plane in flat[: 8 * words * whole].view(np.uint64).reshape(whole, words):
        counters.add(plane)
    total = unpacked_sums(packed[8 * words * whole // width :])
    for weight, plane in counters.planes():
        total += weight * unpacked_sums(plane.view(np.uint8).reshape(-1, width))
    return total[:k]


class VerticalCounters:
    """Counters of bits at each place of a plane, stored as planes of their binary digits.

    Digit i is `sums[i]`; `waiting[i]` is a plane of the same weight that waits for a second one.
    """

    def __init__(self, words: int) -> None:
        self.sums: list[Plane] = []
        self.waiting: list[Plane | None] = []
        self.free: list[Plane] = []
        self.words = words
        self.odd, self.both = np.empty(words, np.uint64), np.empty(words, np.uint64)

    def add(self, plane: Plane) -> None:
        """Add one plane. It is read until the next one is added, and never written to."""
        carry: Plane | None = plane
        level = 0
        while carry is not None:
            if level == len(self.sums):
                self.sums.append(carry.copy())
                self.waiting.append(None)
                return
            carry, self.waiting[level] = self.merge(level, carry)
            level += 1

    def merge(self, level: int, plane: Plane) -> tuple[Plane | None, Plane | None]:
        """(carry, waiting) of a level after one more plane."""
        other = self.waiting[level]
        if other is None:
            return None, plane
        total, odd, both = self.sums[level], self.odd, self.both
        carry = self.free.pop() if self.free else np.empty(self.words, np.uint64)
        np.bitwise_xor(plane, other, out=odd)
        np.bitwise_and(plane, other, out=carry)
        np.bitwise_and(total, odd, out=both)
        np.bitwise_or(carry, both, out=carry)
        np.bitwise_xor(total, odd, out=total)
        if level:  # planes of level 0 are the caller's
            self.free += [plane, other]
        return carry, None

    def planes(self) -> list[tuple[int, Plane]]:
        """(weight, plane): their weighted sum is the count of each place."""
        found = [(1 << level, plane) for level, plane in enumerate(self.sums)]
        return found + [(1 << level, plane) for level, plane in enumerate(self.waiting) if plane is not None]


def read_sets(oracle: FrequencyOracle, reports: ArrayLike) -> Reports:
    """Packed rows as `randomize` returns them, rows of k bits, or integers of single reports, as packed rows."""
    k = oracle.k
    found = np.asarray(reports)
    if found.dtype == np.uint8 and found.ndim == 2 and found.shape[1] == (k + 7) // 8:
        if k % 8 and np.any(found[:, -1] & ((1 << (8 - k % 8)) - 1)):
            raise not_reports(oracle, "bits beyond the last value")
        return found
    if found.dtype.kind in "iub" and found.ndim == 2 and found.shape[1] == k:
        if found.dtype != np.bool_ and found.size and not 0 <= found.min() <= found.max() <= 1:
            raise not_reports(oracle, "rows of other numbers than 0 and 1")
        return pack(found.astype(np.bool_, copy=False))
    numbers = list(reports) if isinstance(reports, list | tuple) else found.tolist()
    if not isinstance(numbers, list) or not all(oracle.is_report(x) for x in numbers):
        raise not_reports(oracle, "something else, such as rows of another width")
    width = (k + 7) // 8
    data = np.frombuffer(b"".join(number.to_bytes(width, "little") for number in numbers), np.uint8)
    return pack(np.unpackbits(data.reshape(-1, width), axis=1, bitorder="little", count=k).astype(np.bool_))
