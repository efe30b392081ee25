"""Counts with Gaussian noise on a concave transform: the larger a group, the smaller its members' privacy loss."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import INTEGERS, NO_NUMBERS, Example, Inputs, Neighbours
from sfumato.mechanisms.groups.groupwise import GroupwiseLoss, Policy
from sfumato.mechanisms.groups.integer_table import Steps, table_of
from sfumato.mechanisms.groups.transforms import Estimator, Transform
from sfumato.mechanisms.private_inputs import read_numbers
from sfumato.noise import Sampler, rounded_gaussian
from sfumato.noise.draw_table import Integers
from sfumato.noise.monotone import radius
from sfumato.rounding import round_down, round_up

BLOCK = 1 << 17  # counts whose noise is drawn together
MOST_ROWS = 10**6


@dataclass(frozen=True)
class TransformedPolicy(Policy):
    """μ(x) = rise/σ in integer steps: v(x) = μ²/2 and ξ = 0. It is non-increasing in x, so v(0) holds for everybody."""

    steps: Steps
    rows: int

    def mu(self, size: int) -> Fraction:
        return Fraction(self.steps.rise(size, self.rows)) / self.steps.spread

    def member(self, size: int) -> GaussianLoss:
        return GaussianLoss(round_up(self.mu(size)))

    def zcdp(self, size: int) -> tuple[Bound, Bound]:
        v = self.mu(size) ** 2 / 2
        return Bound(round_down(v), round_up(v), "integer table"), Bound(0.0, 0.0, "integer table")

    def everyone(self) -> GaussianLoss:
        return self.member(0)


@dataclass(frozen=True)
class Transformed(Mechanism[ArrayLike, float | Floats]):
    """G(x) + round(N) for each count x, converted back to a count. G is the integer table of the transform over σ/2^p.

    A person has at most `rows` rows in a group and is in one group; for several groups the losses add up
    (`policy.across`). Group keys are public, and a count must be given for every key, also for empty groups. Private
    keys need partition selection first, with a δ of its own (sf.PartitionSelection).

    Counts are clipped to 0 … 10¹⁵, which does not increase the distance of any two.

    Theorem: the loss of a member of a group of x is Gaussian with μ(x) ≤ ⌈Ĝ(max(x, m)) − Ĝ(max(x − m, 0))⌉/2^p, in both
        directions, and this bound is non-increasing in x [docs/theorems/groups.md, Theorems 1 and 2]
    """

    transform: Transform
    sigma: float
    rows: int = 1
    estimator: Estimator | None = None  # None: unbiased if the transform has that, otherwise median
    use = "for counts whose error may grow with the group: noise on a transformed count"

    def __post_init__(self) -> None:
        if not isinstance(self.transform, Transform):
            raise InvalidParameter(
                f"transform must be a Transform of sf.groups.\n  found:  a {type(self.transform).__name__}\n"
                "  do:     give such as Asinh(10.0), or Given(function)"
            )
        allowed = "a standard deviation in units of the transform, from 5e-5 to 1e6"
        object.__setattr__(self, "sigma", checks.number("sigma", self.sigma, 5e-5, 1e6, allowed=allowed))
        object.__setattr__(self, "rows", checks.whole("rows", self.rows, 1, MOST_ROWS))
        chosen = (
            self.transform.estimators[0] if self.estimator is None else self.transform.check_estimator(self.estimator)
        )
        object.__setattr__(self, "estimator", chosen)

    @property
    def chosen_estimator(self) -> Estimator:
        assert self.estimator is not None  # since __post_init__
        return self.estimator

    @cached_property
    def table(self) -> Steps:
        return table_of(self.transform, self.sigma)

    @property
    def policy(self) -> GroupwiseLoss:
        """The privacy loss of a member as a function of the group size."""
        return GroupwiseLoss((TransformedPolicy(self.table, self.rows),))

    def loss(self) -> GaussianLoss:
        """The loss that holds for everybody, whatever the counts."""
        return TransformedPolicy(self.table, self.rows).everyone()

    # ---- release ----------------------------------------------------------------------------------------------------

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(rounded_gaussian(self.table.spread), source=self.source)

    def release(self, value: ArrayLike) -> float | Floats:
        """The estimate of one count, or of each count of an array."""
        found = integer_counts(value)
        flat, out = found.reshape(-1), np.empty(found.size, np.float64)
        for at in range(0, flat.size, BLOCK):
            out[at : at + BLOCK] = self.estimate(self.noisy(flat[at : at + BLOCK]))
        return reshape_like(out, found)

    def noisy(self, counts: Integers) -> Integers:
        """The noisy integer steps that are released; everything else is post-processing."""
        return self.sampler.about(self.table.steps(counts))

    # ---- post-processing --------------------------------------------------------------------------------------------

    @cached_property
    def unit(self) -> float:
        """The size of one step, in units of the transform."""
        return float(Fraction(self.sigma) / self.table.spread)

    @cached_property
    def origin(self) -> float:
        return self.transform.evaluate(0.0)

    def heights(self, noisy: Integers) -> Floats:
        """Noisy values of the transform, from noisy steps."""
        found = noisy.astype(np.float64)
        found *= self.unit
        found += self.origin
        return floats(found)

    def estimate(self, noisy: Integers) -> Floats:
        """Estimates of the counts, from noisy steps."""
        return self.transform.estimate(self.heights(noisy), self.sigma, self.chosen_estimator)

    def interval(self, noisy: Integers, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """An interval that contains each count with at least this probability; G is increasing, so it is inverted."""
        far = radius(rounded_gaussian(self.table.spread), confidence) * self.unit + self.table.off * self.sigma
        y = self.heights(noisy)
        return self.transform.invert(y - far), self.transform.invert(y + far)

    def absolute_error(self, count: float) -> float:
        """E|x̂ − x| of the ideal transform; a table adds at most e^{off·σ} − 1 times the scale of x̂."""
        return self.transform.absolute_error(float(count), self.sigma, self.chosen_estimator)

    def root_mean_square_error(self, count: float) -> float:
        return math.sqrt(self.transform.square_error(float(count), self.sigma, self.chosen_estimator))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.groups.transforms import Asinh, Log, SquareRoot

        pairs = (Neighbours(0, 1), Neighbours(1, 2), Neighbours(6, 5))
        counts = Inputs("integers", INTEGERS.extremes, (*NO_NUMBERS, 1.5, math.nan))
        made = (cls(Asinh(2.0), 0.4), cls(Log(), 0.8), cls(SquareRoot(), 0.9))
        return tuple(Example(one, pairs, counts, rows=True) for one in made)


def integer_counts(value: ArrayLike) -> Integers:
    """Counts as int64. A wrong type, which is public, is refused; values never are."""
    found = read_numbers(value)
    if found.dtype.kind == "f" and found.size:
        raise InvalidParameter("counts must be integers.\n  found:  floats\n  do:     give integers, as COUNT(*) does")
    return found.astype(np.int64, copy=False)


def reshape_like(found: ArrayLike, counts: Integers) -> float | Floats:
    """Answers in the shape of the counts; a float for a single count."""
    out = floats(found).reshape(counts.shape)
    return out if counts.ndim else float(out)
