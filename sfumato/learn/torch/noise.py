"""Noise on sums of clipped gradients: whole numbers on a public lattice, drawn exactly. One class for one kind.

Sums come in units of the clip norm, as multiples of 2^-k. A kind of noise says what a run costs and starts a session,
which turns the exact multiples of each step into noisy ones. torch's generator takes no part.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.numeric import Floats
from sfumato.noise.draw_table import Integers
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.noise.gaussian import rounded_gaussian
from sfumato.noise.sampler import Sampler, saturating_sum
from sfumato.rounding import quotient_up, sqrt_up, sum_up
from sfumato.sampling import Sampling
from sfumato.sampling.fixed_cycles import FixedCycles
from sfumato.sampling.shuffled_epochs import ShuffledEpochs

FINE = 30  # bits of the lattice below the standard deviation: 2^-30 σ is a cell
FINEST = 38  # bits of the lattice below the clip norm: sums of 2^24 clipped gradients still fit 64 bits
MIXED = 44  # bits of a coordinate that banded noise mixes: larger sums are clamped, which moves no one further


@dataclass(frozen=True)
class Move:
    """How far one example moves what a step releases, in units of the clip norm, and a further μ² per step."""

    size: float  # of the sum
    aside: Fraction = Fraction(0)  # μ² of what is released beside the sum


class Noise(ABC):
    """A kind of noise; `multiplier` is its standard deviation in units of the clip norm."""

    multiplier: float

    @property
    def bits(self) -> int:
        """k of the lattice 2^-k: public, from the multiplier alone."""
        return min(FINEST, FINE - int(np.floor(np.log2(self.multiplier))))

    @abstractmethod
    def loss(self, sampling: Sampling, move: Move, steps: int) -> PrivacyLoss:
        """What `steps` steps cost together, composed optimally."""

    @abstractmethod
    def begin(self, source: Source = SYSTEM) -> "Session":
        """A session that adds the noise of one run."""


class Session(ABC):
    """The noise of one run."""

    @abstractmethod
    def release(self, multiples: Integers) -> Integers:
        """Noisy multiples of the next step, all parameters in one row."""


def step_loss(multiplier: float, move: Move, sampling: Sampling) -> GaussianLoss:
    """One Gaussian release: the sum, and what goes with it. A replaced example moves both twice as far."""
    size, aside = Fraction(move.size) * sampling.moves, move.aside * sampling.moves**2
    mu = quotient_up(size, multiplier)
    return GaussianLoss(sqrt_up(Fraction(mu) ** 2 + aside) if aside else mu, relation=sampling.relation)


def sampler_of(deviation: Fraction, source: Source) -> Sampler:
    """Exact Gaussian noise on the integers; tables are cached by the law."""
    return Sampler(rounded_gaussian(deviation), source=source)


@dataclass(frozen=True)
class Independent(Noise):
    """Fresh Gaussian noise in each step: DP-SGD.

    Theorem: Gaussian noise on a sampled, clipped sum [Abadi et al. 2016; sampling by the sampler's theorem]
    """

    multiplier: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "multiplier", checks.positive("noise", self.multiplier))

    def loss(self, sampling: Sampling, move: Move, steps: int) -> PrivacyLoss:
        return sampling.repeat(step_loss(self.multiplier, move, sampling), steps)

    def begin(self, source: Source = SYSTEM) -> "IndependentSession":
        return IndependentSession(sampler_of(Fraction(self.multiplier) * 2**self.bits, source))


class IndependentSession(Session):
    """Fresh noise each time."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler

    def release(self, multiples: Integers) -> Integers:
        return self.sampler.about(multiples)


@dataclass(frozen=True)
class Tree(Noise):
    """The binary tree of DP-FTRL: prefix sums of one epoch have noise that grows like its logarithm, not its root.

    The noise of a step is the difference of the noises of two prefix sums, each made of as many node noises as the step
    has binary ones. An example takes part in one step of an epoch, thus in at most ⌊log₂ T⌋ + 1 nodes; the tree starts
    anew in each epoch. No amplification is needed: use it with sf.FixedCycles or sf.ShuffledEpochs.

    Theorem: all prefix sums are post-processing of the noisy nodes [Kairouz et al. 2021; Chan, Shi & Song 2011]
    """

    multiplier: float
    epoch: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "multiplier", checks.positive("multiplier", self.multiplier))
        object.__setattr__(self, "epoch", checks.whole("epoch", self.epoch, 1))

    def loss(self, sampling: Sampling, move: Move, steps: int) -> PrivacyLoss:
        cycle = fixed_period(sampling, "the tree")
        if cycle != self.epoch:
            raise InvalidParameter(
                f"the tree and the sampler must have epochs of one length.\n  found:  {self.epoch} and {cycle} steps\n"
                f"  do:     give Tree(multiplier, epoch={cycle})"
            )
        one = step_loss(self.multiplier, move, sampling)
        levels = self.epoch.bit_length()
        mu = sqrt_up(Fraction(one.mu) ** 2 * levels)
        return -(-steps // self.epoch) * GaussianLoss(mu, relation=sampling.relation)

    def begin(self, source: Source = SYSTEM) -> "TreeSession":
        return TreeSession(self, sampler_of(Fraction(self.multiplier) * 2**self.bits, source))


class TreeSession(Session):
    """The noises of the nodes that the prefix sum is made of."""

    def __init__(self, noise: Tree, sampler: Sampler) -> None:
        self.noise, self.sampler, self.step = noise, sampler, 0
        self.nodes: list[Integers | None] = []

    def release(self, multiples: Integers) -> Integers:
        step = self.step % self.noise.epoch + 1
        if step == 1:
            self.nodes = [None] * self.noise.epoch.bit_length()
        self.step += 1
        nodes = self.nodes
        level = (step & -step).bit_length() - 1  # the node that ends here replaces all lower ones
        change = self.sampler.draw(multiples.size)
        fresh = change.copy()
        for lower in range(level):
            if (old := nodes[lower]) is not None:
                change -= old
            nodes[lower] = None
        nodes[level] = fresh
        return saturating_sum(multiples, change)


@dataclass(frozen=True)
class Banded(Noise):
    """Correlated noise by a banded matrix: each step releases Σ_j c_j·g_{t−j} + z_t, and solves for g.

    c_j are the first `band` coefficients of (1 − x)^{−1/2}, as multiples of 2^-12, so that prefix sums of what is
    solved for have little noise. An example that takes part every `period` ≥ band steps moves disjoint bands: k of
    them by Δ·√(k·Σc_j²). The release is exact on the lattice; solving for g is post-processing.

    Theorem: the factorisation mechanism G ↦ C⁻¹(CG + z) costs what CG + z does [Denisov et al. 2022, Thm 2.1]
    Theorem: banded columns of one example do not overlap if it returns after `band` steps [Choquette-Choo et al. 2023]
    """

    multiplier: float
    band: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "multiplier", checks.positive("multiplier", self.multiplier))
        object.__setattr__(self, "band", checks.whole("band", self.band, 1, 1024))

    @property
    def bits(self) -> int:
        return min(FINE, super().bits)

    @property
    def coefficients(self) -> tuple[int, ...]:
        """2^12·c_j, rounded to whole numbers; the first is 2^12."""
        found, exact = [], Fraction(1)
        for j in range(self.band):
            found.append(round(exact * 2**12))
            exact *= Fraction(2 * j + 1, 2 * j + 2)
        return tuple(found)

    def loss(self, sampling: Sampling, move: Move, steps: int) -> PrivacyLoss:
        cycle = fixed_period(sampling, "banded noise")
        if not isinstance(sampling, FixedCycles) or cycle < self.band:
            raise InvalidParameter(
                "banded noise needs examples that return after at least `band` steps.\n"
                f"  found:  band = {self.band}, {sampling!r}\n  do:     use sf.FixedCycles with as many batches"
            )
        column = Fraction(sum(c * c for c in self.coefficients), 2**24)
        one = step_loss(self.multiplier, move, sampling)
        return -(-steps // cycle) * GaussianLoss(sqrt_up(Fraction(one.mu) ** 2 * column), relation=sampling.relation)

    def begin(self, source: Source = SYSTEM) -> "BandedSession":
        return BandedSession(self, sampler_of(Fraction(self.multiplier) * 2 ** (self.bits + 12), source))


class BandedSession(Session):
    """The last sums, exact and as solved for."""

    def __init__(self, noise: Banded, sampler: Sampler) -> None:
        self.noise, self.sampler = noise, sampler
        self.exact: list[Integers] = []
        self.solved: list[Floats] = []

    def release(self, multiples: Integers) -> Integers:
        c, exact, solved = self.noise.coefficients, self.exact, self.solved
        exact.insert(0, np.clip(multiples, -(1 << MIXED), 1 << MIXED))  # Σ c_j < 2^18: mixed ones fit 64 bits
        del exact[self.noise.band :]
        mixed = np.zeros_like(multiples)  # in units of 2^-12 of the lattice: still whole
        for k, sums in zip(c, exact, strict=False):
            mixed += k * sums
        estimate: Floats = self.sampler.about(mixed) / 2.0**12
        for k, values in zip(c[1:], solved, strict=False):
            estimate -= k / 2**12 * values
        solved.insert(0, estimate)
        del solved[self.noise.band - 1 :]
        return np.rint(estimate).astype(np.int64)


def fixed_period(sampling: Sampling, what: str) -> int:
    """Steps after which an example returns, for samplers that say so."""
    if isinstance(sampling, FixedCycles | ShuffledEpochs):
        return sampling.span
    raise InvalidParameter(
        f"{what} is about examples that take part once in an epoch.\n  found:  {sampling!r}\n"
        "  do:     use sf.FixedCycles or sf.ShuffledEpochs"
    )


def noise_of(noise: Noise | float) -> Noise:
    """A number means independent noise."""
    return noise if isinstance(noise, Noise) else Independent(noise)


def total_move(growth: float, aside: Fraction = Fraction(0)) -> Move:
    """One clipped gradient, and what rounding adds to it."""
    return Move(sum_up(1, growth), aside)
