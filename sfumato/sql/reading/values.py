"""Expressions: of one row, or of released values, whatever the names in them stand for."""

from typing import Protocol

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregates import AGGREGATES
from sfumato.sql.expressions import Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.function import Spelling
from sfumato.sql.normal import call
from sfumato.sql.reading.nodes import plain, shown
from sfumato.sql.reading.special import SPECIAL

SPELLED = {spelling: name for name, function in FUNCTIONS.items() for spelling in function.spelled}
ASKED = (
    "COUNT, COUNT(DISTINCT …), SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN, QUANTILE, MODE, "
    "TRIMMED_MEAN, TRIANGLES or HISTOGRAM"
)
CHAINS = (exp.And, exp.Or, exp.DPipe)


class Names(Protocol):
    """What names stand for."""

    def find(self, alias: str, name: str) -> Expression: ...

    def known(self, node: exp.Expression) -> Expression | None:
        """What a whole node stands for, if it is known as it is."""
        ...


def expression(node: exp.Expression, names: Names) -> Expression:
    """What a node means, where names mean this."""
    if (known := names.known(node)) is not None:
        return known

    def go(*nodes: exp.Expr | None) -> list[Expression]:
        return [expression(one, names) for one in nodes if isinstance(one, exp.Expression)]

    plain(node)
    if isinstance(node, exp.Column) and not node.args.get("db"):
        return names.find(node.table.lower(), node.name.lower())
    spelling: Spelling = node.name.lower() if isinstance(node, exp.Anonymous) else type(node)
    if (special := SPECIAL.get(spelling)) is not None:
        return special(node, go)
    if (name := SPELLED.get(spelling)) is not None:
        return call(name, *go(*arguments(node)))
    if isinstance(node, AGGREGATES):
        raise QueryRefused(f"{shown(node)} is not allowed inside another aggregate, in WHERE or in GROUP BY.")
    if isinstance(node, exp.AggFunc):
        raise QueryRefused(f"{shown(node)} is not among the aggregates.\n  do:     ask {ASKED}")
    raise QueryRefused(f"{shown(node)} is not among the things that questions may use.\n  do:     see docs/sql.md")


def arguments(node: exp.Expression) -> list[exp.Expr]:
    """In the order in which they are written; a long chain of one operator is one list."""
    if isinstance(node, CHAINS):
        return list(node.flatten(unnest=False))
    first = [] if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    return [*first, *node.expressions]
