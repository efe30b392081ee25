"""PrivUnit for unit vectors, by a public codebook: the report is a seed and one of the vectors that it makes."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betainc, betaln

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.draws import Below
from sfumato.local.frequency import require_information
from sfumato.local.odds import Odds
from sfumato.local.randomizer import Classes, Randomizer, check_total
from sfumato.loss.numeric import Floats, floats

CODEBOOK = 1024
MOST_DIMENSIONS = 100_000


@dataclass(frozen=True)
class UnitVector(Randomizer):
    """One of `codebook` = K random unit vectors: each of the s nearest to v with weight `truth`, others with `lie`.

    A fresh public seed makes the vectors, so that the report is a seed and an index. Ranks decide which are near: the
    near set has s vectors whatever v is, so the odds are exact for every codebook and every way to round. As K grows
    the near set becomes the cap of PrivUnit. The mean of reports is m·v, by the symmetry of the codebook, and
    E‖report/m − v‖² = 1/m² − 1. Sets of v and −v do not meet, as 2s ≤ K.

    Theorem: PrivUnit, uniform on a cap or outside of it, is ε-LDP [Bhowmick et al. 2018, Thm 2.2]
    Theorem: with the best cap it has the least error of all unbiased ε-LDP randomizers
        [Asi, Feldman & Talwar 2022, Thm 2]
    """

    dimension: int
    odds: Odds
    near: int
    codebook: int = CODEBOOK

    scheme = "unit-vector"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", checks.whole("dimension", self.dimension, 2, MOST_DIMENSIONS))
        object.__setattr__(self, "codebook", checks.whole("codebook", self.codebook, 2, 1 << 20))
        object.__setattr__(self, "near", checks.whole("near", self.near, 1, self.codebook // 2))
        require_information(self.odds)
        check_total(self.total)

    @staticmethod
    def of(dimension: int, eps: float, codebook: int = CODEBOOK) -> "UnitVector":
        """The randomizer whose near set has the best size."""
        d, K = checks.whole("dimension", dimension, 2, MOST_DIMENSIONS), checks.whole("codebook", codebook, 2, 1 << 20)
        odds = Odds.of(eps, K)
        sizes = sorted(
            {max(1, round(K / 2 * 0.7**i)) for i in range(40)} | {max(1, K // 2 - i * K // 64) for i in range(20)}
        )
        found = [UnitVector(d, odds, s, K) for s in sizes if 1 <= s <= K // 2]
        return min(found, key=lambda one: -one.scale)

    @property
    def total(self) -> int:
        return self.near * self.odds.truth + (self.codebook - self.near) * self.odds.lie

    @property
    def classes(self) -> Classes:
        unit = Fraction(self.odds.lie, self.total)
        return Classes(self.near * unit, Fraction(0), (self.codebook - 2 * self.near) * unit)

    @property
    def bits(self) -> float:
        return 64.0 + (self.codebook - 1).bit_length()

    @property
    def description(self) -> dict[str, object]:
        sizes = {"dimension": self.dimension, "near": self.near, "codebook": self.codebook}
        return {"scheme": self.scheme, **sizes, "truth": self.odds.truth, "lie": self.odds.lie}

    @cached_property
    def scale(self) -> float:
        """m: the mean of ⟨report, v⟩. Near vectors have the mean of the s largest of K coordinates."""
        chance = self.near * self.odds.truth / self.total
        top = mean_of_largest(self.dimension, self.codebook, self.near)
        return top * (chance - (1 - chance) * self.near / (self.codebook - self.near))

    @property
    def variance(self) -> float:
        """E‖estimate − v‖² of one report: 1/m² − 1."""
        return 1 / self.scale**2 - 1

    def randomize(self, vector: ArrayLike) -> tuple[int, int]:
        """(seed, index) for one vector, of any length but 0: only its direction counts."""
        v = np.asarray(vector, np.float64)
        if v.shape != (self.dimension,) or not np.all(np.isfinite(v)) or not np.any(v):
            raise InvalidParameter(
                f"give one vector of {self.dimension} finite numbers, not all 0.\n"
                f"  found:  an array of shape {v.shape}, or NaN, infinity or zeros in it\n"
                "  do:     scale vectors to length 1, and replace zero vectors by a public direction"
            )
        seed = self.source.bits(64)
        return seed, self.choose(rank_codebook(v / np.max(np.abs(v)), seed, self.codebook), self.below)

    def choose(self, order: NDArray[np.int64], below: Below) -> int:
        """The near set is the first `near` of the order."""
        u, inside = below(self.total), self.near * self.odds.truth
        at = u // self.odds.truth if u < inside else self.near + (u - inside) // self.odds.lie
        return int(order[at])

    def answer(self, value: int, below: Below) -> int:
        """For tests: the order of a codebook is a rotation by `value`."""
        return self.choose(np.roll(np.arange(self.codebook), -value), below)

    def estimate(self, reports: "list[tuple[int, int]]") -> Floats:
        """The mean of the people's directions, without bias."""
        if not reports or any(not (0 <= seed < 1 << 64 and 0 <= at < self.codebook) for seed, at in reports):
            raise InvalidParameter(
                "give pairs (seed, index) as `randomize` returns them.\n  found:  none, or numbers out of range\n"
                "  do:     count what is malformed apart"
            )
        total = np.zeros(self.dimension)
        for seed, at in reports:
            total += vectors(seed, self.codebook, self.dimension)[at]
        return floats(total / (len(reports) * self.scale))


def vectors(seed: int, count: int, dimension: int) -> Floats:
    """The public codebook of a seed: uniform directions. They need not be secret, only the same on both sides."""
    drawn = np.random.Generator(np.random.Philox(key=seed)).standard_normal((count, dimension))
    return floats(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def rank_codebook(v: Floats, seed: int, count: int) -> NDArray[np.int64]:
    """The codebook's numbers by falling ⟨z, v⟩; equal ones in the order of their numbers."""
    return np.argsort(-(vectors(seed, count, v.size) @ v), kind="stable")


@lru_cache(maxsize=4096)
def mean_of_largest(dimension: int, count: int, size: int) -> float:
    """E of the average of the `size` largest of `count` coordinates of uniform directions: by a fine sum.

    (count/size)·∫ t·g(t)·P(Bin(count − 1, 1 − G(t)) ≤ size − 1) dt with the density g ∝ (1 − t²)^{(d−3)/2}.
    """
    half = min(1.0, 12 / math.sqrt(dimension))
    t = np.linspace(-half, half, 20_001)[1:-1]
    density = np.exp((dimension - 3) / 2 * np.log1p(-t * t) - betaln(0.5, (dimension - 1) / 2))
    above = np.where(
        t > 0,
        0.5 * betainc((dimension - 1) / 2, 0.5, 1 - t * t),
        1 - 0.5 * betainc((dimension - 1) / 2, 0.5, 1 - t * t),
    )
    kept = bdtr(size - 1, count - 1, np.clip(above, 0.0, 1.0)) if count > 1 else np.ones_like(t)
    return float(count / size * np.sum(t * density * kept) * (t[1] - t[0]))
