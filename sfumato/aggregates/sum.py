"""SUM(x): of values with public bounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from sqlglot import exp

from sfumato.aggregates.count import NOTHING, ONE, Count
from sfumato.aggregates.intervals import Spread
from sfumato.aggregates.linear import Linear, NumberEstimate, Reader
from sfumato.aggregates.noisy_sums import NoisySums, Number
from sfumato.errors import QueryRefused
from sfumato.sql.expressions import Call, Constant, Expression
from sfumato.sql.parse.ast_guard import node_text, require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Measure, What
from sfumato.sql.value_lattice import Lattices, exponent

ZERO = Constant(0)


@dataclass(frozen=True)
class Sum(Linear):
    """SUM(x). Where a mean of x is asked for as well, its sum from the middle of the range serves both."""

    name = "sum"
    spellings = (exp.Sum,)
    listed = "SUM"
    methods = ("sum = SUM(x)",)
    example = "SELECT ward, SUM(stay) FROM visits GROUP BY ward"
    refinable = True

    of: Expression

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> Linear:
        return cls(bounded_argument(node, rows))

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.of,)

    def with_arguments(self, *values: Expression) -> "Sum":
        return Sum(*values)

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        total = lattices.sum(self.of, self.name)
        return (total, Measure(What.VALUES, self.of)) if self.of in lattices.centred else (total,)

    def reader(self, sums: NoisySums) -> "SumReader":
        return SumReader(sums)

    def as_count(self) -> Linear:
        """SUM(1), and SUM(CASE WHEN c THEN 1 ELSE 0 END)."""
        match self.of:
            case Constant() as of if of == ONE:
                return Count(ONE)
            case Call("case", (condition, first, last)) if (first, last) == (ONE, ZERO):
                return Count(Call("case", (condition, ONE, NOTHING)))
        return self


@dataclass(frozen=True)
class SumReader(Reader):
    """Steps from the centre, and the centre times the number of values where it is not 0."""

    sums: NoisySums

    @cached_property
    def measure(self) -> Measure:
        return self.sums.joint.measures[self.sums.indexes[0]]

    @cached_property
    def coefficients(self) -> tuple[Fraction, ...]:
        total, *counted = (self.sums.joint.coefficients[j] for j in self.sums.indexes)
        steps = tuple(c * Fraction(2) ** self.measure.exponent for c in total)
        if not counted:
            return steps
        centre, (values,) = Fraction(self.measure.centre), counted
        return tuple(a + centre * b for a, b in zip(steps, values, strict=True))

    @cached_property
    def spread(self) -> Spread:
        return replace(self.sums, confidence=self.sums.noise_confidence).spread(self.coefficients)

    @property
    def coverage(self) -> float:
        return self.spread.coverage

    @property
    def error(self) -> float:
        low, high = self.sums.widen(-self.spread.radius, self.spread.radius, *self.left_out_per_row())
        return max(-low, high)

    def read(self, row: Sequence[Number]) -> NumberEstimate:
        return self.read_all([row])[0]

    def read_all(self, rows: Sequence[Sequence[Number]]) -> list[NumberEstimate]:
        measure, (total, *counted) = self.sums.joint.measure, self.sums.indexes
        step, centre, radius = 2.0**self.measure.exponent, self.measure.centre, self.spread.radius
        estimates: list[NumberEstimate] = []
        for row in rows:
            value = measure(total, row) * step + (centre * measure(counted[0], row) if counted else 0.0)
            ends = self.sums.widen(
                value - radius, value + radius, *self.left_out_per_row(value, row), self.most_rows(row)
            )
            estimates.append((value, *ends))
        return estimates

    def left_out_per_row(self, value: Number | None = None, row: Sequence[Number] = ()) -> tuple[float, float]:
        """The most that a left-out row may have added to the sum, downwards and upwards.

        By the shape of the tail, such rows are as far from the others in the mean as is allowed for (`Missing.apart`);
        for all data, or where rows are not counted, they may be anywhere in the range.
        """
        measure, missing = self.measure, self.sums.missing
        if measure.of is None or missing is None:
            return 0.0, 0.0
        low, high = measure.of.domain.low, measure.of.domain.high
        if self.count_index is None:
            size = max(map(abs, measure.span())) * 2.0**measure.exponent  # norms are in units of this
            return size * (low < 0), size * (high > 0)
        if value is not None and not missing.certain:
            count = max(1.0, float(self.sums.joint.measure(self.count_index, row)) - self.count_radius)
            apart = missing.apart * (high - low) / 2 + self.spread.radius / count
            low, high = max(low, min(value / count, high) - apart), min(high, max(value / count, low) + apart)
        return max(0.0, -low), max(0.0, high)

    def most_rows(self, row: Sequence[Number]) -> float:
        """An upper bound of the scaled count of the group, if rows are counted."""
        if self.count_index is None or self.sums.missing is None:
            return math.inf
        return float(self.sums.joint.measure(self.count_index, row)) + self.count_radius

    @cached_property
    def count_index(self) -> int | None:
        """The index of the measure that counts the summed values, or the rows."""
        measures = self.sums.joint.measures
        counts = (self.measure.counted_by, Measure(What.ROWS))
        return next((measures.index(one) for one in counts if one in measures), None)

    @cached_property
    def count_radius(self) -> float:
        assert self.count_index is not None
        return self.sums.count_radius(self.count_index)


def bounded_argument(node: exp.Expression, rows: Scope) -> Expression:
    """The one argument of SUM, AVG or VARIANCE; refuses what has no bounds."""
    require_known_parts(node)
    spelled = node.sql_name() if isinstance(node, exp.Func) else node_text(node)
    if isinstance(node.this, exp.Distinct):
        raise QueryRefused(f"{node_text(node)} is not allowed: DISTINCT is for COUNT of one column.")
    if isinstance(node.this, exp.Star | None) or node.expressions:
        raise QueryRefused(f"{spelled} takes one argument.")
    of = parse_expression(node.this, rows)
    exponent(of, node_text(node))
    return of
