"""AVG(x), and ratios of released sums such as COUNT_IF(c) / COUNT(*): a sum over a count, with an interval.

A ratio is a mean only where its denominator counts the rows that the numerator is made of: then all weights and all
noise that they share cancel. Other ratios are shown without an interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from sfumato.aggregates.intervals import Reach, Terms, clip, ratio
from sfumato.aggregates.linear import Linear, NumberEstimate, Reader
from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.noisy_sums import NoisySums, Number
from sfumato.aggregates.sum import bounded_argument
from sfumato.sql.aggregate import Aggregate
from sfumato.sql.expressions import Call, Constant, Expression, Output
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Measure, What
from sfumato.sql.question import Question
from sfumato.sql.value_lattice import Lattices


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
        """The least and the most that the mean can be, from the centre. SUM(x) / COUNT(*) counts rows without a value
        too, and these add 0."""
        (low, high), of = self.sums.span(), self.measure.of
        counted = self.sums.joint.measures[self.sums.indexes[1]]
        everywhere = counted.what is not What.ROWS or of is None or of.domain.sure
        return (low, high) if everywhere else (min(low, 0), max(high, 0))

    @cached_property
    def middle(self) -> float:
        """κ: what a value in the middle of the range adds to the sum."""
        return float(self.sums.own_noise(0)[0])

    @cached_property
    def count_noise(self) -> Terms:
        """The noise of the number of values."""
        return self.sums.terms(self.sums.joint.coefficients[self.sums.indexes[1]])

    @cached_property
    def reach(self) -> Reach:
        return self.reach_at(self.sums.noise_confidence)

    def reach_at(self, confidence: float) -> Reach:
        return Reach.of(self.sums.own_noise(0)[1], self.count_noise, confidence)

    def read(self, row: Sequence[Number]) -> NumberEstimate:
        sums, step = self.sums.values(row), 2.0**self.measure.exponent
        value = self.measure.centre + self.steps(sums) * step
        ends = self.ends(sums, self.reach) if self.sums.missing is None else self.widened_ends(sums, self.reach)
        low, high = (self.measure.centre + end * step for end in ends)
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
        """The ends for all rows, not for weighted ones: widened by how far left-out rows may differ from the others."""
        (low, high), missing = self.ends(sums, reach), self.sums.missing
        if missing is None:
            return low, high
        more = missing.share(sums[1] - self.sums.count_radius(self.sums.indexes[1])) * missing.apart
        more *= (self.span[1] - self.span[0]) / 2
        return max(low - more, self.span[0]), min(high + more, self.span[1])


# ---- ratios of released sums ----------------------------------------------------------------------------------------


ZERO = Constant(0.0)


@dataclass(frozen=True)
class Ratio:
    """factor·numerator/denominator, two aggregates of a question."""

    numerator: Aggregate
    denominator: Aggregate
    factor: float = 1.0

    @staticmethod
    def of(question: Question, expression: Expression) -> "Ratio | None":
        """An expression over released values read as a ratio; None if it is not a ratio."""
        match expression:
            case Call("*", (Constant(float() | int() as c), inner)) | Call(
                "*", (inner, Constant(float() | int() as c))
            ):
                found = Ratio.of(question, inner)
                return None if found is None else Ratio(found.numerator, found.denominator, found.factor * float(c))
            case Call("/", (above, below)):
                factor, numerator = multiple_of(question, above)
                under, denominator = multiple_of(question, below)
                if numerator is not None and denominator is not None and under == 1.0:
                    return Ratio(numerator, denominator, factor)
        return None

    def sum_indexes(self, question: Question, basis: NoiseBasis) -> tuple[int, int] | None:
        """The sums of numerator and denominator; None unless noise is added to the first relative to the second, and
        the second counts the rows of the first."""
        indexes = [question.sum_indexes.get(one, ()) for one in (self.numerator, self.denominator)]
        if not all(len(one) == 1 for one in indexes):
            return None
        (above,), (below,) = indexes
        relative = basis.parts[above].parent == below and basis.parts[below].parent is None
        persons, plan = (What.UNITS, What.DISTINCT), question.plan
        counted, per_row = (basis.measures[i].what in persons for i in (below, above))
        if counted and not per_row and (plan.rows > 1 or plan.table.scaled):
            return None  # rows for each person: no mean of what rows have
        return (above, below) if relative else None


def multiple_of(question: Question, expression: Expression) -> tuple[float, Aggregate | None]:
    """(factor, aggregate) of an expression that is a multiple of one aggregate; without casts and guards against 0."""
    match expression:
        case Output():
            place = expression.place - len(question.plan.keys)
            return 1.0, question.aggregates[place] if place >= 0 else None
        case Call("*", arguments):
            factor, rest = constant_factor(arguments)
            inner_factor, found = multiple_of(question, rest) if rest is not None else (1.0, None)
            return factor * inner_factor, found
        case Call("number", (inner,)):
            return multiple_of(question, inner)
        case Call("case", (Call("=", (zero, Output() as tested)), Constant(None), Output() as inner)):
            return multiple_of(question, inner) if zero == ZERO and tested == inner else (1.0, None)
    return 1.0, None


def constant_factor(arguments: Sequence[Expression]) -> tuple[float, Expression | None]:
    """(c, e) of a product c·e; no e if neither factor is a constant."""
    for constant, other in (arguments, arguments[::-1]):
        if isinstance(constant, Constant) and isinstance(constant.value, int | float):
            return float(constant.value), other
    return 1.0, None


@dataclass(frozen=True)
class RatioColumn:
    """A column of an answer that is a ratio, with its reader."""

    ratio: Ratio
    reader: MeanReader

    @property
    def ends(self) -> tuple[float, float]:
        """Between these the ratio of the true numbers lies: a share is between 0 and 1."""
        measure, c = self.reader.measure, self.ratio.factor
        low, high = (c * (measure.centre + end * 2.0**measure.exponent) for end in self.reader.span)
        return min(low, high), max(low, high)

    def read_all(self, rows: Sequence[Sequence[Number]]) -> list[NumberEstimate]:
        found = [self.reader.read(row) for row in rows]
        c = self.ratio.factor
        return [(c * value, min(c * low, c * high), max(c * low, c * high)) for value, low, high in found]


def asks_ratios_only(question: Question) -> bool:
    """Are all columns keys, means and ratios? Then the noise of a mean decides, not that of a count."""
    width, asked = len(question.plan.keys), False
    for _, expression in question.columns:
        if isinstance(expression, Output) and expression.place < width:
            continue
        mean = isinstance(expression, Output) and question.aggregates[expression.place - width].is_ratio
        if not mean and Ratio.of(question, expression) is None:
            return False
        asked = True
    return asked
