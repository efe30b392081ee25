"""The outer SELECT: keys, columns, HAVING, ORDER BY, LIMIT."""

from collections.abc import Mapping
from itertools import count

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Column, Constant, Expression, Output
from sfumato.sql.policy import ROW, Policy
from sfumato.sql.post import foreign
from sfumato.sql.question import Question
from sfumato.sql.reading.groups import Groups
from sfumato.sql.reading.histograms import Histogram, histogram, is_histogram
from sfumato.sql.reading.measures import canonical, measured
from sfumato.sql.reading.nodes import inner, place_of, plain, shown, whole
from sfumato.sql.reading.rows import Rows
from sfumato.sql.reading.scopes import Scope
from sfumato.sql.reading.values import expression
from sfumato.sql.release import Release, Window
from sfumato.sql.stack import weight

MOST_KEYS, MOST_ROWS, HEAVIEST = 1_000_000, 1_000_000, 4_000
Columns = list[tuple[str, Expression]]


def selected(query: exp.Select, policy: Policy) -> Question:
    """The question that a SELECT asks."""
    scope = Rows(policy).scope(query)
    named = {node.alias.lower(): counting(node) for node in query.expressions if isinstance(node, exp.Alias)}
    bins = histogram(query, scope)
    groups = Groups(scope, keys(query, named, scope, *([bins.key] if bins else [])), named)
    columns = shown_columns(query, groups, bins)
    having = query.args.get("having")
    condition = expression(having.this, groups) if having else Constant(True)
    if condition.domain.kind is not Kind.TRUTH:
        raise QueryRefused("HAVING takes a condition.")
    return within_limits(groups, columns, condition, ordered(query, columns, groups, bins), limited(query))


def counting(node: exp.Expression) -> exp.Expression:
    """What a name stands for; a histogram's, for its counts."""
    return exp.Count(this=exp.Star()) if is_histogram(node) else inner(node)


def keys(
    query: exp.Select, named: Mapping[str, exp.Expression], scope: Scope, *more: Expression
) -> list[Expression]:  # fmt: skip
    """GROUP BY, in one order: another one is no other question."""
    group = query.args.get("group")
    if group is not None:
        plain(group)
    nodes = [key(node, query, named, scope) for node in group.expressions] if group is not None else []
    found = sorted({*(expression(node, scope) for node in nodes), *more}, key=repr)
    for one in found:
        if isinstance(one, Column) and one.origin == f"t0.{scope.table.unit}":
            raise QueryRefused("GROUP BY the unit would ask about each person.\n  do:     group by something else")
    return found


def key(
    node: exp.Expression, query: exp.Select, named: Mapping[str, exp.Expression], scope: Scope
) -> exp.Expression:  # fmt: skip
    """GROUP BY 2 means that column; a name means a column of the table first, then an alias."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return inner(query.expressions[place_of(node, "GROUP BY", len(query.expressions)) - 1])
    bare = isinstance(node, exp.Column) and not node.table and node.name.lower() in named
    if bare and not any(name == node.name.lower() for _, name in scope.names):
        return named[node.name.lower()]
    return node


def shown_columns(query: exp.Select, groups: Groups, bins: Histogram | None) -> Columns:
    """What is listed after SELECT, each under a name of its own; a histogram is its edges and its counts."""
    found: Columns = []
    for node in query.expressions:
        if isinstance(node, exp.Star):
            raise QueryRefused("SELECT * would show rows.\n  do:     ask for keys and aggregates")
        if isinstance(node, exp.Alias):
            plain(node)
        if bins is not None and is_histogram(node):
            found += bins.columns(groups.key(bins.key))
        found.append((titled(node, [title for title, _ in found]), expression(counting(node), groups)))
    return found


def titled(node: exp.Expression, taken: list[str]) -> str:
    """What a column of the answer is called: its alias, its name, or its text; each name once."""
    bare = isinstance(node, exp.Count) and isinstance(node.this, exp.Star | None)
    name = "count" if bare or (is_histogram(node) and not node.alias) else node.alias_or_name or shown(node)
    return next(title for i in count(1) if (title := name if i == 1 else f"{name} {i}") not in taken)


def ordered(
    query: exp.Select, columns: Columns, groups: Groups, bins: Histogram | None
) -> list[tuple[Expression, bool]]:  # fmt: skip
    """ORDER BY: what, and is it descending? Bins are shown from the lowest if nothing is said."""
    order = query.args.get("order")
    found = []
    if order is None and bins is not None:
        shown_keys = [e for _, e in columns if isinstance(e, Output) and e.place < len(groups.keys)]
        return [*((e, False) for e in shown_keys), (bins.order(groups.key(bins.key)), False)]
    for one in order.expressions if order else []:
        plain(one)
        found.append((sorted_by(one.this, columns, groups), bool(one.args.get("desc"))))
    return found


def sorted_by(node: exp.Expression, columns: Columns, groups: Groups) -> Expression:
    if isinstance(node, exp.Literal) and not node.is_string:
        return columns[place_of(node, "ORDER BY", len(columns)) - 1][1]
    if isinstance(node, exp.Column) and not node.table:
        for name, found in columns:
            if name.lower() == node.name.lower():  # what is shown, before what it is made of
                return found
    return expression(node, groups)


def limited(query: exp.Select) -> int | None:
    """LIMIT."""
    limit = query.args.get("limit")
    if limit is None:
        return None
    plain(limit)
    found = whole(limit.expression)
    if found is None:
        raise QueryRefused("LIMIT takes a whole number.")
    return found


def within_limits(
    groups: Groups, columns: Columns, having: Expression, order: list[tuple[Expression, bool]], limit: int | None
) -> Question:
    """All of it as a question, unless it is too large."""
    if not groups.wanted:
        raise QueryRefused(
            "this question has no aggregate, so it would show rows.\n  do:     ask COUNT(*), SUM(…) or AVG(…)"
        )
    rows = groups.rows
    measures, aggregates = measured(groups.wanted, private=any(key.domain.keys is None for key in groups.keys))
    windows = tuple(one for one in groups.wanted if isinstance(one, Window))
    core = Release(rows.table, rows.joins, rows.where, tuple(groups.keys), measures, windows)
    if core.rows > MOST_ROWS:
        raise QueryRefused(f"too many rows of one unit after this join.\n  found:  {core.rows:,} are allowed for")
    if core.combinations > MOST_KEYS:
        raise QueryRefused(f"too many groups.\n  found:  {core.combinations:,} combinations of public keys")
    if core.table.unit == ROW and core.rows > 1:
        raise QueryRefused(
            "each row is a person here, and UNION ALL lists a row more than once.\n"
            f"  found:  {core.rows} SELECTs on one table\n"
            "  do:     select another constant in each, such as 'first' AS part, and GROUP BY part"
        )
    after = [*(e for _, e in columns), having, *(e for e, _ in order)]
    for one in after:
        foreign(one)
    read = [*groups.keys, core.where, *(m.of for m in measures if m.of), *(w.of for w in windows)]
    if sum(e.weight for e in [*read, *after]) + weight(core.table) > HEAVIEST:
        raise QueryRefused("this question is too long, written out.\n  do:     ask less at a time")
    return canonical(Question(core, aggregates, tuple(columns), having, tuple(order), limit))
