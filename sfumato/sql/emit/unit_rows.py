"""The rows that a plan is about, as one SELECT: joined, filtered, each with its unit, its keys and its values.

Rows whose unit is NULL belong to nobody, and are dropped here. Everything is compiled from the plan; no text of the
analyst reaches an engine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato.sql.dialects.base import Dialect, literal_list, raw
from sfumato.sql.dialects.keyed_hash import FORMS, LARGE, Form, Hashed, whole_text
from sfumato.sql.domains import LONGEST_TEXT, Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions.function import Sql, of_type, paren
from sfumato.sql.parse.scopes import columns_of
from sfumato.sql.plan import (
    Grouped,
    GroupValue,
    Join,
    Measure,
    Ordering,
    Over,
    Owner,
    Plan,
    Reduce,
    Table,
    What,
    WindowValue,
)
from sfumato.sql.reserved_names import (
    ABOVE,
    KEY,
    ONE,
    OWNERS,
    PLACE,
    RANKED,
    ROWS,
    STORED,
    UNIT,
    column,
    key,
    measure,
    qualify,
    table_alias,
)
from sfumato.sql.union import row_multiplicity
from sfumato.sql.units import ColumnUnit

# what each kind is compiled to, on every engine
TYPES = {Kind.NUMBER: "DOUBLE", Kind.TEXT: "TEXT", Kind.TRUTH: "BOOLEAN", Kind.DATE: "TIMESTAMPNTZ"}


def row_select(plan: Plan, values: Mapping[str, Sql], to: Dialect) -> exp.Select:
    """unit, keys and the named values, for each row that counts."""
    table = plan.table
    found = exp.select().from_(limit_rows_per_unit(table, 0, to) if plan.crossed else first_table(table, to))
    for number, join in enumerate(plan.joins, 1):
        right = deduplicate_public(join, number, to) if join.table.public else limit_joined_rows(join, number, to)
        on = exp.and_(*(join_condition(join, number, *pair, to) for pair in join.on)) if join.on else exp.true()
        found = found.join(right, join_type="left", on=on, copy=False)  # each copy would be of all joins before
    chosen = [exp.alias_(as_key(one, to), key(i)) for i, one in enumerate(plan.keys)]
    chosen += [exp.alias_(value, name) for name, value in values.items()]
    conditions: list[Sql] = []
    if table.unit_column is not None:
        chosen.insert(0, exp.alias_(unit_of(table, table_alias(0), to), UNIT))
        conditions.append(exp.column(table.unit_column, table=table_alias(0), quoted=True).is_(exp.null()).not_())
    if plan.where != Constant(True):
        conditions.append(to.compiled(plan.where))
    for one, values_of_key in zip(plan.keys, plan.key_lists, strict=True):
        if values_of_key is not None:
            public = literal_list(type(to), one.domain.kind, values_of_key)
            conditions.append(exp.In(this=as_key(one, to), expressions=[exp.Var(this=public)]))
    found = found.select(*chosen, copy=False)
    conditions = [one if isinstance(one, exp.Condition) else paren(one) for one in conditions]  # text of a dialect
    return found.where(*conditions, copy=False) if conditions else found


def stored_table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def with_alias(rows: exp.Table | exp.Select, alias: str) -> exp.Expression:
    title = exp.TableAlias(this=exp.to_identifier(alias))
    if isinstance(rows, exp.Table):
        rows.set("alias", title)
        return rows
    return exp.Subquery(this=rows, alias=title)


def unit_of(table: Table, alias: str, to: Dialect) -> Sql:
    """The unit of a row. A unit that was looked up in another table is normalised already."""
    assert table.unit_column is not None
    column = exp.column(table.unit_column, table=alias, quoted=True)
    return column if table.owner or table.derived else to.apart(column, to.type_of(table, table.unit_column))


def rows_with_unit(table: Table, to: Dialect, theirs: str | None = None) -> exp.Table | exp.Select:
    """The rows of a table (its columns of the policy, and `theirs` as KEY) with their unit; where another table knows
    it, that one is looked up, one unit for a key.

    Keys are compared as texts: of one type they are equal then if they are equal, and nothing can raise.
    """
    if table.branches:
        return union_rows(table, to)
    if table.grouped is not None:
        return grouped_rows(table, table.grouped, to)
    if table.edges:
        return edge_rows(table, to, theirs)
    if table.owner is None:
        return stored_table(table.name) if theirs is None else stored_columns(table, to, theirs)
    unit = exp.alias_(exp.column(UNIT, table=OWNERS), table.unit_column, quoted=True)
    mine = to.as_text(exp.column(table.owner.mine, table=STORED, quoted=True))
    return (
        stored_columns(table, to, theirs)
        .select(unit)
        .join(
            with_alias(owners(table.owner, to), OWNERS), on=exp.EQ(this=mine, expression=exp.column(KEY, table=OWNERS))
        )
    )


def owners(owner: Owner, to: Dialect) -> exp.Select:
    """KEY and UNIT: whose each key of the table above is."""
    unit = unit_of(owner.table, ABOVE, to)
    return (
        exp.select(exp.alias_(exp.column(KEY, table=ABOVE), KEY), exp.alias_(exp.Min(this=unit), UNIT))
        .from_(with_alias(rows_with_unit(owner.table, to, owner.theirs), ABOVE))
        .where(unit.copy().is_(exp.null()).not_())
        .group_by(exp.column(KEY, table=ABOVE))
    )


def stored_columns(table: Table, to: Dialect, theirs: str | None) -> exp.Select:
    """A table of the database: the columns that the policy describes, and the unit if it is a column. `theirs` is the
    key by which other tables find its rows: it is read as text under a reserved name, since the policy may describe a
    column or a unit of the same name."""
    names = dict.fromkeys(table.columns)
    if table.owner is None and isinstance(table.unit, ColumnUnit):
        names[table.unit.name] = None
    found = exp.select(*(exp.column(name, table=STORED, quoted=True) for name in names))
    if theirs is not None:
        found = found.select(exp.alias_(to.as_text(exp.column(theirs, table=STORED, quoted=True)), KEY))
    return found.from_(exp.alias_(stored_table(table.name), STORED))


def edge_rows(table: Table, to: Dialect, theirs: str | None) -> exp.Select:
    """The rows of a table of edges. An edge is identified by a text: the length of its lesser node, then both nodes. So
    different edges have different texts, and both directions of an edge have the same one. An edge from a node to
    itself, or to NULL, is dropped."""
    uncut = [replace(table.columns[name], length=LONGEST_TEXT) for name in table.edges]  # or two edges would be one
    a, b = (to.compiled(Column(f"stored.{name}", of)).sql(to.name) for name, of in zip(table.edges, uncut, strict=True))
    numbers = table.columns[table.edges[0]].kind is Kind.NUMBER
    if numbers:
        a, b = (f"CASE WHEN {one} = 0 THEN 0 ELSE {one} END" for one in (a, b))  # −0 is 0
    ends = (f"{word}({a}, {b})" for word in ("LEAST", "GREATEST"))
    first, second = (node_text(one, numbers, to) for one in ends)
    words = f"CASE WHEN {a} <> {b} THEN CONCAT(LENGTH({first}), ':', {first}, {second}) END"
    return stored_columns(table, to, theirs).select(exp.alias_(exp.Var(this=words), table.unit_column, quoted=True))


def node_text(node: str, number: bool, to: Dialect) -> str:
    """A whole number without .0, as on all engines."""
    text = to.as_text(exp.Var(this=node)).sql(to.name)
    if not number:
        return text
    whole = f"{node} = {to.floor(node)} AND ABS({node}) < {to.number(LARGE).sql(to.name)}"
    return f"CASE WHEN {whole} THEN {whole_text(node, to)} ELSE {text} END"


def union_rows(table: Table, to: Dialect) -> exp.Select:
    """The rows of all branches, with their unit; of different tables it is compared as a text, as in joins."""
    mixed, parts = len(row_multiplicity(table)) > 1, []
    for branch in table.branches:
        inside = to.about(branch.rows)
        values: dict[str, Sql]
        values = {name: exp.Cast(this=inside.compiled(of), to=of_type(TYPES[table.columns[name].kind]))
                  for name, of in branch.columns}  # fmt: skip
        rows = exp.select(*(exp.column(name, table=ROWS, quoted=True) for name in values))
        if table.unit_column is not None:
            unit: Sql = exp.column(UNIT, table=ROWS)
            if mixed:
                unit = to.as_text(raw(f"{ROWS}.{UNIT} + 0.0") if is_double(branch.rows.table, to) else unit)
            rows = rows.select(exp.alias_(unit, table.unit_column, quoted=True))
        elif not values and not branch.windows:
            rows = rows.select(exp.column(ONE, table=ROWS))
        for j, (name, value) in enumerate(branch.windows):
            read = [f"{measure(j)}_{i}" for i in range(len(value.expressions))]
            values.update((title, inside.compiled(of)) for title, of in zip(read, value.expressions, strict=True))
            own = window_value(value, read, table.unit_column is not None, inside)
            kind = of_type(TYPES[table.columns[name].kind]).sql(to.name)
            rows = rows.select(raw(f"CAST({own} AS {kind}) AS {identifier(name, to)}"))
        found = row_select(branch.rows, values or {ONE: integer_literal(1)}, inside)
        parts.append(rows.from_(with_alias(found, ROWS)))
    if len(parts) == 1:
        return parts[0]
    both = exp.union(*parts, distinct=False)
    return exp.select("*").from_(exp.Subquery(this=both, alias=exp.TableAlias(this=exp.to_identifier(ROWS))))


def is_double(table: Table, to: Dialect) -> bool:
    """Is the unit a double? −0.0 is 0.0, unless they are written as texts."""
    return to.unit_type(table) in to.double_types


def grouped_rows(table: Table, grouped: Grouped, to: Dialect) -> exp.Select:
    """One row for each unit and combination of keys: unit, keys, and an aggregate of the rows for each value."""
    inside = to.about(grouped.rows)
    keys = {key(i): raw(group_key(of, inside)) for i, (_, of) in enumerate(grouped.keys)}
    read = {f"{measure(j)}_{i}": typed_null(of) or inside.compiled(of)
            for j, (_, value) in enumerate(grouped.values) for i, of in enumerate(value.expressions)}  # fmt: skip
    rows = row_select(grouped.rows, {**keys, **read} or {ONE: integer_literal(1)}, inside)
    by = qualify(ROWS, [*([UNIT] if table.unit_column is not None else []), *keys])
    shown = [f"{ROWS}.{UNIT} AS {identifier(table.unit_column, to)}"] if table.unit_column is not None else []
    for place, (name, of) in enumerate(grouped.keys):
        kind = of_type(TYPES[of.domain.kind]).sql(to.name)
        shown.append(f"CAST({ROWS}.{key(place)} AS {kind}) AS {identifier(name, to)}")
    for j, (name, value) in enumerate(grouped.values):
        names = qualify(ROWS, [f"{measure(j)}_{i}" for i in range(len(value.expressions))])
        shown.append(f"{group_value(value, names, inside)} AS {identifier(name, to)}")
    if not shown:
        shown = [f"1 AS {ONE}"]
    found = exp.select(*map(raw, shown)).from_(with_alias(rows, ROWS))
    return found.group_by(*map(raw, by)) if by else found


def typed_null(of: Expression) -> Sql | None:
    """NULL of the kind that the question gives it: a column of NULL alone is a text to PostgreSQL."""
    return exp.Cast(this=exp.null(), to=of_type(TYPES[of.domain.kind])) if of == Constant(None) else None


def identifier(name: str, to: Dialect) -> str:
    return exp.to_identifier(name, quoted=True).sql(to.name)


def first_table(table: Table, to: Dialect) -> exp.Expression:
    """The rows of a table, as the first one."""
    return with_alias(rows_with_unit(table, to), table_alias(0))


def limit_rows_per_unit(
    table: Table, place: int, to: Dialect, most: int = 0, apart: Sequence[Sql] = ()
) -> exp.Expression:
    """At most `rows` rows of each unit, before a join could multiply them: those with the least hash of their own
    content; of equal rows it does not matter which. Rows of other units do not affect the choice. With `apart`, `most`
    rows of each unit and each combination of these values are kept."""
    names = dict.fromkeys([*sorted(table.columns), *filter(None, [table.unit_column])])
    mine = [exp.column(name, table=STORED, quoted=True) for name in names]
    words = [to.content(one.copy(), to.type_of(table, one.name)) for one in mine]
    typed = [stored_value(table, name, of.kind, to) for name, of in sorted(table.columns.items())]
    tied = [raw(one.sql) for one in typed if one.form is Form.NUMBER]  # which the hash may not tell apart
    order = exp.Order(expressions=[exp.Ordered(this=one) for one in [to.row_hash(typed, 0), *tied, *words]])
    number = exp.Window(this=exp.RowNumber(), partition_by=[unit_of(table, STORED, to), *apart], order=order)
    inner = exp.select(*mine, exp.alias_(number, PLACE)).from_(with_alias(rows_with_unit(table, to), STORED))
    place_of = exp.column(PLACE, table=RANKED)
    last = integer_literal(most or table.rows)
    outer = exp.select("*").from_(with_alias(inner, RANKED)).where(exp.LTE(this=place_of, expression=last))
    return with_alias(outer, table_alias(place))


def stored_value(table: Table, name: str, kind: Kind, to: Dialect) -> Hashed:
    """A column of a stored row as the policy reads it, and as it is hashed: an integer as it is stored."""
    type_, plain = to.type_of(table, name), exp.column(name, table=STORED, quoted=True)
    if kind is Kind.NUMBER and type_ in to.whole_types:
        return Hashed(plain.sql(to.name), Form.WHOLE)
    return Hashed(to.column(plain, kind, type_).sql(to.name), FORMS[kind])


def limit_joined_rows(join: Join, place: int, to: Dialect) -> exp.Expression:
    """A private table as it is joined: at most `rows` of a unit; or one for each combination of joined values."""
    if not join.once:
        return limit_rows_per_unit(join.table, place, to)
    names: dict[str, bool] = {}  # of a column that is compared in both ways, a private row has one text
    for mine, name in join.on:
        if name != join.table.unit_column:
            names[name] = names.get(name, False) or compared_as_text(join, mine, name)
    found = [joined_value(join, f"stored.{name}", as_text, to) for name, as_text in names.items()]
    return limit_rows_per_unit(join.table, place, to, 1, found)


def compared_as_text(join: Join, mine: Expression, name: str) -> bool:
    """Units, and the keys by which they are found, are compared as texts: as doubles, long numbers of two people could
    be equal. What is computed is compared as typed: an engine would cast one side to the other, and may fail there."""
    unit = name == join.table.unit_column or name in join.exact
    return not join.table.public and unit and isinstance(mine, Column)


def joined_value(join: Join, origin: str, as_text: bool, to: Dialect) -> Sql:
    """A column of a joined table as ON compares it."""
    if as_text:
        return to.as_text(column(origin))
    return to.compiled(replace(columns_of(join.table, 0)[origin.split(".", 1)[1]], origin=origin))


def integer_literal(value: int) -> Sql:
    return exp.Literal.number(str(value))


def join_condition(join: Join, number: int, mine: Expression, name: str, to: Dialect) -> Sql:
    """ON: both sides as texts, or both as typed."""
    as_text = compared_as_text(join, mine, name)
    theirs = joined_value(join, f"t{number}.{name}", as_text, to)
    if as_text and isinstance(mine, Column):
        return exp.EQ(this=to.as_text(column(mine.origin)), expression=theirs)
    return exp.EQ(this=to.compiled(mine), expression=theirs)


def as_key(key: Expression, to: Dialect) -> Sql:
    """A key as it is released: dates in words (clients have no infinite ones, and would take one for another), and no
    NaN, which equals itself here and not there."""
    if isinstance(key, Column) and (plain := to.key(key)) is not None:
        return plain
    found = to.compiled(key)
    match key.domain.kind:
        case Kind.DATE:
            return to.date_text(found)
        case Kind.NUMBER if isinstance(key, Call) and key.arguments[0].domain.kind is not Kind.DATE:
            return paren(exp.Case().when(to.is_nan(found), exp.null()).else_(found.copy()))
    return found


def deduplicate_public(join: Join, number: int, to: Dialect) -> exp.Expression:
    """A public table with one row for each combination of the joined values, so that a private row finds at most one.

    Values are compared as the policy types them, here and in the join; of several equal rows the least is kept.
    """
    typed = {name: to.compiled(Column(f"t{number}.{name}", domain)) for name, domain in join.table.columns.items()}
    first = [typed[name] for name in dict.fromkeys(name for _, name in join.on)]
    sorted_by = [exp.Ordered(this=one.copy(), nulls_first=False) for one in typed.values()]
    sorted_by += [exp.Ordered(this=to.as_text(column(f"t{number}.{name}"))) for name in typed]  # −0.0 = 0.0
    order = exp.Order(expressions=sorted_by) if sorted_by else None  # of equal rows it does not matter which
    place = exp.Window(this=exp.RowNumber(), partition_by=[one.copy() for one in first], order=order)
    plain = [column(f"t{number}.{name}") for name in typed]
    inner = exp.select(*plain, exp.alias_(place, PLACE)).from_(
        with_alias(rows_with_unit(join.table, to), table_alias(number))
    )
    outer = exp.select("*").from_(with_alias(inner, RANKED)).where(exp.column(PLACE, table=RANKED).eq(1))
    return with_alias(outer, table_alias(number))


# ---- values of rows, in whole steps ----------------------------------------------------------------------------------
#
# Clamped to their range, so that no value can overflow or raise.


def clamped_value(measure: Measure, name: str, counted: str, to: Dialect) -> str:
    """The integer that one row adds, in steps: 0 where `counted` has no value.

    A row that counts adds a number of the span, also if its own value is missing: the span times the count bounds the
    sum.
    """
    if measure.of is None:
        return "1"
    if measure.what is What.VALUES:
        missing = is_missing(name, to) if measure.of.domain.kind is Kind.NUMBER else f"{name} IS NULL"
        return f"CASE WHEN {missing} THEN 0 ELSE 1 END"
    domain, (low, high) = measure.of.domain, measure.span()
    value = f"(LEAST(GREATEST({name}, {domain.low!r}), {domain.high!r}) - ({measure.centre!r}))"
    squared = measure.what is What.SQUARES  # of whole steps, as those that are summed: else variances would be off
    scale = 2.0 ** -(measure.exponent // 2 if squared else measure.exponent)
    steps = to.floor(f"{to.scaled(value, scale)} + 0.5")
    steps = f"CAST({f'{steps} * {steps}' if squared else steps} AS {to.whole(low, high)})"
    missing = f" WHEN {is_missing(name, to)} THEN {min(max(0, low), high)}" if counted != name else ""
    return f"CASE WHEN {is_missing(counted, to)} THEN 0{missing} ELSE LEAST(GREATEST({steps}, {low}), {high}) END"


def is_missing(name: str, to: Dialect) -> str:
    """Is there no number?"""
    return f"{name} IS NULL OR {to.is_nan(raw(name)).sql(to.name)}"


# ---- aggregates inside a question ------------------------------------------------------------------------------------
#
# Exact, and the same whatever the order of rows: sums of doubles depend on the order in which they are added, which
# another unit's rows can change. So values are summed as whole numbers of steps, and of equal numbers (-0 and 0) one
# spelling is kept.


def plain_value(name: str, of: Expression, to: Dialect) -> str:
    """A value with one spelling: NaN is none, -0 is 0."""
    if of.domain.kind is not Kind.NUMBER:
        return name
    return f"CASE WHEN {is_missing(name, to)} THEN NULL WHEN {name} = 0 THEN {zero(to)} ELSE {name} END"


def zero(to: Dialect) -> str:
    return to.number(0.0).sql(to.name)


def group_value(value: GroupValue, names: list[str], to: Dialect, over: str = "") -> str:
    """The SQL of an aggregate whose expressions are the columns `names` of the rows, of a group or of a window."""
    over = over and f" {over}"
    if value.of is None:
        return to.double(f"COUNT(*){over}")
    one = plain_value(names[0], value.of, to)
    many = to.double(f"COUNT({one}){over}")
    match value.reduce:
        case Reduce.VALUES:
            return many
        case Reduce.DISTINCT:
            return to.double(f"COUNT(DISTINCT {one})")
        case Reduce.SUM | Reduce.MEAN:
            steps = clamped_value(Measure(What.SUM, value.of, 0.0, value.exponent), names[0], names[0], to)
            total = f"{to.double(f'{to.total(steps)}{over}')} * {to.number(2.0**value.exponent).sql(to.name)}"
            total = f"{total} / {many}" if value.reduce is Reduce.MEAN else total
            return f"CASE WHEN COUNT({one}){over} > 0 THEN {total} END"
        case Reduce.LEAST if value.of.domain.kind is Kind.TRUTH:
            return f"BOOL_AND({one}){over}"
        case Reduce.GREATEST if value.of.domain.kind is Kind.TRUTH:
            return f"BOOL_OR({one}){over}"
        case Reduce.LEAST:
            return f"MIN({one}){over}"
        case Reduce.GREATEST:
            return f"MAX({one}){over}"
    return to.first(one, [*order_by(value.order, names[1:], to), f"{one} ASC NULLS LAST"])


def window_value(value: WindowValue, read: list[str], units: bool, to: Dialect) -> str:
    """The SQL of a window whose expressions are the columns `read` of the rows, within the unit."""
    names = iter(qualify(ROWS, read))
    of = [next(names) for _ in value.of]
    by = [plain_value(next(names), one, to) for one in value.partition]
    by = ([f"{ROWS}.{UNIT}"] if units else []) + by
    order = order_by(value.order, [next(names) for _ in value.order], to)
    order += [f"{to.as_text(raw(name)).sql(to.name)} ASC NULLS LAST" for name in names]
    within = [f"PARTITION BY {', '.join(by)}" if by else "", f"ORDER BY {', '.join(order)}" if order else ""]
    over = f"OVER ({' '.join(filter(None, within))})"
    match value.over:
        case Over.LAG | Over.LEAD:
            one, name = plain_value(of[0], value.of[0], to), value.over.name
            default = to.compiled(value.default or Constant(None)).sql(to.name)
            return f"{name}({one}, {value.steps}, {default}) {over}"
        case Over.FIRST:
            return f"FIRST_VALUE({plain_value(of[0], value.of[0], to)}) {over}"
        case Over.TOTAL:
            assert value.total is not None
            return group_value(value.total, of, to, over)
    return f"{value.over.name}() {over}"


def order_by(order: Ordering, names: Sequence[str], to: Dialect) -> list[str]:
    """ORDER BY of a first value; NaN is read as NULL, as everywhere."""
    found = []
    for name, (of, descending, nulls_first) in zip(names, order, strict=True):
        nulls = f"NULLS {'FIRST' if nulls_first else 'LAST'}"
        found.append(f"{plain_value(name, of, to)} {'DESC' if descending else 'ASC'} {nulls}")
    return found


def group_key(key: Expression, to: Dialect) -> str:
    """A key as rows are grouped by it."""
    text = to.compiled(key).sql(to.name)
    return plain_value(f"({text})", key, to) if key.domain.kind is Kind.NUMBER else text
