"""BOOL_OR(c), BOOL_AND(c): whether a condition holds in some row, or in all, as far as a noisy count can tell.

One row more or less must not decide what is shown, so there are three answers: yes and no where the interval of the
count says so at 95 %, and NULL between. A count has the same price and says more.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.aggregates.count import NOTHING, ONE, CountReader
from sfumato.aggregates.linear import Linear, NumberEstimate, Reader
from sfumato.aggregates.noisy_sums import NoisySums, Number
from sfumato.errors import QueryRefused
from sfumato.sql.domains import TRUTH, Domain, Kind
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.ast_guard import node_text, require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Measure, What
from sfumato.sql.simplify import call
from sfumato.sql.value_lattice import Lattices


@dataclass(frozen=True)
class Holds(Linear):
    """A condition, of which the rows that decide are counted."""

    has_interval = False

    of: Expression

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> Linear:
        require_known_parts(node)
        of = parse_expression(node.this, rows)
        if of.domain.kind is not Kind.TRUTH:
            raise QueryRefused(f"{node_text(node)} takes a condition.")
        return cls(of)

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.of,)

    def with_arguments(self, *values: Expression) -> Linear:
        return type(self)(*values)

    @property
    def domain(self) -> Domain:
        return TRUTH

    @property
    @abstractmethod
    def deciding(self) -> Expression:
        """The condition whose rows are counted."""

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        return (Measure(What.VALUES, call("case", self.deciding, ONE, NOTHING)),)


class HoldsSomewhere(Holds):
    """BOOL_OR(c): is there a row in which c is true?"""

    name = "bool_or"
    spellings = (exp.LogicalOr,)
    listed = "BOOL_OR"
    forms = ("BOOL_OR({b})",)
    example = "SELECT ward, BOOL_OR(stay > 20) FROM visits GROUP BY ward"

    @property
    def deciding(self) -> Expression:
        return self.of

    def reader(self, sums: NoisySums) -> "HoldsReader":
        return HoldsReader(CountReader(sums), True)


class HoldsEverywhere(Holds):
    """BOOL_AND(c): is there no row in which c is false?"""

    name = "bool_and"
    spellings = (exp.LogicalAnd,)
    listed = "BOOL_AND"
    forms = ("BOOL_AND({b})",)
    example = "SELECT ward, BOOL_AND(stay < 30) FROM visits GROUP BY ward"

    @property
    def deciding(self) -> Expression:
        return call("not", self.of)

    def reader(self, sums: NoisySums) -> "HoldsReader":
        return HoldsReader(CountReader(sums), False)


@dataclass(frozen=True)
class HoldsReader(Reader):
    """`if_some` where there is a row that decides, its opposite where there is none, NULL where that is not clear."""

    count: CountReader
    if_some: bool

    @property
    def coverage(self) -> float:
        return self.count.coverage

    def read(self, row: Sequence[Number]) -> NumberEstimate:
        _, low, high = self.count.read(row)
        found = self.if_some if low > 0 else not self.if_some if high < 1 else None
        return found, None, None  # type: ignore[return-value]

    def promise(self) -> str:
        return f"decided where more than about {2 * self.count.error:,.0f} rows decide; else NULL"
