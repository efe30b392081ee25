"""Aggregates and their spellings: sums and counts; values by rank (MEDIAN, QUANTILE, MIN, MAX); statistics of another
kind (TRIMMED_MEAN, MODE, TRIANGLES); keys of histograms."""

from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.expressions import Constant, Expression
from sfumato.sql.simplify import call

MOST_PARTS = 10**6


class TrimmedMean(exp.Expression, exp.AggFunc):
    """TRIMMED_MEAN(x, part): without so many of the values at either end."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "expression": False, "expressions": False}


class Triangles(exp.Expression, exp.AggFunc):
    """TRIANGLES(), or TRIANGLES(a, b)."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


FIXED: dict[type[exp.Expression], Fraction] = {
    exp.Median: Fraction(1, 2), exp.Min: Fraction(0), exp.Max: Fraction(1),
}  # fmt: skip
GIVEN: dict[type[exp.Expression], str] = {
    exp.Quantile: "quantile", exp.ApproxQuantile: "quantile", exp.PercentileCont: "expression",
    exp.PercentileDisc: "expression",
}  # fmt: skip
MOST_BUCKETS = 10_000
RANKS = (*FIXED, *GIVEN, exp.WithinGroup)
SUMS: dict[type[exp.Expression], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Variance: "variance", exp.VariancePop: "variance",
    exp.Stddev: "stddev", exp.StddevPop: "stddev", exp.StddevSamp: "stddev",
}  # fmt: skip
OTHERWISE = (exp.Filter, exp.CountIf, exp.ApproxDistinct)  # what is another aggregate in other words
STATISTICS = (exp.Mode, TrimmedMean, Triangles)
AGGREGATES = (*SUMS, *RANKS, *STATISTICS, *OTHERWISE)


def recognised(root: exp.Expression) -> exp.Expression:
    """The same statement, with aggregates that the parser does not know as nodes of their own."""
    for node in list(root.find_all(exp.Anonymous)):
        match node.name.lower(), node.expressions:
            case "trimmed_mean", [of, *rest]:
                node.replace(TrimmedMean(this=of, expression=rest[0] if rest else None, expressions=rest[1:]))
            case "triangles", listed:
                node.replace(Triangles(expressions=listed))
    return root


def of_values(node: exp.Expression) -> exp.Expression:
    """What MODE is of: MODE(x), or MODE() WITHIN GROUP (ORDER BY x)."""
    if isinstance(node, exp.WithinGroup):
        order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
        if len(order) != 1 or node.this.this is not None:
            raise QueryRefused("MODE() WITHIN GROUP takes one ORDER BY.\n  do:     ask MODE(x)")
        node = order[0]
    of = node.this
    if not isinstance(of, exp.Expression) or isinstance(of, exp.Distinct | exp.Star):
        raise QueryRefused(f"{node.sql('duckdb')[:60]} takes one column, with all its values.")
    return of


def ranked(node: exp.Expression) -> tuple[exp.Expression, Fraction]:
    """What is ranked, and the fraction of it that lies below the value asked for.

    The p-quantile is the lower one, the least value that p·n values do not exceed, however it is spelled: interpolation
    between two values would be off the lattice and twice as sensitive. MIN and MAX are p = 0 and 1.
    """
    if isinstance(node, exp.WithinGroup):
        return within(node)
    if isinstance(node.this, exp.Distinct) or node.args.get("expressions") or node.args.get("count"):
        raise QueryRefused(f"{node.sql('duckdb')[:60]} takes one column, with all its values.")
    fixed = FIXED.get(type(node))
    return node.this, fixed if fixed is not None else part(node.args.get(GIVEN[type(node)]))


def within(node: exp.WithinGroup) -> tuple[exp.Expression, Fraction]:
    """PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)."""
    order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or len(order) != 1:
        raise QueryRefused("WITHIN GROUP is for PERCENTILE_CONT(p) and PERCENTILE_DISC(p), with one ORDER BY.")
    p = part(node.this.this)
    return order[0].this, 1 - p if order[0].args.get("desc") else p


def part(node: exp.Expression | None) -> Fraction:
    """A fraction written as a number."""
    if isinstance(node, exp.Literal) and not node.is_string and len(node.this) < 20:
        try:
            found = Fraction(node.this)
        except ValueError:
            found = Fraction(-1)
        if 0 <= found <= 1 and found.denominator <= MOST_PARTS:
            return found
    raise QueryRefused(
        "a quantile needs a number from 0 to 1, with at most six digits.\n"
        f"  found:  {node.sql('duckdb')[:60] if node is not None else 'none'}\n  do:     ask QUANTILE(x, 0.9)"
    )


def plainly(node: exp.Expression) -> exp.Expression:
    """COUNT_IF(c), x FILTER (WHERE c) and APPROX_COUNT_DISTINCT(x) with CASE and DISTINCT."""
    if isinstance(node, exp.CountIf):
        return exp.Count(this=only_if(node.this, exp.Literal.number("1")))
    if isinstance(node, exp.ApproxDistinct):
        return exp.Count(this=exp.Distinct(expressions=[node.this.copy()]))
    inner: exp.Expression = node.this.copy()
    condition: exp.Expression = node.expression.this
    if isinstance(inner, exp.WithinGroup) and isinstance(inner.expression, exp.Order):
        for ordered in inner.expression.find_all(exp.Ordered):
            ordered.set("this", only_if(condition, ordered.this))
    elif isinstance(inner.this, exp.Distinct) and len(inner.this.expressions) == 1:
        inner.this.set("expressions", [only_if(condition, inner.this.expressions[0])])
    elif isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star | None):
        inner = exp.Count(this=only_if(condition, exp.Literal.number("1")))
    elif isinstance(inner, (*SUMS, *RANKS, exp.Mode, TrimmedMean)) and inner.this is not None:
        inner.set("this", only_if(condition, inner.this))
    else:
        raise QueryRefused(f"{node.sql('duckdb')[:60]}: FILTER belongs to an aggregate.")
    return inner


def only_if(condition: exp.Expression, value: exp.Expression) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def bucketed(value: Expression, low: Expression, high: Expression, count: Expression) -> Expression:
    """WIDTH_BUCKET: a histogram's public keys, 0 … count + 1."""
    match low, high, count:
        case Constant(float() | int() as a), Constant(float() | int() as b), Constant(int() as n):
            if a < b and 1 <= n <= MOST_BUCKETS:
                return call("width_bucket", value, low, high, count)
    raise QueryRefused(
        f"WIDTH_BUCKET takes a column, two numbers, and how many buckets lie between them (up to {MOST_BUCKETS:,}).\n"
        "  do:     ask WIDTH_BUCKET(x, 0, 60, 12)"
    )
