"""Expressions over one row or over released values, depending on what names resolve to."""

from typing import Protocol

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregate import kind_of, refuse_unknown
from sfumato.sql.expressions import Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.function import Spelling
from sfumato.sql.parse.ast_guard import node_text, require_known_parts
from sfumato.sql.parse.date_syntax import COMPARED, compare_durations, compares_durations
from sfumato.sql.parse.function_syntax import REFUSED, SPECIAL
from sfumato.sql.parse.problems import closest, place_of
from sfumato.sql.simplify import call


def function_name(spelling: Spelling) -> str:
    """The name of a function in texts; "" if it is an operator."""
    if isinstance(spelling, str):
        return spelling
    return str(spelling.sql_name()).lower() if issubclass(spelling, exp.Func) else ""


SPELLED = {spelling: name for name, function in FUNCTIONS.items() for spelling in function.spelled}
KNOWN = sorted(
    {name for one in (*SPELLED, *SPECIAL) if (name := function_name(one))}
    | {"count", "sum", "avg", "median", "stddev", "variance", "quantile_cont", "mode", "min", "max", "count_if"}
)  # names that may have been meant
CHAINS = (exp.And, exp.Or, exp.DPipe)


class Names(Protocol):
    """Resolves names."""

    def find(self, alias: str, name: str) -> Expression: ...

    def resolve(self, node: exp.Expression) -> Expression | None:
        """The expression of a node that has a meaning as a whole; None if its parts must be parsed."""
        ...


def parse_expression(node: exp.Expression, names: Names) -> Expression:
    """The expression of a node, with names resolved by `names`; a refusal knows its place in the text."""
    try:
        if (known := names.resolve(node)) is not None:
            return known

        def go(*nodes: exp.Expr | None) -> list[Expression]:
            return [parse_expression(one, names) for one in nodes if isinstance(one, exp.Expression)]

        if isinstance(node, COMPARED) and compares_durations(node):
            return compare_durations(node, go)
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
        refuse_unknown(node)
        meant = closest(node.name, KNOWN) if isinstance(node, exp.Anonymous) else ""
        do = f"did you mean {meant.upper()}?" if meant else "see docs/sql.md for what is"
        raise QueryRefused(f"{describe_node(node)} is not supported in questions.\n  do:     {do}")
    except QueryRefused as problem:
        if problem.place is None:
            problem.place = place_of(node)
        raise


def describe_node(node: exp.Expression) -> str:
    """The text of a node for messages, or the name of a function that sqlglot would write as another one."""
    text = node_text(node)
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous) and node.sql_name() not in text:
        return f"{node.sql_name()}(…)"
    return text


def argument_nodes(node: exp.Expression) -> list[exp.Expr]:
    """The arguments in the order of the text; a long chain of one operator is one list."""
    if isinstance(node, CHAINS):
        return list(node.flatten(unnest=False))
    first = [] if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    return [*first, *node.expressions]
