"""How far a number made of noisy parts may be off: exactly for sums of noise, from above for ratios of them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtr, ndtri

from sfumato.aggregates.joint_law import Boxes, cumulative_in_boxes, deviation_of
from sfumato.aggregates.price import Noise
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.joint_laplace import JointLaplace, OneOf
from sfumato.noise.sampler import LARGEST
from sfumato.rounding import round_up

Floats = NDArray[np.float64]
CELLS, COARSE = 500, 160  # to a standard deviation, at first; of joint noise, which has a law for each box
SHORT = 0.001
BITS = 128


@dataclass(frozen=True)
class CombinedGaussian:
    """The noise of a combination of released numbers: a normal variable, and at most this rounding error beside it."""

    sigma: float
    rounding_error: float


Terms = tuple[tuple[Fraction, Noise | CombinedGaussian], ...]  # independent noise, each with a factor


@dataclass(frozen=True)
class Spread:
    """|noise| ≤ radius with the probability `coverage`."""

    radius: float
    coverage: float


@lru_cache(maxsize=4096)
def spread(terms: Terms, confidence: float) -> Spread:
    """The least radius that holds Σ cⱼKⱼ with this probability, and the probability with which it does.

    One term is exact. Of several, each is put into cells, which hold single values where there are not too many. Then
    what is counted never exceeds the true probability. Cells are made smaller once if it may be SHORT below it.
    """
    some = tuple((abs(c), noise) for c, noise in terms if c and not isinstance(noise, CombinedGaussian))
    if len(some) < sum(c != 0 for c, _ in terms):
        return bounded_spread(terms, confidence)
    if not some:
        return Spread(0.0, 1.0)
    if len(some) == 1:
        ((factor, noise),) = some
        steps = round(noise.error(confidence))
        return Spread(round_up(factor * steps), 1 - float(noise.law().beyond(steps, BITS)))
    below = math.lcm(*(c.denominator for c, _ in some))
    whole, units = tuple((int(c * below), noise) for c, noise in some), Fraction(deviation(some)) * below
    for cells in (COARSE,) if joint_mechanism(some) else (CELLS, 8 * CELLS):
        g = max(1, int(units / cells))
        cut = Cut.of(whole, g)
        radius = cut.radius(confidence)
        if g == 1 or cut.upper_probability(radius) - cut.lower_probability(radius) < SHORT:
            break
    return Spread(round_up(Fraction(radius + cut.spare, below)), cut.lower_probability(radius))


@dataclass(frozen=True)
class Cut:
    """The law of ΣVⱼ⁻, where Vⱼ = aⱼKⱼ and Vⱼ⁻ = g⌊Vⱼ/g⌋: it begins at `first`, and sums[i] lies below first + i·g."""

    sums: Floats
    first: int
    g: int
    slack: int  # ΣVⱼ is at most this far above ΣVⱼ⁻
    spare: int = 0  # and may be so much farther from 0 than what is counted

    @staticmethod
    def of(terms: tuple[tuple[int, Noise], ...], g: int) -> "Cut":
        """Of independent noise, or a mean over boxes in each of which joint noise is independent."""
        boxes = boxes_of(terms)
        cells = [cell_ends(factor, noise, g) for factor, noise in terms]
        count = sum(len(ends) - 2 for ends in cells) + 1
        length = next_fast_len(count, real=True)
        product = np.zeros(length // 2 + 1, np.complex128)
        for chances, sides in boxes.batches():
            found: NDArray[np.complex128] | float = 1.0
            for (_, noise), ends in zip(terms, cells, strict=True):
                found = found * rfft(np.diff(cumulative(noise, ends, sides)), length)
            product += np.einsum("i,ij->j", chances, np.reshape(found, (len(chances), -1)))
        sums = np.concatenate([[0.0], np.cumsum(np.maximum(irfft(product, length)[:count], 0.0))])
        first = -sum(len(ends) // 2 - 1 for ends in cells) * g
        return Cut(sums, first, g, (g - 1) * len(terms), boxes.spare * sum(factor for factor, _ in terms))

    def between(self, low: int, high: int) -> float:
        """P(low ≤ ΣV⁻ ≤ high)."""
        count = len(self.sums) - 1
        start = min(max(-((self.first - low) // self.g), 0), count)
        stop = min(max((high - self.first) // self.g + 1, 0), count)
        return float(self.sums[stop] - self.sums[start]) if stop > start else 0.0

    def lower_probability(self, m: int) -> float:
        """Never above P(|ΣV| ≤ m)."""
        return self.between(-m, m - self.slack)

    def upper_probability(self, m: int) -> float:
        """Never below it, but for what lies beyond all cells."""
        return self.between(-m - self.slack, m)

    def radius(self, confidence: float) -> int:
        """The least m that is seen to hold so much."""
        low, high = 0, -self.first + self.slack
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.lower_probability(middle) >= confidence else (middle + 1, high)
        return low


def joint_mechanism(terms: Iterable[tuple[Fraction | int, Noise]]) -> JointLaplace | None:
    """The joint noise of these terms; None if they are independent."""
    return next((noise.joint for _, noise in terms if isinstance(noise, OneOf)), None)


def boxes_of(terms: Iterable[tuple[int, Noise]]) -> Boxes:
    """The boxes of joint noise; for independent noise a single one, which is not read."""
    found = joint_mechanism(terms)
    return Boxes.of(found.law) if found else Boxes(np.ones(1), np.zeros((1, 0)))


def step_deviation(noise: Noise) -> float:
    """About one standard deviation, never much less, in steps."""
    if isinstance(noise, OneOf):
        return deviation_of(noise)
    return math.hypot(noise.sigma, 0.5) if isinstance(noise, Gaussian) else math.sqrt(2) * (noise.scale + 0.5)


def deviation(terms: Iterable[tuple[Fraction, Noise]]) -> float:
    return math.sqrt(math.fsum((float(c) * step_deviation(noise)) ** 2 for c, noise in terms))


def cell_ends(factor: int, noise: Noise, g: int) -> Floats:
    """The largest K with factor·K < i·g, for i = −n … n + 1: beyond them there is less than 10⁻¹⁰, or no box.

    As doubles: of lattices so fine that these round it, a rounding is nothing beside a cell.
    """
    if isinstance(noise, OneOf):
        most = int(Boxes.of(noise.joint.law).sides[-1, noise.place])
    else:
        most = int(step_deviation(noise) * (9 if isinstance(noise, Gaussian) else 17))
    far = factor * most // g + 1
    if max(factor, (far + 1) * g) < LARGEST:
        edges = np.arange(-far, far + 2, dtype=np.int64) * g
        return (-(-edges // factor) - 1).astype(np.float64)
    return np.array([float(-(-i * g // factor) - 1) for i in range(-far, far + 2)])


def cumulative(noise: Noise, k: Floats, sides: Floats) -> Floats:
    """P(K ≤ k); of joint noise in each box, a row for each."""
    if isinstance(noise, OneOf):
        return cumulative_in_boxes(noise, k, sides)
    if isinstance(noise, Gaussian):
        found: Floats = ndtr((k + 0.5) / noise.sigma)
        return found
    tail = np.exp(-np.where(k < 0, -k, k + 1) / noise.scale) / (1 + math.exp(-1 / noise.scale))
    return np.where(k < 0, tail, 1 - tail)


def bounded_spread(terms: Terms, confidence: float) -> Spread:
    """An upper bound on the spread: normal noise, and the most that rounding can add."""
    reach = Reach.of(terms, (), confidence)
    return Spread(math.sqrt(reach.fixed) + reach.least, confidence)


# ---- ratios ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reach:
    """|N + t·M| ≤ √(fixed + growing·t²) + least + slope·|t| with a given probability at least, for any one t."""

    fixed: float
    growing: float
    least: float
    slope: float

    @staticmethod
    def of(constant: Terms, rising: Terms, confidence: float) -> "Reach":
        """For independent N = Σ cⱼKⱼ and M = Σ dⱼKⱼ.

        Gaussian: Kⱼ = round(Nⱼ) is within ½ of Nⱼ, and Σ cⱼNⱼ is normal. Laplace: all |Kⱼ| ≤ their radius at once.
        """
        if all(isinstance(noise, Gaussian | CombinedGaussian) for _, noise in constant + rising):
            z = float(ndtri((1 + confidence) / 2)) * (1 + 1e-12)
            normal = [[(float(c), n) for c, n in terms if isinstance(n, Gaussian | CombinedGaussian)]
                      for terms in (constant, rising)]  # fmt: skip
            squares = [math.fsum((z * c * n.sigma) ** 2 for c, n in terms) for terms in normal]
            rounding = [math.fsum(abs(c) * (0.5 if isinstance(n, Gaussian) else n.rounding_error) for c, n in terms)
                        for terms in normal]  # fmt: skip
            return Reach(*squares, *rounding)
        each = 1 - (1 - confidence) / max(1, len(constant) + len(rising))
        ends = [math.fsum(abs(float(c)) * noise_error(n, each) for c, n in terms) for terms in (constant, rising)]
        return Reach(0.0, 0.0, *ends)

    def about(self, spare: float) -> "Reach":
        """For a t that is known up to ± spare: a norm of (1, |t| + spare) is at most that of (1, |t|) and of spare."""
        more = (math.sqrt(self.growing) + self.slope) * spare
        return Reach(self.fixed, self.growing, self.least + more, self.slope)

    def lowest(self, d: float, n: float) -> float:
        """The least t with d − t·n ≤ reach(t), for a steep n: the root of a quadratic on the side of 0 where it lies.

        With s = sign(t): (d − least − t·(n + s·slope))² = fixed + growing·t².
        """
        d -= self.least
        m = n + self.slope if d > math.sqrt(self.fixed) else n - self.slope
        a = m * m - self.growing
        inner = self.fixed * a + self.growing * d * d
        return (d * m - math.sqrt(max(0.0, inner))) / a


@lru_cache(maxsize=4096)
def noise_error(noise: Noise | CombinedGaussian, confidence: float) -> float:
    if isinstance(noise, CombinedGaussian):
        return float(ndtri((1 + confidence) / 2)) * (1 + 1e-12) * noise.sigma + noise.rounding_error
    return noise.error(confidence)


def ratio(low: float, high: float, n: float, reach: Reach) -> tuple[float, float]:
    """Every t for which some d between low and high has |d − t·n| ≤ reach(t), or all numbers.

    Theorem: if |D − t·n| ≤ reach(t) with probability 1 − α at the true t, this holds it so often [Fieller 1954]
    Proof. For n steeper than the reach, d − t·n − reach(t) falls and t·n − d − reach(t) rises in t; so the set is an
    interval, from its least t at d = low to its largest at d = high. Otherwise nothing is left out. ∎
    """
    if n <= (math.sqrt(reach.growing) + reach.slope) * (1 + 1e-9):
        return -math.inf, math.inf
    return reach.lowest(low, n), -reach.lowest(-high, n)


def clip(x: float, low: float, high: float) -> float:
    """The number of [low, high] next to x."""
    return min(max(x, low), high)
