"""HISTOGRAM(x, low, high, bins): a row for each bin, all public, including those below, above and for NULL."""

from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Constant, Expression
from sfumato.sql.parse.ast_guard import node_text, without_alias
from sfumato.sql.parse.expressions import Names, parse_expression
from sfumato.sql.parse.function_syntax import bucket_key
from sfumato.sql.simplify import call

NONE = Constant(-1)  # the bin of what has no value


@dataclass(frozen=True)
class Histogram:
    """A key that stands for `bins` equal parts from low to high: 1 … bins, 0 below, bins + 1 from high on, −1: none."""

    key: Expression
    low: float
    high: float
    bins: int

    def columns(self, bin_: Expression) -> list[tuple[str, Expression]]:
        """The edges of a bin, NULL where it has none. They are made of the key, so they cost nothing."""
        before = call("-", bin_, Constant(1))
        starts = call("and", call("<=", Constant(1), bin_), call("<=", bin_, Constant(self.bins + 1)))
        ends = call("and", call("<=", Constant(0), bin_), call("<=", bin_, Constant(self.bins)))
        return [
            ("bin_from", call("case", starts, self.edge(before), Constant(None))),
            ("bin_to", call("case", ends, self.edge(bin_), Constant(None))),
        ]

    def edge(self, place: Expression) -> Expression:
        wide = call("*", Constant(self.high - self.low), place)
        return call("+", Constant(self.low), call("/", wide, Constant(self.bins)))

    def order(self, bin_: Expression) -> Expression:
        """From the lowest; what has no value last."""
        return call("case", call("=", bin_, NONE), Constant(None), bin_)


def is_histogram(node: exp.Expression) -> bool:
    """Is this column one?"""
    return isinstance(without_alias(node), exp.Anonymous) and without_alias(node).name.lower() == "histogram"


def histogram(query: exp.Select, rows: Names) -> Histogram | None:
    """The one that a SELECT asks for."""
    found = [without_alias(node) for node in query.expressions if is_histogram(node)]
    if len(found) > 1:
        raise QueryRefused("ask for one HISTOGRAM at a time: two would count every pair of bins.")
    return parse_histogram(found[0], rows) if found else None


def parse_histogram(node: exp.Expression, rows: Names) -> Histogram:
    listed = [] if any(node.find_all(exp.Array)) else node.expressions
    of, *rest = [parse_expression(one, rows) for one in listed] or [NONE]
    domain = of.domain
    if len(rest) == 1 and domain.kind is Kind.NUMBER and domain.bounded:  # the policy's range
        rest = [Constant(domain.low), Constant(domain.high), *rest]
    match rest:
        case [Constant(int() | float() as low), Constant(int() | float() as high), Constant(int() as bins)]:
            key = call("coalesce", bucket_key(of, *rest), NONE)
            return Histogram(key, float(low), float(high), bins)
    raise QueryRefused(
        "HISTOGRAM takes a column, the ends of its range, and how many bins lie between them.\n"
        f"  found:  {node_text(node)}\n"
        "  do:     ask HISTOGRAM(x, 0, 60, 12), or HISTOGRAM(x, 12) where the policy says low and high"
    )
