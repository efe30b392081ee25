"""VARIANCE(x), STDDEV(x): from the sums of values and of their squares about the middle of the range."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sqlglot import exp

from sfumato.aggregates.intervals import Reach, clip, ratio
from sfumato.aggregates.linear import Linear, NumberEstimate, Reader
from sfumato.aggregates.mean import MeanReader
from sfumato.aggregates.noisy_sums import CONFIDENCE, NoisySums, Number
from sfumato.aggregates.sum import bounded_argument
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Measure, What
from sfumato.sql.value_lattice import Lattices

MEAN, GIVEN_MEAN = 0.99, 0.96  # that the mean is where it is taken to be, and the rest then
BITS = 20  # of values in steps, so that their squares fit
RANGE_SQUARED = 4.0  # the square of a range, in largest variances


@dataclass(frozen=True)
class Variance(Linear):
    """VARIANCE(x) = Q/n − (S/n)², divided by n: with noise the difference from n − 1 is nothing."""

    name = "variance"
    spellings = (exp.Variance, exp.VariancePop)
    listed = "VARIANCE"
    methods = ("var = VARIANCE(x)",)
    example = "SELECT ward, VARIANCE(stay) FROM visits GROUP BY ward"
    centred = True
    is_ratio = True
    bits = BITS

    of: Expression

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> "Variance":
        return Variance(bounded_argument(node, rows))

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.of,)

    def with_arguments(self, *values: Expression) -> "Variance":
        return Variance(*values)

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        return (
            lattices.sum(self.of, self.name), Measure(What.VALUES, self.of), lattices.squares(self.of, self.name),
        )  # fmt: skip

    def reader(self, sums: NoisySums) -> "VarianceReader":
        return VarianceReader(sums)


@dataclass(frozen=True)
class StandardDeviation(Linear):
    """STDDEV(x) = √VARIANCE(x)."""

    name = "stddev"
    spellings = (exp.Stddev, exp.StddevPop, exp.StddevSamp)
    listed = "STDDEV"
    methods = ("std = STDDEV(x)",)
    example = "SELECT ward, STDDEV(stay) FROM visits GROUP BY ward"
    centred = True
    is_ratio = True
    bits = BITS

    of: Expression

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> "StandardDeviation":
        return StandardDeviation(bounded_argument(node, rows))

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.of,)

    def with_arguments(self, *values: Expression) -> "StandardDeviation":
        return StandardDeviation(*values)

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        return Variance(self.of).sums(lattices)

    def reader(self, sums: NoisySums) -> "RootReader":
        return RootReader(VarianceReader(sums))


@dataclass(frozen=True)
class VarianceReader(Reader):
    """Q/n − (S/n)², Q being the sum of squares; sums are (S, n, Q)."""

    sums: NoisySums

    @property
    def coverage(self) -> float:
        return self.sums.confidence

    @cached_property
    def mean(self) -> MeanReader:
        return MeanReader(self.sums)

    @cached_property
    def largest(self) -> float:
        """The largest variance that the range allows, in steps²."""
        low, high = self.mean.span
        return ((high - low) / 2) ** 2

    def confidence_of(self, part: float) -> float:
        """MEAN and GIVEN_MEAN are for 95 % together; where that is more, both miss in proportion."""
        return 1 - (1 - part) * (1 - self.sums.noise_confidence) / (1 - CONFIDENCE)

    @cached_property
    def mean_reach(self) -> Reach:
        return self.mean.reach_at(self.confidence_of(MEAN))

    @cached_property
    def square_middle(self) -> float:
        """κ of the sum of squares."""
        return float(self.sums.own_noise(2)[0])

    @cached_property
    def square_reaches(self) -> tuple[Reach, Reach]:
        """With the squares' own noise, and with the sum's; the other's counts as 0 times itself."""
        own, square = self.sums.own_noise(0)[1], self.sums.own_noise(2)[1]
        no_own, no_square = (tuple((Fraction(0), noise) for _, noise in terms) for terms in (own, square))
        count = self.mean.count_noise
        sure = self.confidence_of(GIVEN_MEAN)
        return Reach.of(square + no_own, count, sure), Reach.of(no_square + own, count, sure)

    def square_reach(self, factor: float) -> Reach:
        """With so many times the sum's own noise: what it adds grows with the factor, or with its square."""
        square, own = self.square_reaches
        fixed = square.fixed + own.fixed * factor * factor
        return Reach(fixed, square.growing, square.least + own.least * factor, square.slope)

    def read(self, row: Sequence[Number]) -> NumberEstimate:
        sums, step = self.sums.values(row), 2.0**self.mean.measure.exponent
        mean = self.mean.steps(sums)
        value = clip(sums[2] / max(1, sums[1]) - mean * mean, 0.0, self.largest) * step * step
        low, high = (end * step**2 for end in self.widened_ends(sums))
        return value, min(low, value), max(high, value)

    def widened_ends(self, sums: Sequence[Number]) -> tuple[float, float]:
        """The ends of the interval for all rows, where `ends` is about weighted ones.

        Theorem: −λ·V_w ≤ V − V_w ≤ λ·(range² − V_w), and range² is four times the largest variance
            [docs/theorems/contributions.md, Theorem 3]
        """
        (low, high), missing = self.ends(sums), self.mean.sums.missing
        if missing is None:
            return low, high
        n = sums[1] - self.sums.count_radius(self.sums.indexes[1])
        share, apart = missing.share(n), RANGE_SQUARED if missing.certain else missing.apart
        down, up = share * min(1.0, apart) * self.largest, share * apart * self.largest
        return clip(low - down, 0.0, self.largest), clip(high + up, 0.0, self.largest)

    def ends(self, sums: Sequence[Number]) -> tuple[float, float]:
        """Where Q/n − (S/n)² is, in steps².

        Theorem: with 95 % at least, whatever the data [the proof below]
        Proof. With 99 % the mean θ is in M = `mean`. For the true θ and variance τ, Q − 2θS + θ²n = τn; so its noisy
        value A(θ) is τn̂ up to the noise of Q's own part, −2θ times that of S, and (p(θ) − τ) times that of n, where
        p(θ) = κ_Q − 2θκ_S + θ². Over M the parabola A lies between its least value and that at an end, |θ| ≤ `far`,
        and p within ± half of its middle; a reach only grows with its factors. So with 96 % the ratio of some such A
        to n̂, from that middle, is in `ratio`. A union bound gives 95 %. ∎
        A hardly depends on θ near the mean, so nearly nothing is lost.
        """
        s, n, q = (float(x) for x in sums)
        kappa, square = self.mean.middle, self.square_middle
        low, high = self.mean.ends(sums, self.mean_reach)
        if low > high:  # the mean lies outside its interval: probability at most 1 %
            return 0.0, self.largest
        far = max(abs(low), abs(high))
        bends = [square - 2 * t * kappa + t * t for t in (low, high, clip(kappa, low, high))]
        middle, half = (min(bends) + max(bends)) / 2, (max(bends) - min(bends)) / 2
        reach = self.square_reach(2 * far).about(half)
        ends = [q - 2 * t * s + t * t * n for t in (low, high, clip(s / n if n else 0.0, low, high))]
        least, largest = ratio(min(ends) - middle * n, max(ends) - middle * n, n, reach)
        return clip(middle + least, 0.0, self.largest), clip(middle + largest, 0.0, self.largest)


@dataclass(frozen=True)
class RootReader(Reader):
    """The square root of what another reader reads; it rises, so ends stay ends."""

    square: VarianceReader

    @property
    def coverage(self) -> float:
        return self.square.coverage

    def read(self, row: Sequence[Number]) -> NumberEstimate:
        value, low, high = map(math.sqrt, self.square.read(row))
        return value, low, high
