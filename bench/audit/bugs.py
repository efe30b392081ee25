"""Bugs that libraries had, in a few lines each: how many runs does the auditor need for them? Never use these.

A side is what the mechanism is told: 0 for one data set, 1 for its neighbour. Noise lies on a grid of 2⁻¹⁰, so that
bits are the point only where they are meant to be. `table` is the number of runs on each side at which an earlier
auditor caught the bug ten times out of ten, at confidence 0.999.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Draw = Callable[[int, int, Generator], NDArray[np.float64]]
SIGMA = 2.4988  # the least noise that is (1, 10⁻³)-DP at distance 1


@dataclass(frozen=True)
class Bug:
    """What it claims, and how it draws."""

    name: str
    words: str
    table: int
    draw: Draw
    epsilon: float = 1.0
    delta: float = 0.0


@dataclass(frozen=True)
class Seeded:
    """A bug with dice of its own."""

    bug: Bug
    rng: Generator

    def many(self, side: int, n: int) -> NDArray[np.float64]:
        return self.bug.draw(side, n, self.rng)


def grid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(x * 1024) / 1024


def laplace(values: tuple[list[float], list[float]], scale: float) -> Draw:
    """Each number of one of two rows, with noise."""

    def draw(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
        row = np.array(values[side])
        return grid(row + rng.laplace(scale=scale, size=(n, len(row))))

    return draw


def gaussian(values: tuple[list[float], list[float]], sigma: float) -> Draw:
    def draw(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
        row = np.array(values[side])
        return grid(row + rng.normal(scale=sigma, size=(n, len(row))))

    return draw


def one_of(chances: tuple[list[float], list[float]]) -> Draw:
    """A place, with these probabilities."""

    def draw(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
        p = np.array(chances[side])
        return rng.choice(len(p), size=n, p=p / p.sum()).astype(float)

    return draw


def weights(scores: list[float]) -> list[float]:
    return [math.exp(u) for u in scores]


def bits(p: tuple[list[float], list[float]]) -> Draw:
    return lambda side, n, rng: (rng.random((n, len(p[side]))) < np.array(p[side])).astype(float)


def sparse_vector(
    answers: tuple[list[float], list[float]], scales: tuple[float, float], most: int, shown: bool = False
) -> Draw:
    """Noisy threshold, noisy queries, cut off after `most` hits; `shown` gives out the noisy answer."""

    def draw(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
        q = np.array(answers[side])
        level = rng.laplace(scale=scales[0], size=(n, 1))
        noisy = q + (rng.laplace(scale=scales[1], size=(n, len(q))) if scales[1] else 0.0)
        hits = noisy >= level
        values = np.where(hits, grid(noisy), -np.inf) if shown else hits.astype(float)
        return np.where(np.cumsum(hits, axis=1) - hits < most, values, np.nan)

    return draw


def noisy_max(scores: tuple[list[float], list[float]], scale: float, shown: bool) -> Draw:
    def draw(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
        noisy = grid(np.array(scores[side]) + rng.laplace(scale=scale, size=(n, len(scores[side]))))
        place = noisy.argmax(axis=1).astype(float)
        return np.stack([place, noisy.max(axis=1)], axis=1) if shown else place

    return draw


def true_count(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """The mean of two or three values: noisy sum over true count."""
    return grid(1.0 + rng.laplace(size=n)) / (2 + side)


def new_key(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """A group that one person founded is shown, or not."""
    noise = grid(rng.laplace(size=(n, 2)))
    return np.where([True, side == 1], noise + 1, np.nan)


def exact_having(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """Only groups of at least ten are shown, by the exact count."""
    return np.where(side == 1, grid(10 + rng.laplace(size=n)), np.nan)


def few_thresholds(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """Twenty groups of one person, each shown with probability δ = 0.01."""
    return (rng.random((n, 20)) < 0.01 * side).astype(float)


def wrapped(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    total = np.array([2**63 - 2, -(2**63)], np.float64)[side]
    return np.asarray(total + rng.laplace(size=n), np.float64)


def bounds_from_data(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """Ten values of 1, and one of 20 that widens the bounds and the noise."""
    scale = (1.0, 20.0)[side]
    return grid(10.0 + scale * side + rng.laplace(scale=scale, size=n))


def raises_on_one(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    return np.where(side == 1, np.nan, grid(rng.laplace(size=n)))


def local_median(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """The median of 0, 0, 0, 0, 9 has local sensitivity 0 or 9."""
    return grid(rng.laplace(scale=(0.0, 9.0)[side], size=n))


def naive(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    return side + rng.laplace(size=n)


def same_noise(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    noise = grid(rng.laplace(scale=2.0, size=n))
    return np.stack([5 + noise, 3 + side + noise], axis=1)


def seeded_by_data(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    return np.full(n, side + float(np.random.default_rng(side).laplace()))


def sixteen_bits(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """Inverse distribution function of a uniform number of 16 bits."""
    u = (rng.integers(0, 2**16, size=n) + 0.5) / 2**16 - 0.5
    return np.round((side - np.sign(u) * np.log1p(-2 * np.abs(u))) * 2**20) / 2**20


def shuffled(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """One epoch of 100 batches, σ = 0.7, each with others' −1; one person's 1 (or 0) is in exactly one of them."""
    x = rng.normal(scale=0.7, size=(n, 100)) - 1
    x[np.arange(n), rng.integers(0, 100, size=n)] += 1 + side
    return np.stack([x.max(axis=1), np.sort(x, axis=1)[:, -5:].sum(axis=1), x.sum(axis=1)], axis=1).round(3)


def untested(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """Propose-test-release that tests the exact distance."""
    return np.full(n, np.nan) if side else grid(rng.laplace(size=n))


def unclear(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """A stable value is given out if distance + noise > 0, instead of > log(1/δ)/ε."""
    return np.where(rng.laplace(size=n) > 0, float(side), np.nan)


def clipped_mean(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """The mean gradient is clipped, not each one: one person of norm 10 among ten moves it by 1 instead of 1/10."""
    return grid(np.array([0.0, 1.0])[side] + rng.normal(scale=SIGMA / 10, size=(n, 1)))


def growing_noise(side: int, n: int, rng: Generator) -> NDArray[np.float64]:
    """Noise in proportion to the value itself: N(3, 3²) against N(4, 4²)."""
    return grid((3 + side) * (1 + rng.normal(size=n)))


UP, DOWN = [0.0] * 10 + [1.0] * 10, [1.0] * 10 + [0.0] * 10
E = math.e

BUGS = [
    Bug("A1", "Laplace scale = ε/Δ", 1024, laplace(([0], [1]), 0.5), 0.5),
    Bug("A2", "histogram: Δ of add/remove under replacement", 4096, laplace(([1, 0], [0, 1]), 1.0)),
    Bug("A3", "a variance passed for σ, Δ = 0.1", 2048, gaussian(([0], [0.1]), (SIGMA / 10) ** 2), 1.0, 1e-3),
    Bug("A5", "Laplace with L2 distance, 8 columns", 8192, laplace(([0] * 8, [1] * 8), math.sqrt(8))),
    Bug("A6", "Gaussian that forgets 3 of 4 columns", 32768, gaussian(([0] * 4, [1] * 4), SIGMA), 1.0, 1e-3),
    Bug("A7", "8-ary response with the binary formula", 256,
        one_of(([E / (1 + E)] + [1 / (7 * (1 + E))] * 7, [1 / (7 * (1 + E)), E / (1 + E)] + [1 / (7 * (1 + E))] * 6))),
    Bug("A8", "unary encoding, ε for each bit", 2048,
        bits(([E / (1 + E), 1 / (1 + E), 1 / (1 + E)], [1 / (1 + E), E / (1 + E), 1 / (1 + E)]))),
    Bug("A9", "exponential mechanism without the 2", 8192, one_of((weights([1, 0, 0, 0]), weights([0, 1, 1, 1])))),
    Bug("A10", "scale 10 % small", 131072, laplace(([0], [1]), 0.9)),
    Bug("B1", "sparse vector that shows the answer", 8192,
        sparse_vector(([0] * 5 + [1], [1] * 5 + [0]), (2, 2), 1, shown=True)),
    Bug("B2", "sparse vector, noise not times c", 8192, sparse_vector((UP, DOWN), (4, 4 / 3), 10)),
    Bug("B3", "sparse vector without query noise", 512, sparse_vector(([0, 1], [1, 0]), (2, 0), 2)),
    Bug("B4", "sparse vector without end", 2048,
        sparse_vector(([0] * 40, [1] * 20 + [-1] * 20), (2, 2), 40)),
    Bug("B5", "noisy max shows the value", 4096, noisy_max(([0] * 5, [1] * 5), 2.0, shown=True), 0.5),
    Bug("B6", "noisy max with half the noise", 8192, noisy_max(([1, 0, 0, 0], [0, 1, 1, 1]), 1.0, shown=False)),
    Bug("C1", "sum without clipping", 1024, laplace(([0], [4]), 1.0)),
    Bug("C2", "NaN survives", 2048, raises_on_one),
    Bug("C3", "mean: noisy sum over true count", 1024, true_count),
    Bug("C4", "keys without a threshold", 512, new_key),
    Bug("C5", "HAVING by the exact count", 64, exact_having),
    Bug("C6", "threshold forgets 20 groups", 1024, few_thresholds, 1.0, 0.01),
    Bug("C7", "join with fan-out 5", 1024, laplace(([0], [5]), 1.0)),
    Bug("C8", "Δ = high − low for add/remove", 1024, laplace(([0], [60]), 10.0)),
    Bug("C9", "sum wraps", 64, wrapped),
    Bug("C10", "bounds from data", 1024, bounds_from_data),
    Bug("C11", "an error for one row", 64, raises_on_one),
    Bug("C12", "median by local sensitivity", 64, local_median),
    Bug("D1", "Laplace in doubles", 2048, naive),
    Bug("D2", "one noise for two questions", 1024, same_noise),
    Bug("D3", "noise seeded by the data", 64, seeded_by_data),
    Bug("D4", "noise of 16 bits", 16384, sixteen_bits),
    Bug("E1", "ten answers, one charge", 1024, laplace(([0] * 10, [1] * 10), 1.0)),
    Bug("E2", "mean that spends twice", 4096, laplace(([0, 0], [1, 1]), 1.0)),
    Bug("E3", "overlapping parts taken for disjoint", 2048, laplace(([0] * 3, [1] * 3), 1.0)),
    Bug("E4", "shuffling under Poisson accounting", 4096, shuffled, 1.028, 1e-3),
    Bug("E4b", "all rows under Poisson accounting", 65536, gaussian(([0], [1]), 0.7), 1.028, 1e-3),
    Bug("E5", "propose-test-release, exact test", 128, untested),
    Bug("E6", "stable value without log(1/δ)", 128, unclear),
    Bug("E7", "mean gradient clipped", 2048, clipped_mean, 1.0, 1e-3),
    Bug("E8", "noise in proportion to the value", 65536, growing_noise, 1.87, 1e-3),
]  # fmt: skip
