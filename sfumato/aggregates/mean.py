"""AVG(x): a sum over a count, with an interval for their ratio."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from sfumato.aggregates.intervals import Reach, Terms, ratio
from sfumato.aggregates.linear import Linear, NoisySums, Number, NumberEstimate, Reader, clip
from sfumato.aggregates.sum import bounded_argument
from sfumato.sql.aggregate import Lattices
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Measure, What


@dataclass(frozen=True)
class Mean(Linear):
    """AVG(x) = SUM(x) / COUNT(x), from the sum about the middle of the range, and the number of values."""

    name = "avg"
    spellings = (exp.Avg,)
    listed = "AVG"
    methods = ("mean = AVG(x)",)
    example = "SELECT ward, AVG(stay) FROM visits GROUP BY ward"
    centred = True
    is_ratio = True
    refinable = True

    of: Expression

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> "Mean":
        return Mean(bounded_argument(node, rows))

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.of,)

    def with_arguments(self, *values: Expression) -> "Mean":
        return Mean(*values)

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        return lattices.sum(self.of, self.name), Measure(What.VALUES, self.of)

    def reader(self, sums: NoisySums) -> "MeanReader":
        return MeanReader(sums)


@dataclass(frozen=True)
class MeanReader(Reader):
    """S/n, clipped to the range, with Fieller's interval; sums are (S, n, …)."""

    sums: NoisySums

    @property
    def coverage(self) -> float:
        return self.sums.confidence

    @cached_property
    def measure(self) -> Measure:
        return self.sums.joint.measures[self.sums.indexes[0]]

    @cached_property
    def span(self) -> tuple[int, int]:
        return self.sums.span()

    @cached_property
    def middle(self) -> float:
        """κ of the sum: what one value adds in the middle."""
        return float(self.sums.own_noise(0)[0])

    @cached_property
    def count_noise(self) -> Terms:
        """Of the number of values."""
        return self.sums.terms(self.sums.coefficients(1))

    @cached_property
    def reach(self) -> Reach:
        return self.reach_at(self.sums.noise_confidence)

    def reach_at(self, confidence: float) -> Reach:
        return Reach.of(self.sums.own_noise(0)[1], self.count_noise, confidence)

    def read(self, row: Sequence[Number]) -> NumberEstimate:
        sums, step = self.sums.values(row), 2.0**self.measure.exponent
        value = self.measure.centre + self.steps(sums) * step
        low, high = (self.measure.centre + end * step for end in self.widened_ends(sums, self.reach))
        return value, min(low, value), max(high, value)

    def steps(self, sums: Sequence[Number]) -> float:
        """S/n in steps from the centre, within the range."""
        return clip(sums[0] / max(1, sums[1]), *self.span)

    def ends(self, sums: Sequence[Number], reach: Reach) -> tuple[float, float]:
        """Where S/n is, in steps from the centre, by Fieller: S − θ·n has the noise of its own part and (κ − θ) times
        that of n."""
        n = float(sums[1])
        d = sums[0] - self.middle * n
        low, high = ratio(d, d, n, reach)
        return max(self.middle + low, self.span[0]), min(self.middle + high, self.span[1])

    def widened_ends(self, sums: Sequence[Number], reach: Reach) -> tuple[float, float]:
        """The same of all rows, not of weighted ones: as far as what scaling took away may be apart from the rest."""
        (low, high), missing = self.ends(sums, reach), self.sums.missing
        if missing is None:
            return low, high
        more = missing.share(sums[1] - self.sums.count_radius(self.sums.indexes[1])) * missing.apart
        more *= (self.span[1] - self.span[0]) / 2
        return max(low - more, self.span[0]), min(high + more, self.span[1])
