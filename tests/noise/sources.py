"""Sources of bits for tests: recorded ones, counted ones, and all bit strings at once."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np

from sfumato.noise.entropy import word_type


class Recorded:
    """The bits of SHA-256(name, 0), SHA-256(name, 1), …: the same in every run, on every machine."""

    def __init__(self, name: str):
        self.name, self.block, self.value, self.have, self.used = name, 0, 0, 0, 0

    def bits(self, count):
        while self.have < count:
            digest = hashlib.sha512(f"{self.name} {self.block}".encode()).digest()
            self.value, self.have, self.block = (
                self.value << 512 | int.from_bytes(digest),
                self.have + 512,
                self.block + 1,
            )
        self.have, self.used = self.have - count, self.used + count
        found, self.value = self.value >> self.have, self.value & ((1 << self.have) - 1)
        return found

    def words(self, count, bits):
        """Wide blocks come from one hash in counter mode: Python loops would take all the time."""
        self.used += count * bits
        size = count * np.dtype(word_type(bits)).itemsize
        self.block += 1
        stream = hashlib.shake_128(f"{self.name} words {self.block}".encode()).digest(size)
        words = np.frombuffer(stream, word_type(bits)).copy()
        return words >> word_type(bits)(8 * words.dtype.itemsize - bits)

    def renew(self):
        pass


class RanOut(Exception):
    """A scripted source has no more bits."""


class Scripted:
    """Exactly these bits, then RanOut."""

    def __init__(self, bits: str = ""):
        self.play(bits)

    def play(self, bits: str):
        self.script, self.at = bits, 0

    def bits(self, count):
        if self.at + count > len(self.script):
            raise RanOut
        taken, self.at = self.script[self.at : self.at + count], self.at + count
        return int(taken or "0", 2)

    def words(self, count, bits):
        return np.array([self.bits(bits) for _ in range(count)], word_type(bits))

    def renew(self):
        pass


Law = dict[Hashable, Fraction]


def all_bit_strings(run: Callable[[], Hashable], source: Scripted, depth: int) -> tuple[Law, Fraction]:
    """The law of `run`, which reads `source`, on fair bits: exactly, up to what longer strings would add.

    Each result that used n ≤ depth bits weighs 2⁻ⁿ; a string that is too short is continued by 0 and by 1. The second
    answer is the probability of all strings that would need more than `depth` bits.
    """
    law, left, todo = defaultdict(Fraction), Fraction(0), [""]
    while todo:
        source.play(start := todo.pop())
        try:
            result = run()
        except RanOut:
            if len(start) < depth:
                todo += [start + "0", start + "1"]
            else:
                left += Fraction(1, 2 ** len(start))
        else:
            assert source.at == len(start)
            law[result] += Fraction(1, 2 ** len(start))
    return law, left
