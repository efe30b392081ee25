"""A running count that is private at every step: the binary tree."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import Exhausted, InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.base import Additive
from sfumato.mechanisms.additive.combined_noise import sum_radius
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import STREAM, Example, Neighbours
from sfumato.mechanisms.private_inputs import clamp_integer, read_numbers, read_stream_value
from sfumato.mechanisms.streams.mechanism_state import Session
from sfumato.noise.draw_table import Integers
from sfumato.noise.monotone import open_probability
from sfumato.rounding import round_up
from sfumato.sensitivity import Sensitivity

MOST_READY = 1 << 16  # draws


@dataclass(frozen=True)
class TreeCounter(Mechanism[ArrayLike, Integers]):
    """The sum of all whole numbers so far, after each of at most `horizon` steps, with noise that grows like log steps.

    Sums over the dyadic intervals [j·2^h, (j+1)·2^h), j even, each get noise of their own, once; the sum of the first t
    numbers is made of as many of them as t has binary ones. A step belongs to at most one interval of each length 2^h ≤
    horizon: one person who changes one step by Δ moves at most ⌊log₂ horizon⌋ + 1 intervals by Δ each, and everything
    else is made of these. Later numbers may depend on earlier answers, since composition may.

    Theorem: the binary tree releases all running counts by log₂ T noisy sums per step [Chan, Shi & Song 2011, Thm 3.5;
      Dwork, Naor, Pitassi & Rothblum 2010]

    >>> from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
    >>> counter = TreeCounter(horizon=1000, noise=DiscreteLaplace(scale=0.01)).begin()
    >>> [counter.add(number) for number in (3, 0, 5)]
    [3, 3, 8]
    """

    horizon: int
    noise: Additive
    use = "for a count that is published again and again as it grows"

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", checks.whole("horizon", self.horizon, 1))
        if not isinstance(self.noise, Additive) or self.noise.lattice.exponent != 0:
            raise InvalidParameter(
                f"noise must be additive, in steps of 1.\n  found:  {self.noise!r}\n"
                "  do:     give sf.Gaussian(sigma) or sf.DiscreteLaplace(scale)"
            )

    def ready(self, count: int) -> None:
        """Draw the noise of as many runs ahead, as far as a pool holds it."""
        self.noise.ready(min(count * self.horizon, MOST_READY))

    def needs_sensitivity(self) -> bool:
        return True

    @property
    def levels(self) -> int:
        """How many intervals one step belongs to, at most."""
        return self.horizon.bit_length()

    def begin(self) -> "Counter":
        """A counter at 0."""
        return Counter(self)

    def release(self, value: ArrayLike) -> Integers:
        """The noisy running counts of a whole row of numbers."""
        row = read_numbers(value)
        if row.ndim != 1 or row.size > self.horizon:
            raise InvalidParameter(
                f"the numbers must be a row of at most {self.horizon}.\n  found:  an array of shape {row.shape}\n"
                "  do:     give one dimension, and a horizon that is long enough"
            )
        exact: Iterable[int] = [read_stream_value(number) for number in row]
        counter = self.begin()
        return np.fromiter((clamp_integer(counter.add(number)) for number in exact), np.int64, row.size)

    def loss(self, sensitivity: Sensitivity | SupportsFloat = 1) -> PrivacyLoss:
        """As many losses of the noise as there are levels, composed, for a person who changes one step by this much.

        For a person who may change k steps, take `.group(k)` of it.
        """
        found = Sensitivity.of(sensitivity)
        if not found.l0 <= 1:
            raise InvalidParameter(
                f"a person changes one step of the stream.\n  found:  {found}\n"
                "  do:     give the change of one step, and take loss.group(k) for k steps"
            )
        return self.levels * self.noise.loss(Sensitivity(l0=1, linf=found.linf, relation=found.relation))

    def error(self, confidence: float = 0.95) -> float:
        """With at least this probability the count after one step, whichever, is off by at most this: the least.

        The count after t steps has as many noises as t has binary ones, and more noises err more: the worst step has m,
        as many as a number up to the horizon has. Their sum is computed (`sum_radius`): exactly if one noise stays
        within 8192 with all but 1e-16 of the misses, which at 95 % are scales up to 180 of Laplace and 850 of Gaussian
        noise; for larger ones it is above the least by at most (m + 1)/8000 of a noise's reach, about 45 and 9 scales.
        Sums that saturate are left aside.

        Theorem: independent noise that is symmetric and falls away from 0 makes larger errors likelier [Anderson 1955]
        """
        c, m = open_probability(confidence), self.levels
        m -= self.horizon + 1 != 1 << m  # only all ones has so many
        if m == 1:
            return self.noise.error(confidence)
        return round_up(sum_radius(self.noise.law(), m, float(1 - c)))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        one_step = (Neighbours([1, 0, 0, 0], [0, 0, 0, 0]), Neighbours([0, 0, 1, 0], [0, 0, 0, 0]))
        return (
            Example(
                cls(4, DiscreteLaplace(3.0)),
                one_step,
                STREAM,
                step=Fraction(1),
                distance=lambda row, counts: abs(counts[2] - sum(row[:3])),  # two noises, as many as there can be
            ),
        )


class Counter(Session):
    """One run of `TreeCounter`: open sums, and the noisy sums of the intervals that are complete."""

    def __init__(self, mechanism: TreeCounter) -> None:
        super().__init__()
        self._mechanism, self._steps = mechanism, 0
        self._exact, self._noisy = [0] * mechanism.levels, [0] * mechanism.levels
        mechanism.noise.ready(1)

    def __repr__(self) -> str:
        return f"Counter({self._mechanism}, steps={self._steps})"

    @property
    def steps(self) -> int:
        """How many numbers were added."""
        return self._steps

    def add(self, number: int) -> int:
        """Add the next number; the noisy sum of all so far."""
        exact = read_stream_value(number)
        with self.exclusive():
            if self._steps == self._mechanism.horizon:
                raise Exhausted(
                    f"this counter has come to its horizon of {self._mechanism.horizon} steps.\n"
                    "  do:     begin a new one and pay for it, or choose a longer horizon at once"
                )
            self._steps += 1
            level = (self._steps & -self._steps).bit_length() - 1  # the interval that ends here
            self._exact[level] = exact + sum(self._exact[:level])
            self._noisy[level] = self._mechanism.noise.pool.about(self._exact[level])
            self._mechanism.noise.ready(1)  # the next draw, before its number is known
            self._exact[:level], self._noisy[:level] = [0] * level, [0] * level
            return sum(self._noisy)
