"""GENERATE_SERIES in FROM: its values are public keys, so days and bins without rows are shown, too.

FROM generate_series(…) d LEFT JOIN visits v ON v.day = d.day GROUP BY d.day asks for the rows of visits by their day,
and lists all days. So the series leaves FROM, and each mention of it becomes what it is compared with, among its
values.
"""

import datetime
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.expressions import Call, Constant
from sfumato.sql.parse.ast_guard import node_text, parse_number
from sfumato.sql.parse.date_syntax import add_interval, is_interval, read_interval
from sfumato.sql.simplify import call

MOST_VALUES = 750
LISTED = "sf_listed"
KINDS = (exp.GenerateSeries, exp.GenerateDateArray)


@dataclass(frozen=True)
class Series:
    """A series: what it is called, its values, and how wide its steps are."""

    alias: str
    column: str
    values: tuple[exp.Expression, ...]
    step: exp.Expression

    def is_column(self, node: exp.Expr | None) -> bool:
        inner = node.unnest() if isinstance(node, exp.Expression) else None
        if isinstance(inner, exp.Cast):  # to a date, as its values are
            inner = inner.this
        if not isinstance(inner, exp.Column) or inner.name.lower() != self.column:
            return False
        return inner.table.lower() in ("", self.alias)


def without_series(query: exp.Select) -> exp.Select:
    """The same question without series in FROM."""
    source = query.args.get("from_") or query.args.get("from")
    joins = query.args.get("joins") or []
    if source is None or not joins:
        return query
    nodes = [source.this, *(join.this for join in joins)]
    places = [i for i, node in enumerate(nodes) if series_node(node) is not None]
    if not places:
        return query
    if len(places) > 1 or len(nodes) != 2:
        raise QueryRefused(
            "a series is joined with one table, or a SELECT.\n  do:     join the others in a SELECT first"
        )
    found = query.copy()
    source = found.args.get("from_") or found.args["from"]
    (join,) = found.args["joins"]
    series = read_series(source.this if places == [0] else join.this)
    if join.side and (join.side == "LEFT") != (places == [0]):
        raise QueryRefused("this join keeps rows that no value of the series has.\n  do:     put the series first")
    where = found.args.get("where")
    conditions = [*conjuncts(join.args.get("on")), *conjuncts(where.this if where is not None else None)]
    compared, rest = match(series, conditions)
    rows = join.this if places == [0] else source.this
    source.set("this", rows.copy())
    found.set("joins", None)
    listed = exp.Anonymous(this=LISTED, expressions=[compared, *(one.copy() for one in series.values)])
    known = exp.Not(this=exp.Is(this=listed.copy(), expression=exp.null()))
    found.set("where", exp.Where(this=exp.and_(known, *rest)))
    for part in ("expressions", "group", "having", "order", "qualify", "where"):
        for node in found.args[part] if part == "expressions" else [found.args.get(part)]:
            replace_mentions(node, series, listed)
    return found


def replace_mentions(node: exp.Expression | None, series: Series, listed: exp.Expression) -> None:
    for one in list(node.find_all(exp.Column)) if node is not None else []:
        if series.is_column(one):
            if isinstance(one.parent, exp.Select):  # a column of the answer, which keeps its name
                one.replace(exp.alias_(listed.copy(), one.name))
            else:
                one.replace(listed.copy())


def conjuncts(node: exp.Expression | None) -> list[exp.Expression]:
    inner = node.unnest() if node is not None else None
    if isinstance(inner, exp.And):
        return [*conjuncts(inner.this), *conjuncts(inner.expression)]
    return [inner] if isinstance(inner, exp.Expression) else []


def match(series: Series, conditions: list[exp.Expression]) -> tuple[exp.Expression, list[exp.Expression]]:
    """What is compared with the series, and the other conditions. x >= s AND x < s + step: the beginning of the step
    in which x is."""
    for one in conditions:
        if isinstance(one, exp.EQ):
            for mine, theirs in ((one.this, one.expression), (one.expression, one.this)):
                if series.is_column(mine) and not mentions(theirs, series):
                    return theirs.copy(), [other.copy() for other in conditions if other is not one]
    lower = [(i, side) for i, one in enumerate(conditions) if (side := from_below(one, series)) is not None]
    upper = [(i, side) for i, one in enumerate(conditions) if (side := from_above(one, series)) is not None]
    for i, x in lower:
        for j, y in upper:
            if x == y:
                rest = [other.copy() for k, other in enumerate(conditions) if k not in (i, j)]
                return step_of(x, series), rest
    raise QueryRefused(
        "a series is compared with what is counted by =, or by x >= s AND x < s + its step.\n"
        "  do:     write ON CAST(x AS DATE) = s.day"
    )


def mentions(node: exp.Expr | None, series: Series) -> bool:
    return node is not None and any(series.is_column(one) for one in node.find_all(exp.Column))


def from_below(one: exp.Expression, series: Series) -> exp.Expr | None:
    """x of x >= s."""
    found: exp.Expr | None = None
    if isinstance(one, exp.GTE) and series.is_column(one.expression):
        found = one.this
    elif isinstance(one, exp.LTE) and series.is_column(one.this):
        found = one.expression
    return found


