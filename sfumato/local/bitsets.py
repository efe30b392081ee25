"""Reports that are sets of values, as rows of packed bits: how they are counted, read and written."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.local.frequency import Counts, FrequencyOracle, not_reports
from sfumato.local.randomizer import Reports

Bits = NDArray[np.bool_]
BLOCK = 255  # rows whose sum fits into a byte


def pack(bits: Bits) -> NDArray[np.uint8]:
    """Rows of bits as rows of bytes; value 0 is the highest bit of the first byte."""
    return np.packbits(bits, axis=1)


def count_bits(packed: NDArray[np.uint8], k: int) -> Counts:
    """How many rows hold each value: bytes are unpacked and added up in blocks whose sums fit into a byte."""
    total = np.zeros(k, np.int64)
    step = BLOCK * 16
    for start in range(0, len(packed), step):
        bits = np.unpackbits(packed[start : start + step], axis=1, count=k)
        for at in range(0, len(bits), BLOCK):
            total += np.add.reduce(bits[at : at + BLOCK], axis=0, dtype=np.uint8)
    return total


def read_sets(oracle: FrequencyOracle, reports: ArrayLike) -> Reports:
    """Packed rows as `randomize` returns them, or integers of single reports, as packed rows."""
    k = oracle.k
    found = np.asarray(reports)
    if found.dtype == np.uint8 and found.ndim == 2 and found.shape[1] == (k + 7) // 8:
        if k % 8 and np.any(found[:, -1] & ((1 << (8 - k % 8)) - 1)):
            raise not_reports(oracle, "bits beyond the last value")
        return found
    numbers = list(reports) if isinstance(reports, list | tuple) else found.tolist()
    if not isinstance(numbers, list) or not all(oracle.is_report(x) for x in numbers):
        raise not_reports(oracle, "something else, such as rows of another width")
    width = (k + 7) // 8
    data = np.frombuffer(b"".join(number.to_bytes(width, "little") for number in numbers), np.uint8)
    return pack(np.unpackbits(data.reshape(-1, width), axis=1, bitorder="little", count=k).astype(np.bool_))
