"""Heavy hitters among strings: a tree of prefixes, of which each person reports one, once, with all of ε."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.hashing import LocalHashing
from sfumato.local.response import Response
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sensitivity import Relation, ReplaceOne

HALF = np.uint64(32)
CHUNK = 4096
MOST_CANDIDATES = 1 << 16
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class PrefixReport:
    """Which group of people, a hash seed, and the randomised bucket of the prefix."""

    group: int
    seed: int
    bucket: int


@dataclass(frozen=True)
class HeavyHitters:
    """Strings of up to `length` bytes; group j of `length` groups reports its prefix of j bytes, by local hashing.

    A person belongs to one public group, drawn without looking at the string, and speaks once: the loss is that of one
    report. The server follows prefixes that are frequent in their group and tries all continuations from `alphabet`:
    the domain is the tree, never the strings that clients hold. Shorter strings are padded with zero bytes.

    Theorem: prefix extension finds heavy hitters with one report per person [Wang, Li & Jha 2019; Bassily et al. 2017]
    """

    length: int
    eps: float
    alphabet: bytes = b"abcdefghijklmnopqrstuvwxyz"
    source: Source = field(default=SYSTEM, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", checks.whole("length", self.length, 1, 32))
        if not isinstance(self.alphabet, bytes) or not 1 <= len(set(self.alphabet)) == len(self.alphabet) <= 255:
            raise InvalidParameter("the alphabet is a text of different bytes.\n  do:     e.g. b'abc…xyz'")
        if 0 in self.alphabet:
            raise InvalidParameter("the zero byte pads shorter strings.\n  do:     leave it out of the alphabet")
        self.response  # noqa: B018  # checks eps

    @cached_property
    def response(self) -> Response:
        """Randomized response of the hash's bucket; the number of buckets is that of local hashing."""
        oracle = LocalHashing.of(2**16, self.eps)
        return Response(oracle.buckets, oracle.odds, source=self.source)

    def loss(self, relation: Relation = ReplaceOne) -> PrivacyLoss:
        """The loss of one person's only report: the hash is public, and two prefixes may differ in their buckets."""
        return self.response.loss(relation)

    def randomize(self, text: str | bytes) -> PrefixReport:
        """One report: a random group, a fresh seed, and the randomised bucket of the prefix."""
        data = (text.encode() if isinstance(text, str) else text)[: self.length].ljust(self.length, b"\0")
        group = 1 + self.response.below(self.length)
        seed = self.source.bits(64)
        own = int(buckets(np.array([seed], np.uint64), data[:group], self.response.k)[0])
        return PrefixReport(group, seed, self.response.answer(own, self.response.below))

    def estimate(self, reports: "list[PrefixReport]", most: int = 64, miss: float = 0.05) -> dict[str, float]:
        """Strings that are frequent, with their estimated shares; any string that nobody holds with at most `miss`.

        At each level the `most` best prefixes stay whose count a prefix that nobody holds exceeds with less than `miss`
        shared by all candidates of all levels: a binomial tail, at every number of reports.
        """
        most = checks.whole("most", most, 1, MOST_CANDIDATES // (len(self.alphabet) + 1))
        groups = self.by_group(reports)
        letters = [bytes([letter]) for letter in self.alphabet] + [b"\0"]
        tried = self.length * most * len(letters)
        chance = checks.number("miss", miss, 1e-9, 0.5, allowed="a number from 1e-9 to 0.5") / tried
        kept: dict[bytes, float] = {b"": 1.0}
        for group in range(1, self.length + 1):
            seeds, said = groups[group]
            if not len(said):
                return {}
            candidates = [
                prefix + letter
                for prefix in kept
                for letter in letters
                if not (prefix.endswith(b"\0") and letter != b"\0")  # a padded string has ended
            ]
            shares = {one: self.share(seeds, said, one) for one in candidates}
            limit = self.share_of(least_count(len(said), 1 / self.response.k, chance), len(said))
            best = sorted((one for one in candidates if shares[one] > limit), key=lambda one: -shares[one])[:most]
            kept = {one: shares[one] for one in best}
        return {one.rstrip(b"\0").decode(errors="replace"): share for one, share in kept.items()}

    def by_group(self, reports: "list[PrefixReport]") -> dict[int, tuple[Words, NDArray[np.int64]]]:
        """Seeds and buckets of each group; refused if no client can have sent one."""
        for one in reports:
            if not (1 <= one.group <= self.length and 0 <= one.seed < 1 << 64 and 0 <= one.bucket < self.response.k):
                raise InvalidParameter(
                    "a report has a group, a 64-bit seed and a bucket.\n  found:  numbers out of range\n"
                    "  do:     count what is malformed apart"
                )
        mine = {group: [one for one in reports if one.group == group] for group in range(1, self.length + 1)}
        return {
            group: (np.array([one.seed for one in found], np.uint64), np.array([one.bucket for one in found], np.int64))
            for group, found in mine.items()
        }

    @property
    def variance(self) -> float:
        """n·Var of a share near 0: q(1 − q)/(p − q)² with q = 1/g."""
        g, p = self.response.k, float(self.response.p)
        return (1 / g) * (1 - 1 / g) / (p - 1 / g) ** 2

    def share(self, seeds: Words, said: NDArray[np.int64], prefix: bytes) -> float:
        """(C/n − 1/g)/(p − 1/g) with C the reports whose bucket is the prefix's."""
        return self.share_of(int(np.count_nonzero(buckets(seeds, prefix, self.response.k) == said)), len(said))

    def share_of(self, count: int, reports: int) -> float:
        """The estimate from so many matching reports."""
        g = self.response.k
        return float(count / reports - 1 / g) / (float(self.response.p) - 1 / g)


def least_count(reports: int, q: float, chance: float) -> int:
    """The least c with P(Bin(reports, q) > c) ≤ chance."""
    low, high = -1, reports
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bdtrc(middle, reports, q) <= chance else (middle, high)
    return high


def buckets(seeds: Words, prefix: bytes, count: int) -> NDArray[np.int64]:
    """The bucket of a prefix under the hash of each seed: Σ aᵢxᵢ + b over words of four bytes, its upper half scaled.

    The aᵢ and b are made from the seed by splitmix64. Accuracy takes them as random; privacy holds for any hash.
    """
    total = mix_seeds(seeds, 0)
    for at in range(0, len(prefix), 4):
        word = np.uint64(int.from_bytes(prefix[at : at + 4].ljust(4, b"\0")) + 1)
        total = total + mix_seeds(seeds, at + 1) * word
    return (((total >> HALF) * np.uint64(count)) >> HALF).astype(np.int64)


def mix_seeds(seeds: Words, number: int) -> Words:
    """Splitmix64 of seed and number: a public function, the same on both sides."""
    z = seeds + np.uint64((0x9E3779B97F4A7C15 * (number + 1)) & 0xFFFFFFFFFFFFFFFF)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
