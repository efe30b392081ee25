"""The outer SELECT: column titles, ORDER BY, LIMIT, and post-processing by a SELECT around one with aggregates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregate import calls_aggregate, kind_of
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.ast_guard import (
    alias,
    column_number,
    node_text,
    require_known_parts,
    whole_number,
    without_alias,
)
from sfumato.sql.parse.expressions import Names, parse_expression
from sfumato.sql.parse.histogram import is_histogram
from sfumato.sql.plan import Plan
from sfumato.sql.postprocess import require_postprocessing
from sfumato.sql.question import Question
from sfumato.sql.simplify import call

Columns = list[tuple[str, Expression]]
ENDS = (" low", " high")  # of the names of an interval's columns
PARTS = {"expressions", "from_", "from", "where", "order", "limit", "offset", "with_", "with"}
HEAVIEST, MOST_LAYERS = 4_000, 8
MOST_STEPS = 50_000_000  # parts of expressions over released values, in all groups together


def column_title(node: exp.Expression, taken: list[str]) -> str:
    """The title of a column of the answer: its alias, name or text, made unique."""
    bare = isinstance(node, exp.Count) and isinstance(node.this, exp.Star | None)
    counted = bare or (is_histogram(node) and not node.alias)
    own = node.alias or (node.name if isinstance(node, exp.Column) else "")  # the parser calls COUNT(1) by its 1
    name = "count" if counted else own or node_text(node)
    return next(title for i in count(1) if is_free(title := name if i == 1 else f"{name} {i}", taken))


def is_free(title: str, taken: list[str]) -> bool:
    """Is there no column of this name, none whose interval has it, and none that has the name of its interval?"""
    ends = {f"{one}{end}" for one in taken for end in ENDS}
    return title not in taken and title not in ends and not any(f"{title}{end}" in taken for end in ENDS)


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


def layers(query: exp.Select) -> list[exp.Select]:
    """The SELECT with aggregates inside this one, then those around it, outwards; empty if there is none."""
    found, views = [query], views_of(query)
    while not has_aggregates(found[-1]):
        source = found[-1].args.get("from_") or found[-1].args.get("from")
        node = source.this if source is not None else None
        inside = node.this if isinstance(node, exp.Subquery) else None
        names = [alias(cte) for cte in views]
        if isinstance(node, exp.Table) and not node.args.get("db") and node.name.lower() in names:
            place = len(names) - 1 - names[::-1].index(node.name.lower())
            inside, views = views[place].this, views[:place]
        if not isinstance(inside, exp.Select) or len(found) > MOST_LAYERS:
            return []
        found, views = [*found, inside], [*views, *views_of(inside)]
    core = found[-1].copy()
    rows = [cte.copy() for cte in views]  # those with aggregates are read only where rows are asked of them
    core.set("with_", exp.With(expressions=rows) if rows else None)
    return [core, *reversed(found[:-1])] if len(found) > 1 else []


def views_of(query: exp.Select) -> list[exp.CTE]:
    """The views of its WITH."""
    views = query.args.get("with_") or query.args.get("with")
    if views is None or views.args.get("recursive"):
        return []
    for cte in views.expressions:
        require_known_parts(cte)
    return list(views.expressions)


def has_aggregates(query: exp.Expression) -> bool:
    """Has this SELECT aggregates of its own?"""
    if not isinstance(query, exp.Select):
        return False
    own = any(calls_aggregate(node) for node in query.expressions)
    return own or bool(query.args.get("group"))


@dataclass(frozen=True)
class OuterNames:
    """Resolves names as columns of the answer."""

    question: Question
    called: str

    def resolve(self, node: exp.Expression) -> Expression | None:
        if kind_of(node) is not None or isinstance(node, exp.Filter):
            raise QueryRefused(
                f"{node_text(node)} is over answers, not over rows.\n  do:     aggregate rows once, in the inner SELECT"
            )
        return None

    def find(self, alias: str, name: str) -> Expression:
        found = [e for title, e in self.question.columns if title.lower() == name and alias in ("", self.called)]
        if found:
            return found[0]
        known = ", ".join(title for title, _ in self.question.columns)
        raise QueryRefused(f"{name!r} is not a column here.\n  found:  {known}\n  do:     use one of these")


def apply_outer_select(query: exp.Select, question: Question) -> Question:
    """The question with the post-processing of an outer SELECT."""
    for part, value in query.args.items():
        if value and (part not in PARTS or (part.startswith("with") and value.args.get("recursive"))):
            raise QueryRefused(
                f"{part.upper().strip('_')} is not allowed around a SELECT with aggregates.\n"
                "  do:     choose, compute, filter and sort what it gives; aggregate rows once"
            )
    source = query.args.get("from_") or query.args["from"]
    require_known_parts(source.this)
    names = OuterNames(question, alias(source.this))
    columns: Columns = []
    for node in query.expressions:
        require_known_parts(node)
        if isinstance(node, exp.Star):
            columns += question.columns
        else:
            columns.append(
                (column_title(node, [title for title, _ in columns]), parse_expression(without_alias(node), names))
            )
    found = replace(question, columns=tuple(columns))
    if where := query.args.get("where"):
        require_no_limit_yet(question, "WHERE")
        found = replace(found, having=call("and", question.having, parse_expression(where.this, names)))
    if query.args.get("order"):
        require_no_limit_yet(question, "ORDER BY")
        found = replace(found, order=(*order_by(query, columns, names), *question.order))
    if query.args.get("limit") or query.args.get("offset"):
        require_no_limit_yet(question, "LIMIT")
        found = replace(found, limit=limit_or_offset(query, "limit"), offset=limit_or_offset(query, "offset") or 0)
    after = [*(e for _, e in found.columns), found.having, *(e for e, _ in found.order)]
    for one in after:
        require_postprocessing(one)
    if sum(e.weight for e in after) > HEAVIEST:
        raise QueryRefused("this question is too long, with its views expanded.\n  do:     ask less at a time")
    check_layout(found.plan, after)
    return found


def check_layout(plan: Plan, after: Sequence[Expression]) -> None:
    """Refuse post-processing that takes long: it is free, and could be repeated without limit."""
    if plan.combinations * sum(e.weight for e in after) > MOST_STEPS:
        raise QueryRefused(
            "this question takes too long to lay out.\n"
            f"  found:  {plan.combinations:,} groups, and long expressions over released values\n"
            "  do:     ask for aggregates alone, and go on with the answer"
        )


def require_no_limit_yet(question: Question, word: str) -> None:
    """Refuse a clause after LIMIT, where it would not see all groups: there is one LIMIT, at the end."""
    if question.limit is not None or question.offset:
        raise QueryRefused(f"{word} comes before LIMIT.\n  do:     ask with the inner LIMIT, and go on with the answer")