def from_above(one: exp.Expression, series: Series) -> exp.Expr | None:
    """x of x < s + step."""
    x: exp.Expr
    if isinstance(one, exp.LT):
        x, end = one.this, one.expression
    elif isinstance(one, exp.GT):
        x, end = one.expression, one.this
    else:
        return None
    inner = end.unnest() if isinstance(end, exp.Expression) else end
    if isinstance(inner, exp.Add) and series.is_column(inner.this) and inner.expression == series.step:
        return x
    return None


def step_of(x: exp.Expr, series: Series) -> exp.Expression:
    first = series.values[0]
    if is_interval(series.step):
        return exp.DateBin(this=series.step.copy(), expression=x.copy(), origin=first.copy())
    moved = exp.Paren(this=exp.Sub(this=exp.paren(x.copy()), expression=first.copy()))
    steps = exp.Floor(this=exp.Div(this=moved, expression=series.step.copy(), typed=False, safe=False))
    return exp.Add(this=exp.Mul(this=steps, expression=series.step.copy()), expression=first.copy())


# ---- reading a series ------------------------------------------------------------------------------------------------


def series_node(node: exp.Expr) -> exp.Expression | None:
    """The call of GENERATE_SERIES that a source is."""
    if isinstance(node, exp.Table) and isinstance(node.this, KINDS):
        return node.this
    if isinstance(node, exp.Unnest) and len(node.expressions) == 1 and isinstance(node.expressions[0], KINDS):
        return node.expressions[0]
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        inner = node.this
        source = inner.args.get("from_") or inner.args.get("from")
        used = {part for part, value in inner.args.items() if value}
        if source is not None and used <= {"expressions", "from_", "from"} and len(inner.expressions) == 1:
            return series_node(source.this)
    return None


def read_series(node: exp.Expression) -> Series:
    made = series_node(node)
    assert made is not None
    column = "generate_series" if not made.args.get("is_end_exclusive") else "range"
    alias = (node.alias or "").lower()
    as_date = False
    if isinstance(node, exp.Subquery):
        (shown,) = node.this.expressions
        column = shown.alias_or_name.lower()
        as_date = any(one.to.this is exp.DataType.Type.DATE for one in shown.find_all(exp.Cast))
    elif (title := node.args.get("alias")) is not None:
        columns = title.args.get("columns")
        column = columns[0].name.lower() if columns else alias or column
    start, end, step = (made.args.get(part) for part in ("start", "end", "step"))
    if end is None:
        start, end = exp.Literal.number("0"), start
    values = (
        numbers(start, end, step, made) if step is None or not is_interval(step) else dates(start, end, step, as_date)
    )
    if made.args.get("is_end_exclusive") and values and values[-1] == end:
        values = values[:-1]
    if not values:
        raise QueryRefused(f"{node_text(made)}: a series without values.")
    return Series(alias, column, values, step.copy() if step is not None else exp.Literal.number("1"))


def too_many(made: str) -> QueryRefused:
    return QueryRefused(f"{made}: a series of at most {MOST_VALUES} values.")


def numbers(
    start: exp.Expr | None, end: exp.Expr | None, step: exp.Expr | None, made: exp.Expression
) -> tuple[exp.Expression, ...]:
    first, last, by = (literal_number(one) for one in (start, end, step or exp.Literal.number("1")))
    if first is None or last is None or not by or by < 0:
        raise QueryRefused(f"{node_text(made)}: a series has numbers or dates that stand in the question, and a step.")
    if (last - first) / by > MOST_VALUES:
        raise too_many(node_text(made))
    many = int((last - first) // by) + 1
    return tuple(number_literal(first + i * by) for i in range(many))


def literal_number(node: exp.Expr | None) -> float | None:
    sign = -1 if isinstance(node, exp.Neg) else 1
    inner = node.this if isinstance(node, exp.Neg) else node
    return sign * parse_number(inner.this) if isinstance(inner, exp.Literal) and not inner.is_string else None


def number_literal(value: float) -> exp.Expression:
    found = exp.Literal.number(repr(abs(value)).removesuffix(".0"))
    return exp.Neg(this=found) if value < 0 else found


def dates(start: exp.Expr | None, end: exp.Expr | None, step: exp.Expr, as_date: bool) -> tuple[exp.Expression, ...]:
    first, last = moment_of(start), moment_of(end)
    assert isinstance(step, exp.Expression)
    months, micro = read_interval(step)
    if (months, micro) < (0, 0) or months < 0 or micro < 0 or not (months or micro):
        raise QueryRefused("a series goes forward, step by step.")
    found: list[str] = []
    while True:
        moved = add_interval(first, len(found) * months, "month") if months else first
        moved = add_interval(moved, len(found) * micro, "microsecond") if micro else moved
        if datetime.datetime.fromisoformat(moved) > datetime.datetime.fromisoformat(last):
            break
        found.append(moved)
        if len(found) > MOST_VALUES:
            raise too_many("GENERATE_SERIES")
    return tuple(exp.Cast(this=exp.Literal.string(one[:10] if as_date else one),
                          to=exp.DataType(this=exp.DataType.Type["DATE" if as_date else "TIMESTAMPNTZ"]))
                 for one in found)  # fmt: skip


def moment_of(node: exp.Expr | None) -> str:
    inner = node.this if isinstance(node, exp.Cast) else node
    if isinstance(inner, exp.Literal) and inner.is_string:
        match call("timestamp", Constant(inner.this)):
            case Call("timestamp", (Constant(str() as text),)) if text != inner.this or len(text) == 19:
                return text
    raise QueryRefused("a series has numbers or dates that stand in the question.")
