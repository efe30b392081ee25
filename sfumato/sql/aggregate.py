"""The interface of an aggregate as plans see it: how it is parsed, which values it reads, and the sums it needs.

The aggregates themselves are in sfumato/aggregates, one file each. The parser gets their registry, which marks every
call of an aggregate in the text with its class; the rest of the parser only looks at the mark.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Domain, number
from sfumato.sql.expressions import Constant, Expression
from sfumato.sql.functions.function import Spelling
from sfumato.sql.parse.ast_guard import node_text
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Measure, Table
from sfumato.sql.simplify import call
from sfumato.sql.value_lattice import WIDE, Lattices

MARK, LISTED = "sfumato aggregate", "sfumato aggregates"
INNER_ONLY = (exp.First, exp.Last, exp.AnyValue, exp.ArgMin, exp.ArgMax)  # of a GROUP BY inside a question
INNER = (*INNER_ONLY, exp.LogicalAnd, exp.LogicalOr)


class Aggregate(ABC):
    """An aggregate of a question: the values that it reads from each row, and what is released for it."""

    name: ClassVar[str]  # how previews call a column that has no name of its own
    spellings: ClassVar[tuple[Spelling, ...]] = ()
    listed: ClassVar[str] = ""  # its spellings, as documents and errors list them
    methods: ClassVar[tuple[str, ...]] = ()  # of a column x in Python, with their SQL: "quantile = QUANTILE(x, part)"
    forms: ClassVar[tuple[str, ...]] = ()  # calls for the fuzzer; {B} is a number with bounds, {x} any value
    example: ClassVar[str] = ""  # a question about the table visits(patient_id, ward, stay, cost)
    centred: ClassVar[bool] = False  # its sums are taken from the middle of the range
    bits: ClassVar[int] = WIDE  # of values in steps: fewer where squares are summed
    is_count: ClassVar[bool] = False
    is_ratio: ClassVar[bool] = False  # made of sums such that weights of rows cancel: a mean, a share, a slope
    refinable: ClassVar[bool] = False  # can rounds of growing price reach a relative error?
    has_interval: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> "Aggregate":
        """The aggregate that a node of the text calls, of these rows."""

    @property
    @abstractmethod
    def arguments(self) -> tuple[Expression, ...]:
        """The expressions that it reads from each row."""

    @abstractmethod
    def with_arguments(self, *values: Expression) -> "Aggregate":
        """This aggregate with other arguments."""

    @property
    def domain(self) -> Domain:
        """The public domain of its value."""
        return number()

    def with_filter(self, condition: Expression) -> "Aggregate":
        """This aggregate with FILTER (WHERE condition): rows that do not fulfil it have no value."""
        if not self.arguments:
            raise QueryRefused(f"{self.name.upper()} takes no FILTER.\n  do:     choose its rows by WHERE")
        return self.with_arguments(*(call("case", condition, value, Constant(None)) for value in self.arguments))

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        """The measures that it is read from, in the order in which it reads them; none if it is released on its own."""
        return ()

    # ---- canonical forms: by default an aggregate is its own ---------------------------------------------------------

    def as_count(self) -> "Aggregate":
        """The count that this equals on every table, such as COUNT(*) for SUM(1); itself if there is none."""
        return self

    def as_row_count(self, table: Table, known: frozenset[Expression]) -> "Aggregate":
        """The count of rows or units that this equals if the expressions `known` are never NULL; itself if none."""
        return self


class StandaloneAggregate(Aggregate):
    """An aggregate with a mechanism of its own, beside the sums of a plan."""

    stored_as: ClassVar[str] = "told"  # the entry of a stored answer that holds its values
    weighted_as: ClassVar[str] = ""  # what marks stored answers of which rows were weighted

    @property
    def weighted(self) -> bool:
        """Do rows count with the weight of their unit where contributions are scaled?"""
        return False


def lattices_of(aggregates: Sequence[Aggregate], scaled: bool) -> Lattices:
    """The lattices of what these aggregates of one question read; `scaled`: are contributions scaled to a norm?"""
    read = [(of, one) for one in aggregates for of in one.arguments]
    bits = {of: min(one.bits for other, one in read if other == of) for of, _ in read}
    return Lattices(frozenset(of for of, one in read if one.centred), bits, scaled)


@dataclass(frozen=True)
class Registry:
    """The aggregates that questions may use."""

    classes: tuple[type[Aggregate], ...]

    def mark(self, root: exp.Expression) -> exp.Expression:
        """Mark every call of an aggregate with its class. Others are refused where they would aggregate rows."""
        by_spelling: dict[object, type[Aggregate]] = {
            spelling: one for one in self.classes for spelling in one.spellings
        }
        for node in list(root.walk()):
            spelling: object = node.name.lower() if isinstance(node, exp.Anonymous) else type(node)
            if isinstance(node, exp.WithinGroup):
                spelling = type(node.this)
            if spelling in by_spelling:
                node.meta[MARK] = by_spelling[spelling]
            elif isinstance(node, exp.AggFunc):
                node.meta[LISTED] = ", ".join(filter(None, (one.listed for one in self.classes)))
        return root


def kind_of(node: exp.Expr) -> type[Aggregate] | None:
    """The class that reads this node, if it is a call of an aggregate."""
    found = (node._meta or {}).get(MARK)
    return found if isinstance(found, type) and issubclass(found, Aggregate) else None


def refuse_unknown(node: exp.Expression) -> None:
    """Refuse an aggregate that is not in the registry."""
    if (listed := (node._meta or {}).get(LISTED)) is not None:
        raise QueryRefused(f"{node_text(node)} is not among the aggregates.\n  do:     ask {listed} or HISTOGRAM")


def calls_aggregate(node: exp.Expr) -> bool:
    """Is there an aggregate anywhere in it, outside of further SELECTs?"""
    inside = node.walk(prune=lambda one: one is not node and isinstance(one, exp.Query))
    return any(kind_of(one) is not None or isinstance(one, exp.AggFunc) for one in inside)


def is_aggregate_call(node: exp.Expr) -> bool:
    """Is this node the call of an aggregate, with its FILTER or its order?"""
    inner = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
    return kind_of(node) is not None or kind_of(inner) is not None or isinstance(inner, exp.AggFunc)
