"""Counts: of rows, of rows with a value, of different values, of units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sqlglot import exp

from sfumato.aggregates.intervals import Spread
from sfumato.aggregates.linear import Linear, NumberEstimate, Reader
from sfumato.aggregates.noisy_sums import NoisySums, Number
from sfumato.errors import QueryRefused
from sfumato.sql.aggregate import Aggregate
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Column, Constant, Expression
from sfumato.sql.nullable import never_nan, never_null
from sfumato.sql.parse.ast_guard import node_text, require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Measure, Table, What
from sfumato.sql.simplify import call
from sfumato.sql.value_lattice import Lattices

ONE, NOTHING = Constant(1), Constant(None)


@dataclass(frozen=True)
class Count(Linear):
    """COUNT(*): rows; COUNT(x): rows with a value; COUNT_IF(c): rows that fulfil a condition."""

    name = "count"
    spellings = (exp.Count, exp.CountIf, "histogram")  # a histogram's keys are bins; its column counts rows
    listed = "COUNT, COUNT(DISTINCT …)"
    methods = ("count = COUNT(x)",)
    example = "SELECT ward, COUNT(*), COUNT(cost), COUNT_IF(stay > 3) FROM visits GROUP BY ward"
    is_count = True
    refinable = True

    of: Expression | None = None

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> Aggregate:
        if isinstance(node, exp.Anonymous):
            raise QueryRefused("HISTOGRAM is a column of its own.\n  do:     ask SELECT HISTOGRAM(x, 0, 60, 12) FROM …")
        require_known_parts(node)
        if isinstance(node, exp.CountIf):
            return Count(call("case", parse_expression(node.this, rows), ONE, NOTHING))
        if isinstance(node.this, exp.Star | None):
            return Count()
        if isinstance(node.this, exp.Distinct):
            return parse_distinct(node, node.this.expressions, rows)
        if node.expressions:
            raise QueryRefused("COUNT takes one argument.")
        return Count(parse_expression(node.this, rows))

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return () if self.of is None else (self.of,)

    def with_arguments(self, *values: Expression) -> "Count":
        return Count(*values)

    def with_filter(self, condition: Expression) -> Aggregate:
        return Count(call("case", condition, self.of or ONE, NOTHING))

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        return (Measure(What.ROWS if self.of is None else What.VALUES, self.of),)

    def reader(self, sums: NoisySums) -> "CountReader":
        return CountReader(sums)

    def as_row_count(self, table: Table, known: frozenset[Expression]) -> "Count":
        """COUNT of an expression that is never NULL is COUNT(*); rows without a unit are left out anyway."""
        of = self.of
        everywhere = of is not None and (never_null(of) or of in known) and never_nan(of)
        return Count() if everywhere or is_unit(of, table) else self


@dataclass(frozen=True)
class CountDistinct(Linear):
    """COUNT(DISTINCT x): different values of all units together.

    One unit changes their number by at most as many values as it may have in a group.
    """

    name = "count"
    spellings = (exp.ApproxDistinct,)
    methods = ("nunique = COUNT(DISTINCT x)",)
    example = "SELECT COUNT(DISTINCT ward) FROM visits"
    is_count = True
    refinable = True

    of: Expression

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> Aggregate:
        require_known_parts(node)
        return parse_distinct(node, [node.this], rows)

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.of,)

    def with_arguments(self, *values: Expression) -> "CountDistinct":
        return CountDistinct(*values)

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        return (Measure(What.DISTINCT, self.of),)

    def reader(self, sums: NoisySums) -> "CountReader":
        """Where contributions are scaled, one row of each unit counts here, so that there may be any more values."""
        keys = self.of.domain.keys
        most = math.inf if keys is None else float(len(set(keys)))
        return DistinctReader(sums, most) if sums.joint.weight != 1 else CountReader(sums)

    def as_row_count(self, table: Table, known: frozenset[Expression]) -> Linear:
        """COUNT(DISTINCT unit) counts units."""
        return CountUnits() if is_unit(self.of, table) else self


@dataclass(frozen=True)
class CountUnits(Linear):
    """COUNT(DISTINCT unit): how many units have a row."""

    name = "count"
    example = "SELECT ward, COUNT(DISTINCT patient_id) FROM visits GROUP BY ward"
    is_count = True
    refinable = True

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> Aggregate:
        raise AssertionError("it is COUNT(DISTINCT …) of the unit")

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return ()

    def with_arguments(self, *values: Expression) -> "CountUnits":
        return self

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        return (Measure(What.UNITS),)

    def reader(self, sums: NoisySums) -> "CountReader":
        return CountReader(sums)


@dataclass(frozen=True)
class CountReader(Reader):
    """A whole number; its interval is about the noisy number before it is rounded."""

    sums: NoisySums

    @property
    def coefficients(self) -> tuple[Fraction, ...]:
        return self.sums.joint.coefficients[self.sums.indexes[0]]

    @cached_property
    def spread(self) -> Spread:
        return self.sums.spread(self.coefficients)

    @property
    def coverage(self) -> float:
        return self.spread.coverage

    @property
    def error(self) -> float:
        return self.sums.widen(0.0, self.spread.radius, 0.0, 1.0)[1]

    def read(self, row: Sequence[Number]) -> NumberEstimate:
        return self.read_all([row])[0]

    def read_all(self, rows: Sequence[Sequence[Number]]) -> list[NumberEstimate]:
        measure, index, radius = self.sums.joint.measure, self.sums.indexes[0], self.spread.radius
        estimates: list[NumberEstimate] = []
        for row in rows:
            noisy = measure(index, row)
            value = noisy if self.sums.combined else round(noisy)  # halves to the even one: nothing is biased
            low, high = noisy - radius, noisy + radius
            if self.sums.missing is not None:
                low, high = self.sums.widen(low, high, 0.0, 1.0, high)
            estimates.append((value, min(low, value), max(high, value)))
        return estimates

    def left_out_at_most(self, rows: Sequence[Sequence[Number]]) -> list[float]:
        """The share of each group that scaling took away at most; it falls with the count, whose lower end is used."""
        missing, measure, index = self.sums.missing, self.sums.joint.measure, self.sums.indexes[0]
        if missing is None:
            return [0.0] * len(rows)
        return [missing.share(measure(index, row) - self.spread.radius) for row in rows]


@dataclass(frozen=True)
class DistinctReader(CountReader):
    """A number of different values among some of the rows: of all rows there may be more, and at most `most`."""

    most: float

    def read_all(self, rows: Sequence[Sequence[Number]]) -> list[NumberEstimate]:
        return [(value, low, max(high, self.most)) for value, low, high in super().read_all(rows)]


def parse_distinct(node: exp.Expression, values: Sequence[exp.Expression], rows: Scope) -> Aggregate:
    """COUNT(DISTINCT x), COUNT(DISTINCT a, b) of rows that have both, and COUNT(DISTINCT (a, b)) of all rows."""
    whole = len(values) == 1 and isinstance(values[0], exp.Tuple)
    of = [parse_expression(one, rows) for one in (values[0].expressions if whole else values)]
    if not of:
        raise QueryRefused(f"{node_text(node)} is not allowed: DISTINCT is for COUNT of columns.")
    return CountDistinct(of[0] if len(of) == 1 and not whole else joined_values(of, whole))


def joined_values(values: Sequence[Expression], with_missing: bool) -> Expression:
    """Several values as one text, each after its length, so that different values have different texts as long as these
    are within the limit of texts. NULL has a sign of its own, or makes the whole NULL."""
    texts = [one if one.domain.kind is Kind.TEXT else call("text", one) for one in values]
    parts: list[Expression] = []
    for text in texts:
        size = call("||", call("text", call("length", text)), Constant(":"), text)
        parts.append(call("coalesce", size, Constant("-")) if with_missing else size)
    return call("||", *parts) if len(parts) > 1 else parts[0]


def is_unit(of: Expression | None, table: Table) -> bool:
    return isinstance(of, Column) and of.origin == table.unit_origin
