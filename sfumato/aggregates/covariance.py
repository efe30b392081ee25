"""COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE, REGR_INTERCEPT: how two columns vary together."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from sfumato.aggregates.formula_of_means import FormulaReader, Interval
from sfumato.aggregates.linear import Linear
from sfumato.aggregates.noisy_sums import NoisySums
from sfumato.errors import QueryRefused
from sfumato.sql.expressions import Constant, Expression
from sfumato.sql.parse.ast_guard import node_text, require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Measure, What
from sfumato.sql.simplify import call
from sfumato.sql.value_lattice import WIDE, Lattices, exponent, lattice_middle

BITS = 20  # of values in steps, so that their squares and products fit


class Moments(NamedTuple):
    """Means of x, y, xy, x², y² about the middles of the ranges, as numbers or as intervals."""

    x: Interval
    y: Interval
    xy: Interval
    xx: Interval
    yy: Interval

    @property
    def covariance(self) -> Interval:
        return self.xy.minus(self.x.times(self.y))

    @property
    def variances(self) -> tuple[Interval, Interval]:
        """The variances of x and of y, never below 0."""
        pairs = ((self.xx, self.x), (self.yy, self.y))
        found = [square.minus(mean.square) for square, mean in pairs]
        return Interval(max(0.0, found[0].low), max(0.0, found[0].high)), Interval(
            max(0.0, found[1].low), max(0.0, found[1].high)
        )


@dataclass(frozen=True)
class Paired(Linear):
    """An aggregate of (y, x) over the rows in which both have a value.

    It is made of the sums of 1, x, y, xy (and of x², y², where `squares`) over these rows. A unit adds to all of them
    within their public bounds; the count bounds each of the others.
    """

    squares = False
    bits = BITS
    is_ratio = True

    y: Expression
    x: Expression

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> Linear:
        require_known_parts(node)
        if node.this is None or node.expression is None or isinstance(node.this, exp.Distinct):
            raise QueryRefused(f"{node_text(node)} takes two columns of numbers.")
        y, x = parse_expression(node.this, rows), parse_expression(node.expression, rows)
        for one in (y, x):
            exponent(one, node_text(node), BITS)  # raises where a column has no bounds
        return cls(y, x)

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return self.y, self.x

    def with_arguments(self, *values: Expression) -> Linear:
        return type(self)(*values)

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        x, y = (call("clamp", one, Constant(one.domain.low), Constant(one.domain.high)) for one in (self.x, self.y))
        steps = [lattices.exponent_within(one, self.name, BITS, centred=True) for one in (x, y)]
        middles = [lattice_middle(one, step) for one, step in zip((x, y), steps, strict=True)]
        product = call("*", *(call("-", one, Constant(c)) for one, c in zip((x, y), middles, strict=True)))
        found = [Measure(What.VALUES, product)]
        for one, middle, step in zip((x, y), middles, steps, strict=True):
            found.append(Measure(What.SUM, one, middle, step, product))
        found.append(Measure(What.SUM, product, 0.0, lattices.exponent_within(product, self.name, WIDE, centred=False)))
        for one, middle, step in zip((x, y), middles, steps, strict=True) if self.squares else ():
            found.append(Measure(What.SQUARES, one, middle, 2 * step, product))
        return tuple(found)

    def reader(self, sums: NoisySums) -> FormulaReader:
        middles = sums.joint.measures[sums.indexes[1]].centre, sums.joint.measures[sums.indexes[2]].centre

        def formula(means: list[Interval]) -> Interval:
            spare = [Interval(0.0, 0.0)] * (5 - len(means))
            return self.combine(Moments(*means, *spare), middles)

        return FormulaReader(sums, formula, self.limits)

    @abstractmethod
    def combine(self, moments: Moments, middles: tuple[float, float]) -> Interval:
        """The aggregate, from moments about the middles of x and y."""

    @property
    def limits(self) -> tuple[float, float]:
        """The values that the ranges of the columns allow."""
        return -math.inf, math.inf


class Covariance(Paired):
    """COVAR_POP(y, x) = E[xy] − E[x]·E[y]; COVAR_SAMP is the same but for n − 1, which noise hides."""

    name = "covariance"
    spellings = (exp.CovarPop, exp.CovarSamp)
    listed = "COVAR_POP, COVAR_SAMP"
    methods = ("covar_pop = COVAR_POP(x, other)", "covar_samp = COVAR_SAMP(x, other)")
    forms = ("COVAR_POP({B}, {B})", "COVAR_SAMP({B}, {B})")
    example = "SELECT ward, COVAR_POP(cost, stay) FROM visits GROUP BY ward"

    def combine(self, moments: Moments, middles: tuple[float, float]) -> Interval:
        return moments.covariance

    @property
    def limits(self) -> tuple[float, float]:
        """|Cov| ≤ σ_x·σ_y, and a deviation is at most half of its range."""
        most = math.prod((one.domain.high - one.domain.low) / 2 for one in (self.x, self.y))
        return -most, most


class Correlation(Paired):
    """CORR(y, x) = Cov / (σ_x·σ_y)."""

    name = "correlation"
    spellings = (exp.Corr,)
    listed = "CORR"
    methods = ("corr = CORR(x, other)",)
    forms = ("CORR({B}, {B})", "CORR({B}, {B}) FILTER (WHERE {b})")
    example = "SELECT ward, CORR(cost, stay) FROM visits GROUP BY ward"
    squares = True

    def combine(self, moments: Moments, middles: tuple[float, float]) -> Interval:
        x, y = moments.variances
        product = x.times(y)
        return moments.covariance.over(Interval(math.sqrt(product.low), math.sqrt(product.high)))

    @property
    def limits(self) -> tuple[float, float]:
        return -1.0, 1.0


class RegressionSlope(Paired):
    """REGR_SLOPE(y, x) = Cov / Var(x): how much y grows with x."""

    name = "slope"
    spellings = (exp.RegrSlope,)
    listed = "REGR_SLOPE"
    methods = ("regr_slope = REGR_SLOPE(x, other)",)
    forms = ("REGR_SLOPE({B}, {B})",)
    example = "SELECT REGR_SLOPE(cost, stay) FROM visits"
    squares = True

    def combine(self, moments: Moments, middles: tuple[float, float]) -> Interval:
        return moments.covariance.over(moments.variances[0])


class RegressionIntercept(Paired):
    """REGR_INTERCEPT(y, x) = E[y] − slope·E[x]: what the line has at x = 0."""

    name = "intercept"
    spellings = (exp.RegrIntercept,)
    listed = "REGR_INTERCEPT"
    methods = ("regr_intercept = REGR_INTERCEPT(x, other)",)
    forms = ("REGR_INTERCEPT({B}, {B})",)
    example = "SELECT REGR_INTERCEPT(cost, stay) FROM visits"
    squares = True

    def combine(self, moments: Moments, middles: tuple[float, float]) -> Interval:
        slope = moments.covariance.over(moments.variances[0])
        x, y = (Interval(c + one.low, c + one.high) for c, one in zip(middles, moments[:2], strict=True))
        return y.minus(slope.times(x))
