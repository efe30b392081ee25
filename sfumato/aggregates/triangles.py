"""TRIANGLES(): how many triangles a graph has whose edges are the rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sqlglot import exp

from sfumato.aggregates.linear import Estimate
from sfumato.aggregates.price import Price
from sfumato.aggregates.standalone import SURE, Standalone, StandaloneRelease, integers
from sfumato.errors import QueryRefused
from sfumato.mechanisms.dependent.custom import Counted
from sfumato.mechanisms.dependent.noisy_bound import Bounded, NoisyBound
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Scalar
from sfumato.sql.emit.request import Row
from sfumato.sql.emit.unit_rows import row_select
from sfumato.sql.expressions import Column, Expression
from sfumato.sql.parse.ast_guard import require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Plan, Table
from sfumato.sql.reserved_names import CLOSED, COUNT, EDGES, ENDS, FIRST, OPEN, ROWS, SECOND, A, B, qualify


@dataclass(frozen=True)
class Triangles(Standalone):
    """TRIANGLES(), or TRIANGLES(a, b), of a table whose unit is the edge."""

    name = "triangles"
    spellings = ("triangles",)
    listed = "TRIANGLES"

    ends: tuple[Column, Column]

    def __repr__(self) -> str:
        return f"triangles({self.ends[0]!r}, {self.ends[1]!r})"

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> "Triangles":
        require_known_parts(node)
        if keys:
            raise QueryRefused("TRIANGLES takes no GROUP BY.\n  do:     choose edges by WHERE")
        return Triangles(edge_columns(rows.table, [parse_expression(one, rows) for one in node.expressions]))

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return self.ends

    def with_arguments(self, *values: Expression) -> "Triangles":
        raise AssertionError("the columns of an edge are those of the policy")

    def with_filter(self, condition: Expression) -> "Triangles":
        raise QueryRefused("TRIANGLES takes no FILTER.\n  do:     choose its edges by WHERE")

    def needs_slack(self, price: type[Price]) -> bool:
        return True

    def release(self, plan: Plan, price: Price, slack: float) -> "TrianglesRelease":
        return TrianglesRelease(plan, price, slack, self)


@dataclass(frozen=True)
class TrianglesRelease(StandaloneRelease):
    """Triangles: the most common neighbours of two nodes are bought first, then noise for them.

    Theorem: that number bounds what an edge does to triangles, and moves by at most one with an edge
        [docs/theorems/recipes.md, Theorem 5; Nissim, Raskhodnikova & Smith 2007]
    """

    aggregate: Triangles

    @cached_property
    def mechanism(self) -> NoisyBound:
        found = self.price.data_dependent_mechanism(Counted(), self.slack, Fraction(1))
        assert isinstance(found, NoisyBound)
        return found

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        return triangles_statement(self.plan, self.aggregate, dialect)

    def prepare(self) -> None:
        self.mechanism.ready(1)
        self.read([0, 1])

    def release(self, rows: Sequence[Row]) -> list[Scalar]:
        return list(self.mechanism.release(tuple(integers(rows[0]))))

    def read(self, stored: Sequence[Scalar]) -> Estimate:
        found = Bounded(*(int(x or 0) for x in stored))
        off = self.mechanism.error(SURE, bound=found.bound)
        return found.answer, found.answer - off, found.answer + off

    def promise(self) -> str:
        return "± depends on how many neighbours two nodes share; an interval comes with the answer"


def triangles_statement(plan: Plan, graph: Triangles, dialect: str | Dialect) -> str:
    """How many triangles there are, and the most nodes that two nodes are both joined to.

    Each pair of different nodes counts once, however often and in which order it is listed. Two nodes with a common
    neighbour are an open triangle; it is closed if they are an edge, and each triangle is met three times.
    """
    to = dialect_of(dialect).about(plan)
    rows = row_select(plan, {A: to.compiled(graph.ends[0]), B: to.compiled(graph.ends[1])}, to).sql(to.name)
    a, b = qualify(ROWS, [A, B])
    pairs = f"SELECT LEAST({a}, {b}) AS {A}, GREATEST({a}, {b}) AS {B} FROM ({rows}) AS {ROWS} WHERE {a} <> {b}"
    third = to.quotient(f"(SELECT {CLOSED}.{COUNT} FROM {CLOSED})", "3")
    return (
        f"WITH {EDGES} AS {to.materialized}({pairs} GROUP BY 1, 2),"
        f" {ENDS} AS (SELECT {EDGES}.{A}, {EDGES}.{B} FROM {EDGES}"
        f" UNION ALL SELECT {EDGES}.{B}, {EDGES}.{A} FROM {EDGES}),"
        f" {OPEN} AS (SELECT {FIRST}.{B} AS {A}, {SECOND}.{B} AS {B}, COUNT(*) AS {COUNT}"
        f" FROM {ENDS} AS {FIRST} JOIN {ENDS} AS {SECOND} ON {FIRST}.{A} = {SECOND}.{A} AND {FIRST}.{B} < {SECOND}.{B}"
        " GROUP BY 1, 2),"
        f" {CLOSED} AS (SELECT SUM({OPEN}.{COUNT}) AS {COUNT}"
        f" FROM {OPEN} JOIN {EDGES} ON {OPEN}.{A} = {EDGES}.{A} AND {OPEN}.{B} = {EDGES}.{B})"
        f" SELECT CAST(COALESCE({third}, 0) AS BIGINT),"
        f" CAST(COALESCE((SELECT MAX({OPEN}.{COUNT}) FROM {OPEN}), 0) AS BIGINT)"
    )


def edge_columns(table: Table, named: Sequence[Expression]) -> tuple[Column, Column]:
    """The two columns of an edge; they may be named."""
    ends = [f"t0.{name}" for name in table.edges]
    if not ends:
        found = f"{table.name}, whose unit is {str(table.unit)!r}"
        raise QueryRefused(
            f"TRIANGLES needs a table whose unit is the edge.\n  found:  {found}\n"
            '  do:     say so in the policy: edges = ["a", "b"] instead of a unit'
        )
    if named and sorted(map(repr, named)) != sorted(ends):
        raise QueryRefused(
            f"TRIANGLES takes the columns of an edge.\n  do:     ask TRIANGLES({', '.join(table.edges)})"
        )
    first, second = (Column(end, table.columns[name]) for end, name in zip(ends, table.edges, strict=True))
    return first, second
