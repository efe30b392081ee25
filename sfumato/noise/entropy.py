"""Random bits: one keystream per thread, keyed by the operating system. No bit is used twice."""

import mmap
import os
import sys
import threading
from collections.abc import Callable
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

Unsigned = NDArray[np.unsignedinteger]

PER_KEY = 1 << 34  # bytes: 2³⁰ blocks differ from perfect bits by at most 2⁻⁶⁹ (PRP/PRF switching)
RESERVE = 1 << 12  # bytes kept for single numbers
ZEROS = memoryview(bytes(1 << 19))
SPARE = 15  # bytes that `update_into` wants beyond the last one
WIPE_ON_FORK = 18  # MADV_WIPEONFORK of Linux 4.14, which the module mmap has no name for


class Source(Protocol):
    """Where random bits come from. Bits are independent and fair, and each is handed out once."""

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""

    def words(self, count: int, bits: int) -> Unsigned:
        """`count` uniform integers of `bits` ≤ 64 bits each, in memory of their own."""

    def renew(self) -> None:
        """Forget all state, as far as the source has any."""


def word_type(bits: int) -> type[np.uint16] | type[np.uint32] | type[np.uint64]:
    """The narrowest of our word types that holds so many bits."""
    return np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64


class Process:
    """A number that a process does not share with those it was forked from: how many forks away the first one is.

    Siblings share it, but nothing else: what a process inherits comes from its ancestors. On Linux the number lies in a
    page that the kernel wipes in the child, whoever called fork, C code and new pid namespaces included. Elsewhere
    Python's fork hook wipes it and the process number is compared.
    """

    generation = 0  # the last number given here or in an ancestor

    def __init__(self) -> None:
        self.memory, self.wiped = _page()
        self.number = memoryview(self.memory).cast("Q")
        self.pid = 0
        hook: Callable[..., None] | None = getattr(os, "register_at_fork", None)
        if hook is not None:
            hook(after_in_child=self.forget)
        self.current()

    def forget(self) -> None:
        self.number[0] = 0

    def current(self) -> int:
        """The number of this process, never 0; another one after a fork."""
        if not self.number[0] or not (self.wiped or self.pid == os.getpid()):
            self.pid = os.getpid()
            self.generation += 1
            self.number[0] = self.generation
        return self.number[0]


def _page() -> tuple[mmap.mmap, bool]:
    """A page of private memory, and whether the kernel wipes it in a forked child."""
    if sys.platform != "linux":
        return mmap.mmap(-1, mmap.PAGESIZE), False
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        page.madvise(WIPE_ON_FORK)
    except OSError:
        return page, False
    return page, True


PROCESS = Process()


class Keystream(threading.local):
    """AES-256 in counter mode, one key and counter per thread, both from the operating system.

    A new key is taken after a fork, every 2³⁴ bytes, and by `renew`. A copy or a pickle is a stream with a key of its
    own. What cannot be seen from inside is a virtual machine restored twice from one snapshot; so `renew` before each
    batch that matters (`Pool` does).
    Theorem: 2³⁰ blocks of AES in counter mode are within 2⁻⁶⁹ of uniform if AES is a random permutation
      [Bellare & Rogaway 2006, PRP/PRF switching lemma]
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.born = PROCESS.current()
        self.left = PER_KEY
        self.cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
        self.reserve, self.used = bytearray(), 0

    def __reduce__(self) -> tuple[type["Keystream"], tuple[()]]:
        return Keystream, ()

    def fill(self, view: memoryview, size: int) -> None:
        """Write `size` fresh bytes into memory that has SPARE bytes more."""
        if self.left < size or self.born != PROCESS.current():
            self.renew()
        self.left -= size
        for start in range(0, size, len(ZEROS)):
            self.cipher.update_into(ZEROS[: size - start], view[start:])

    def words(self, count: int, bits: int) -> Unsigned:
        kind = word_type(bits)
        size = count * np.dtype(kind).itemsize
        memory = np.empty(size + SPARE, np.uint8)
        self.fill(memory.data, size)
        words: Unsigned = memory[:size].view(kind)
        spare = 8 * np.dtype(kind).itemsize - bits
        if spare:
            words >>= kind(spare)
        return words

    def bits(self, count: int) -> int:
        size = (count + 7) >> 3
        if self.used + size > len(self.reserve) - SPARE or self.born != PROCESS.current():
            fresh = bytearray(RESERVE + size + SPARE)
            self.fill(memoryview(fresh), RESERVE + size)  # may renew, which empties the reserve
            self.reserve, self.used = fresh, 0
        start, self.used = self.used, self.used + size
        value = int.from_bytes(self.reserve[start : self.used])
        self.reserve[start : self.used] = bytes(size)  # a bit handed out is nowhere else
        return value >> (8 * size - count)


SYSTEM = Keystream()
