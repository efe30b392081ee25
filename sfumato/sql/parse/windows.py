"""Windows over the rows of one person: LAG(x) OVER (PARTITION BY customer_id ORDER BY day), QUALIFY, DISTINCT ON.

The unit is always among what a window is partitioned by, as in a GROUP BY inside a question, so each value is made of
rows of one person. A SELECT with windows becomes a table of its own, whose columns are those of its rows and a column
for each window; the SELECT list and QUALIFY are then read over that table.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregate import calls_aggregate
from sfumato.sql.domains import Domain, number
from sfumato.sql.expressions import Column, Constant, Expression
from sfumato.sql.parse.ast_guard import bounded_integer, node_text, require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.grouped import is_group_aggregate, parse_value, rows_of_group, unit_key
from sfumato.sql.parse.joins import Keys
from sfumato.sql.parse.range_of_where import with_ranges
from sfumato.sql.parse.scopes import Scope, columns_of
from sfumato.sql.plan import Over, Plan, Reduce, WindowValue
from sfumato.sql.simplify import call
from sfumato.sql.union import column_label, stack_branches

RANKS: dict[type[exp.Expr], Over] = {
    exp.RowNumber: Over.ROW_NUMBER,
    exp.Rank: Over.RANK,
    exp.DenseRank: Over.DENSE_RANK,
}
NEIGHBOURS: dict[type[exp.Expr], Over] = {exp.Lag: Over.LAG, exp.Lead: Over.LEAD}
ENDS = (exp.FirstValue, exp.LastValue)
OTHERS = (exp.PercentRank, exp.CumeDist, exp.Ntile, exp.NthValue)
TOTALS = (Reduce.ROWS, Reduce.VALUES, Reduce.SUM, Reduce.MEAN, Reduce.LEAST, Reduce.GREATEST)
MOST_WINDOWS, MOST_STEPS = 20, 1000
LISTED = "ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, FIRST_VALUE, COUNT, SUM, AVG, MIN and MAX"


def has_windows(query: exp.Select) -> bool:
    """Has this SELECT windows, QUALIFY or DISTINCT ON?"""
    distinct = query.args.get("distinct")
    chosen = query.args.get("qualify") or (distinct is not None and distinct.args.get("on"))
    return bool(chosen) or any(True for _ in own_windows(query.expressions))


def own_windows(nodes: list[exp.Expression]) -> Iterator[exp.Window]:
    """The windows in these nodes, but not those of SELECTs inside."""
    for node in nodes:
        for one in node.walk(prune=lambda one: isinstance(one, exp.Query | exp.Window)):
            if isinstance(one, exp.Window):
                yield one


@dataclass(frozen=True)
class Windowed:
    """A SELECT with windows, in parts: the rows that they look at, and what is made of their values."""

    query: exp.Select  # without QUALIFY, DISTINCT ON and ORDER BY
    condition: exp.Expression | None  # of QUALIFY, or of DISTINCT ON

    @staticmethod
    def of(text: exp.Select) -> "Windowed":
        query = text.copy()
        named = {one.name.lower(): one for one in query.args.pop("windows", None) or []}
        qualify, distinct, order = (query.args.pop(part, None) for part in ("qualify", "distinct", "order"))
        condition = qualify.this if qualify is not None else None
        if distinct is not None and not distinct.args.get("on"):
            raise QueryRefused("DISTINCT stands beside no window.\n  do:     GROUP BY in a SELECT around this one")
        if distinct is not None:
            if condition is not None:
                raise QueryRefused("DISTINCT ON stands beside no QUALIFY.")
            condition = first_of_each(distinct.args["on"], order)
        nodes = [*query.expressions, *([condition] if condition is not None else [])]
        for window in list(own_windows(nodes)):
            fill_in(window, named)
        if query.args.get("group") is not None or any(map(aggregates_outside, nodes)):
            query, condition = above_groups(query, condition)
        return Windowed(query, condition)

    @property
    def windows(self) -> list[exp.Window]:
        nodes = [*self.query.expressions, *([self.condition] if self.condition is not None else [])]
        found = list(own_windows(nodes))
        if len(found) > MOST_WINDOWS:
            raise QueryRefused(f"at most {MOST_WINDOWS} windows.\n  found:  {len(found)}")
        return found


def first_of_each(on: exp.Expression, order: exp.Order | None) -> exp.Expression:
    """DISTINCT ON (k) … ORDER BY k, x: the first row of each k."""
    keys = on.expressions if isinstance(on, exp.Tuple) else [on]
    by = [one for one in (order.expressions if order is not None else []) if one.this.unnest() not in keys]
    if not by:
        raise QueryRefused(
            "DISTINCT ON takes the first row of each group.\n  do:     ORDER BY the keys and what is first"
        )
    window = exp.Window(
        this=exp.RowNumber(),
        partition_by=[one.copy() for one in keys],
        order=exp.Order(expressions=[one.copy() for one in by]),
        over="OVER",
    )
    return exp.EQ(this=window, expression=exp.Literal.number("1"))


def fill_in(window: exp.Window, named: dict[str, exp.Window]) -> None:
    """OVER w, as WINDOW w AS (…) says."""
    alias = window.args.get("alias")
    if alias is None:
        return
    known = named.get(alias.name.lower())
    if known is None or window.args.get("partition_by") or window.args.get("order"):
        raise QueryRefused(f"OVER {alias.name[:40]}: there is no window of that name, or it is changed here.")
    window.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        value = known.args.get(part)
        copied = [one.copy() for one in value] if isinstance(value, list) else value and value.copy()
        window.set(part, copied)


def aggregates_outside(node: exp.Expression) -> bool:
    """Does it aggregate, beside what is the function of a window?"""
    return any(
        is_aggregate(one) and not isinstance(one.parent, exp.Window)
        for one in node.walk(prune=lambda one: isinstance(one, exp.Query))
    )


def is_aggregate(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Filter) else node
    return isinstance(inner, exp.AggFunc) and not isinstance(inner, (*RANKS, *NEIGHBOURS, *ENDS, *OTHERS))


def above_groups(query: exp.Select, condition: exp.Expression | None) -> tuple[exp.Select, exp.Expression | None]:
    """A SELECT with GROUP BY and windows, as a SELECT with windows over one with GROUP BY."""
    inner = query.copy()
    group = inner.args.get("group")
    keys = list(group.expressions) if group is not None else []
    if any(isinstance(one, exp.Literal) for one in keys):
        raise QueryRefused("GROUP BY a number stands beside no window.\n  do:     name the key")
    titles = {one.alias.lower(): one.this for one in query.expressions if isinstance(one, exp.Alias)}
    keys = [titles.get(one.name.lower(), one) if isinstance(one, exp.Column) and not one.table else one for one in keys]
    known: list[tuple[exp.Expression, str]] = [(one.copy(), f"sf_key_{i}") for i, one in enumerate(keys)]
    found = exp.Tuple(expressions=[one.copy() for one in query.expressions])
    if condition is not None:
        found.append("expressions", condition.copy())

    def named(node: exp.Expression) -> str | None:
        for one, name in known:
            if one == node:
                return name
        if is_aggregate(node) and not isinstance(node.parent, exp.Window | exp.Filter):
            known.append((node.copy(), f"sf_value_{len(known)}"))
            return known[-1][1]
        return None

    for node in list(found.walk(bfs=True)):
        if isinstance(node, exp.Expression) and node.root() is found and (name := named(node)) is not None:
            node.replace(exp.column(name))
    inner.set("expressions", [exp.alias_(one.copy(), name) for one, name in known])
    parts = list(found.expressions)
    outer = exp.Select(expressions=parts[: len(query.expressions)])
    for title, one in zip(query.expressions, outer.expressions, strict=True):
        if not isinstance(one, exp.Alias) and isinstance(title, exp.Column):
            one.replace(exp.alias_(one.copy(), title.name))
    outer.set(
        "from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("sf_groups"))))
    )
    if inner.args.get("with_"):
        outer.set("with_", inner.args.pop("with_"))
    return outer, (parts[-1] if condition is not None else None)


# ---- the table ------------------------------------------------------------------------------------------------------


def windowed_scope(windows: list[exp.Window], scope: Scope, keys: Keys) -> Scope:
    """The rows of a SELECT as a table with a column for each window."""
    rows = Plan(scope.table, scope.joins, scope.where, (), ())
    values: dict[str, tuple[Expression, ...]] = {}
    domains: dict[str, Domain] = {}

    def column_for(of: Expression) -> Expression:
        if not scope.table.public and isinstance(of, Column) and of.origin == scope.table.unit_origin:
            return of
        if isinstance(of, Constant):
            return of
        label = column_label([rows], [of])
        values[label], domains[label] = (of,), of.domain
        return Column(f"t0.{label}", of.domain)

    names = {title: column_for(of) for title, of in scope.names.items()}
    known = {node: column_for(of) for node, of in scope.subqueries.items()}
    found: dict[str, WindowValue] = {}
    for node in windows:
        value, domain = parse_window(node, scope, keys, rows)
        label = column_label([rows], [value])  # type: ignore[list-item]
        found[label], domains[label] = value, domain
        known[id(node)] = Column(f"t0.{label}", domain)
    table = stack_branches([rows], values, domains)
    branch = replace(table.branches[0], windows=tuple(sorted(found.items())))
    table = replace(table, branches=(branch,), columns=dict(sorted(domains.items())))
    if scope.table.public:
        table = replace(table, public=True, groups=1, rows=1)
    return Scope(table, names, subqueries=known, inherited=scope.inherited)


def parse_window(node: exp.Window, scope: Scope, keys: Keys, rows: Plan) -> tuple[WindowValue, Domain]:
    """A window, and the domain of its values."""
    text = node_text(node)
    if node.args.get("spec") is not None and not whole_frame(node):
        raise QueryRefused(f"{text}: ROWS and RANGE are not understood in windows over rows.")
    partition = [parse_expression(one, scope) for one in node.args.get("partition_by") or []]
    unit = unit_of_window(text, partition, scope, keys)
    by = tuple(read_order(one, scope) for one in (node.args["order"].expressions if node.args.get("order") else []))
    others = tuple(sorted({one for one in partition if one != unit}, key=repr))
    function = node.this
    most = rows_of_group(rows, False)
    steps = number(0.0, most, 1.0)
    if type(function) in RANKS:
        require_known_parts(function)
        kind = RANKS[type(function)]
        ties = all_columns(rows) if kind is Over.ROW_NUMBER else ()
        require_order(text, by)
        return WindowValue(kind, (), others, by, ties), replace(steps, low=1.0)
    if type(function) in NEIGHBOURS:
        return neighbour(function, scope, text, others, by, rows)
    if isinstance(function, ENDS):
        last = isinstance(function, exp.LastValue)
        if last and not whole_frame(node):
            raise QueryRefused(
                f"{text}: LAST_VALUE ends at its own row.\n  do:     FIRST_VALUE with the order reversed"
            )
        require_order(text, by)
        value = parse_expression(function.this, scope)
        require_plain(function, text)
        if last:
            by = tuple((of, not descending, not nulls) for of, descending, nulls in by)
        return WindowValue(Over.FIRST, (value,), others, by, all_columns(rows)), replace(value.domain, sure=False)
    if isinstance(function, OTHERS) or not (calls_aggregate(function) or is_group_aggregate(function)):
        raise QueryRefused(f"{text}: windows over rows of one person are {LISTED}.")
    total, domain = with_ranges(lambda rows: parse_value(function, rows, most), scope)
    if total.reduce not in TOTALS or (by and whole_frame(node)):
        raise QueryRefused(f"{text}: windows over rows of one person are {LISTED}.")
    return WindowValue(Over.TOTAL, total.expressions, others, by, (), total), domain


def unit_of_window(text: str, partition: list[Expression], scope: Scope, keys: Keys) -> Expression | None:
    try:
        return unit_key(partition, scope, keys)
    except QueryRefused:
        name = scope.table.unit_column
        if name is None:
            raise QueryRefused(f"{text}: each row is a person here, so a window would look at other people.") from None
        raise QueryRefused(
            f"{text}: a window over rows looks at those of one person; here it would look at other people's.\n"
            f"  found:  no {name} after PARTITION BY\n  do:     PARTITION BY {name}"
        ) from None


def whole_frame(node: exp.Window) -> bool:
    """ROWS or RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING."""
    spec = node.args.get("spec")
    return (
        spec is not None
        and (spec.args.get("start"), spec.args.get("end")) == ("UNBOUNDED", "UNBOUNDED")
        and (spec.args.get("start_side"), spec.args.get("end_side")) == ("PRECEDING", "FOLLOWING")
        and not spec.args.get("exclude")
    )


def read_order(one: exp.Expression, scope: Scope) -> tuple[Expression, bool, bool]:
    of = parse_expression(one.this, scope)
    return of, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))


def require_order(text: str, by: tuple[tuple[Expression, bool, bool], ...]) -> None:
    if not by:
        raise QueryRefused(f"{text}: rows have no order of their own.\n  do:     ORDER BY in the window")


def require_plain(function: exp.Expression, text: str) -> None:
    for part, value in function.args.items():
        if part != "this" and value:
            raise QueryRefused(f"{text}: {part.replace('_', ' ').upper()} is not understood in windows over rows.")


def neighbour(
    function: exp.Expression, scope: Scope, text: str, others: tuple[Expression, ...],
    by: tuple[tuple[Expression, bool, bool], ...], rows: Plan,
) -> tuple[WindowValue, Domain]:  # fmt: skip
    """LAG(x, 1, default), LEAD."""
    require_order(text, by)
    value = parse_expression(function.this, scope)
    offset = function.args.get("offset")
    steps = bounded_integer(offset, text, 0, MOST_STEPS) if offset is not None else 1
    kind = NEIGHBOURS[type(function)]
    found = WindowValue(kind, (value,), others, by, all_columns(rows), steps=steps)
    domain = replace(value.domain, sure=False)
    if (default := function.args.get("default")) is not None:
        other = parse_expression(default, scope)
        if not isinstance(other, Constant):
            raise QueryRefused(f"{text}: the default is a constant.")
        domain = call("coalesce", Column("t0.x", domain), other).domain
        found = replace(found, default=other)
    return found, domain


def all_columns(rows: Plan) -> tuple[Expression, ...]:
    """All that can be read of a row: rows that agree in it are alike, so it does not matter which of them comes
    first."""
    found: list[Expression] = []
    for place, table in enumerate(rows.tables):
        if not table.public or rows.table.public:
            unit = table.unit_column
            found += [
                of for name, of in sorted(columns_of(table, place).items()) if name != unit or name in table.columns
            ]
    return tuple(found)
