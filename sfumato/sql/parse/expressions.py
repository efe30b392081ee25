"""Expressions: of one row, or of released values, whatever the names in them stand for."""

from typing import Protocol

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregate import kind_of
from sfumato.sql.expressions import Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.function import Spelling
from sfumato.sql.parse.ast_guard import node_text, require_known_parts
from sfumato.sql.parse.function_syntax import REFUSED, SPECIAL
from sfumato.sql.simplify import call

SPELLED = {spelling: name for name, function in FUNCTIONS.items() for spelling in function.spelled}
CHAINS = (exp.And, exp.Or, exp.DPipe)


class Names(Protocol):
    """What names stand for."""

    def find(self, alias: str, name: str) -> Expression: ...

    def known(self, node: exp.Expression) -> Expression | None:
        """What a whole node stands for, if it is known as it is."""
        ...


def parse_expression(node: exp.Expression, names: Names) -> Expression:
    """What a node means, where names mean this."""
    if (known := names.known(node)) is not None:
        return known

    def go(*nodes: exp.Expr | None) -> list[Expression]:
        return [parse_expression(one, names) for one in nodes if isinstance(one, exp.Expression)]

    spelling: Spelling = node.name.lower() if isinstance(node, exp.Anonymous) else type(node)
    special, name = SPECIAL.get(spelling), SPELLED.get(spelling)
    if special or name or isinstance(node, exp.Column):
        require_known_parts(node)
    if isinstance(node, exp.Column) and not node.args.get("db"):
        return names.find(node.table.lower(), node.name.lower())
    if special is not None:
        return special(node, go)
    if name is not None:
        return call(name, *go(*argument_nodes(node)))
    if spelling in REFUSED:
        why, do = REFUSED[spelling]
        raise QueryRefused(f"{node_text(node)}: {why}\n  do:     {do}")
    if kind_of(node) is not None or isinstance(node, exp.Filter):
        raise QueryRefused(f"{node_text(node)} is not allowed inside another aggregate, in WHERE or in GROUP BY.")
    raise QueryRefused(
        f"{describe_node(node)} is not among the things that questions may use.\n  do:     see docs/sql.md"
    )


def describe_node(node: exp.Expression) -> str:
    """The analyst's words for a node, or the name of a function that the parser would write as others."""
    text = node_text(node)
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous) and node.sql_name() not in text:
        return f"{node.sql_name()}(…)"
    return text


def argument_nodes(node: exp.Expression) -> list[exp.Expr]:
    """In the order in which they are written; a long chain of one operator is one list."""
    if isinstance(node, CHAINS):
        return list(node.flatten(unnest=False))
    first = [] if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    return [*first, *node.expressions]
