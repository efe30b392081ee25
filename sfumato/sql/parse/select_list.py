"""Parts that every outer SELECT has: column titles, ORDER BY, LIMIT and OFFSET."""

from itertools import count

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.ast_guard import column_number, node_text, require_known_parts, whole_number
from sfumato.sql.parse.expressions import Names, parse_expression
from sfumato.sql.parse.histogram import is_histogram

Columns = list[tuple[str, Expression]]


def column_title(node: exp.Expression, taken: list[str]) -> str:
    """The title of a column of the answer: its alias, name or text, made unique."""
    bare = isinstance(node, exp.Count) and isinstance(node.this, exp.Star | None)
    counted = bare or (is_histogram(node) and not node.alias)
    own = node.alias or (node.name if isinstance(node, exp.Column) else "")  # the parser calls COUNT(1) by its 1
    name = "count" if counted else own or node_text(node)
    return next(title for i in count(1) if (title := name if i == 1 else f"{name} {i}") not in taken)


def order_by(query: exp.Select, columns: Columns, names: Names) -> list[tuple[Expression, bool]]:
    """ORDER BY: (expression, is it descending?)."""
    order = query.args.get("order")
    found = []
    for one in order.expressions if order else []:
        require_known_parts(one)
        found.append((order_expression(one.this, columns, names), bool(one.args.get("desc"))))
    return found


def order_expression(node: exp.Expression, columns: Columns, names: Names) -> Expression:
    if isinstance(node, exp.Literal) and not node.is_string:
        return columns[column_number(node, "ORDER BY", len(columns)) - 1][1]
    if isinstance(node, exp.Column) and not node.table:
        for name, found in columns:
            if name.lower() == node.name.lower():  # a title comes before a column of the rows
                return found
    return parse_expression(node, names)


def limit_or_offset(query: exp.Select, word: str) -> int | None:
    """The number after LIMIT or OFFSET; None if there is none."""
    node = query.args.get(word)
    if node is None:
        return None
    require_known_parts(node)
    found = whole_number(node.expression)
    if found is None:
        raise QueryRefused(f"{word.upper()} takes a whole number.")
    return found
