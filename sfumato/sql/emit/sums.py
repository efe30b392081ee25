"""A plan as one statement for an engine. Everything is compiled from the plan; no text of the analyst reaches it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect, literal_list, raw
from sfumato.sql.domains import LONGEST_TEXT, Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions.function import Sql, of_type, paren
from sfumato.sql.plan import Join, Measure, Owner, Plan, Table, What
from sfumato.sql.reserved_names import (
    ABOVE,
    CUT,
    CUTS,
    HASH,
    HASHES,
    KEY,
    LEAST,
    ONE,
    OWNERS,
    PAIRS,
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
)  # fmt: skip
from sfumato.sql.union import row_multiplicity
from sfumato.sql.units import ColumnUnit, RowUnit

# what each kind is compiled to, on every engine
TYPES = {Kind.NUMBER: "DOUBLE", Kind.TEXT: "TEXT", Kind.TRUTH: "BOOLEAN", Kind.DATE: "TIMESTAMPNTZ"}


def statement(plan: Plan, salt: int, dialect: str | Dialect) -> str:
    """SQL that gives, for each group: its keys, then its measures as integers.

    One row per (unit, group) first, clamped; of a unit with more groups than allowed those with the least keyed hash of
    unit and keys are kept: a function of the unit's own rows. Should two hashes tie at the cut, the keys themselves
    decide; where that would make the order slow, each is counted with the other, and neither is kept. Where units have
    few rows in a group, an engine may be faster if the groups are chosen before their rows are summed.
    """
    to = dialect_of(dialect).about(plan)
    keys = [key(i) for i in range(len(plan.keys))]
    summed = [m for m in plan.measures if m.what is not What.DISTINCT]
    values = {measure(j): to.compiled(m.of) for j, m in enumerate(summed) if m.of} or {ONE: whole(1)}
    rows = f"({row_wise(plan, values, to).sql(to.name)}) AS {ROWS}"
    mine = [f"{ROWS}.{measure(j)}" for j in range(len(summed))]
    units = [m.what is What.UNITS for m in summed]  # one in each row of pairs
    inner = [f"{least_most(plan, m, mine[j], to)} AS {measure(j)}" for j, m in enumerate(summed) if not units[j]]
    outer = [
        f"{'COUNT(*)' if units[j] else to.total(f'{PAIRS}.{measure(j)}')} AS {measure(j)}" for j in range(len(summed))
    ]
    if isinstance(plan.table.unit, RowUnit):
        each = [f"{to.total(clamped_value(m, mine[j], to))} AS {measure(j)}" for j, m in enumerate(summed)]
        return f"SELECT {', '.join([*qualify(ROWS, keys), *each])} FROM {rows} {by(qualify(ROWS, keys))}"
    listed, names = qualify(ROWS, [UNIT, *keys]), qualify(PAIRS, keys)
    if not keys:
        pairs = f"SELECT {', '.join([*listed, *inner])} FROM {rows} {by(listed)}"
        return f"SELECT {', '.join(outer)} FROM ({pairs}) AS {PAIRS}"
    hashed = to.hashed([raw(name) for name in listed], salt).sql(to.name)
    if to.chosen_first(plan):
        place = f"DENSE_RANK() OVER (PARTITION BY {ROWS}.{UNIT} ORDER BY {', '.join([hashed, *qualify(ROWS, keys)])})"
        kept = first_of(f"SELECT {ROWS}.*, {place} AS {PLACE} FROM {rows}", plan.groups)
        pairs = f"SELECT {', '.join([*listed, *inner])} FROM ({kept}) AS {ROWS} {by(listed)}"
        return f"SELECT {', '.join([*names, *outer])} FROM ({pairs}) AS {PAIRS} {by(names)}"
    pairs = f"SELECT {', '.join([*listed, *inner, f'{hashed} AS {HASH}'])} FROM {rows} {by(listed)}"
    order = f"PARTITION BY {PAIRS}.{UNIT} ORDER BY {PAIRS}.{HASH}"
    place = f"ROW_NUMBER() OVER ({', '.join([order, *names])})"
    place = place if to.windowed(plan.keys) else f"COUNT(*) OVER ({order})"
    kept = first_of(f"SELECT {PAIRS}.*, {place} AS {PLACE} FROM ({pairs}) AS {PAIRS}", plan.groups)
    return f"SELECT {', '.join([*names, *outer])} FROM ({kept}) AS {PAIRS} {by(names)}"


def first_of(rows: str, most: int) -> str:
    """The rows whose place is not beyond this."""
    return f"SELECT * FROM ({rows}) AS {RANKED} WHERE {RANKED}.{PLACE} <= {most}"


def cut(most: int) -> str:
    """Of units that have more groups among the pairs than this: the largest hash that is kept."""
    last, next_ = (f"{LEAST}.{HASHES}[{i}]" for i in (most, most + 1))
    return (
        f"{LEAST} AS (SELECT {PAIRS}.{UNIT}, LIST_SORT(MIN({PAIRS}.{HASH}, {most + 1})) AS {HASHES} FROM {PAIRS}"
        f" GROUP BY {PAIRS}.{UNIT} HAVING COUNT(*) > {most}),"
        f" {CUTS} AS (SELECT {LEAST}.{UNIT}, CASE WHEN {last} = {next_} THEN {last} - 1 ELSE {last} END AS {CUT}"
        f" FROM {LEAST})"
    )


def by(names: Sequence[str]) -> str:
    return f"GROUP BY {', '.join(names)}" if names else ""


def row_wise(plan: Plan, values: Mapping[str, Sql], to: Dialect) -> exp.Select:
    """unit, keys and the named values, for each row that counts."""
    table = plan.table
    found = exp.select().from_(few(table, 0, to) if plan.crossed else from_(table, to))
    for number, join in enumerate(plan.joins, 1):
        right = matched(join, number, to) if join.table.public else found_few(join, number, to)
        on = exp.and_(*(equal(join, number, *pair, to) for pair in join.on))
        found = found.join(right, join_type="left", on=on, copy=False)  # each copy would be of all joins before
    chosen = [exp.alias_(as_key(one, to), key(i)) for i, one in enumerate(plan.keys)]
    chosen += [exp.alias_(value, name) for name, value in values.items()]
    conditions: list[Sql] = []
    if table.unit_column is not None:
        chosen.insert(0, exp.alias_(unit_of(table, table_alias(0), to), UNIT))
        conditions.append(exp.column(table.unit_column, table=table_alias(0), quoted=True).is_(exp.null()).not_())
    if plan.where != Constant(True):
        conditions.append(to.compiled(plan.where))
    for one, listed in zip(plan.keys, plan.key_lists, strict=True):
        if listed is not None:
            public = literal_list(type(to), one.domain.kind, listed)
            conditions.append(exp.In(this=as_key(one, to), expressions=[exp.Var(this=public)]))
    found = found.select(*chosen, copy=False)
    return found.where(*conditions, copy=False) if conditions else found


def source(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def named(rows: exp.Table | exp.Select, alias: str) -> exp.Expression:
    title = exp.TableAlias(this=exp.to_identifier(alias))
    if isinstance(rows, exp.Table):
        rows.set("alias", title)
        return rows
    return exp.Subquery(this=rows, alias=title)


def unit_of(table: Table, alias: str, to: Dialect) -> Sql:
    """The unit of a row. Where it was looked up, it has been told apart already."""
    assert table.unit_column is not None
    column = exp.column(table.unit_column, table=alias, quoted=True)
    return column if table.owner or table.branches else to.apart(column, to.type_of(table, table.unit_column))


def of_unit(table: Table, to: Dialect, theirs: str | None = None) -> exp.Table | exp.Select:
    """The rows of a table (its columns of the policy, and `theirs` as KEY) with their unit; where another table knows
    it, that one is looked up, one unit for a key.

    Keys are compared as texts: of one type they are equal then if they are equal, and nothing can raise.
    """
    if table.branches:
        return stacked(table, to)
    if table.edges:
        return of_edges(table, to, theirs)
    if table.owner is None:
        return source(table.name) if theirs is None else listed(table, to, theirs)
    unit = exp.alias_(exp.column(UNIT, table=OWNERS), table.unit_column, quoted=True)
    mine = to.as_text(exp.column(table.owner.mine, table=STORED, quoted=True))
    return (
        listed(table, to, theirs)
        .select(unit)
        .join(named(owners(table.owner, to), OWNERS), on=exp.EQ(this=mine, expression=exp.column(KEY, table=OWNERS)))
    )


def owners(owner: Owner, to: Dialect) -> exp.Select:
    """KEY and UNIT: whose each key of the table above is."""
    unit = unit_of(owner.table, ABOVE, to)
    return (
        exp.select(exp.alias_(exp.column(KEY, table=ABOVE), KEY), exp.alias_(exp.Min(this=unit), UNIT))
        .from_(named(of_unit(owner.table, to, owner.theirs), ABOVE))
        .where(unit.copy().is_(exp.null()).not_())
        .group_by(exp.column(KEY, table=ABOVE))
    )


def listed(table: Table, to: Dialect, theirs: str | None) -> exp.Select:
    """A table of the database, its columns of the policy and its unit if that is one of them; and `theirs`, which rows
    of others are found by, in words and under a name of ours: the policy may describe it too, or call a unit so."""
    names = dict.fromkeys(table.columns)
    if table.owner is None and isinstance(table.unit, ColumnUnit):
        names[table.unit.name] = None
    found = exp.select(*(exp.column(name, table=STORED, quoted=True) for name in names))
    if theirs is not None:
        found = found.select(exp.alias_(to.as_text(exp.column(theirs, table=STORED, quoted=True)), KEY))
    return found.from_(exp.alias_(source(table.name), STORED))


def of_edges(table: Table, to: Dialect, theirs: str | None) -> exp.Select:
    """The rows of a table of edges. An edge is told in words: the length of its lesser node, then both; so that no two
    edges are told alike, and one is told alike in both directions. None from a node to itself, or to nothing."""
    uncut = [replace(table.columns[name], length=LONGEST_TEXT) for name in table.edges]  # or two edges would be one
    a, b = (to.compiled(Column(f"stored.{name}", of)).sql(to.name) for name, of in zip(table.edges, uncut, strict=True))
    if table.columns[table.edges[0]].kind is Kind.NUMBER:
        a, b = (f"CASE WHEN {one} = 0 THEN 0 ELSE {one} END" for one in (a, b))  # −0 is 0
    first, second = (to.as_text(exp.Var(this=f"{word}({a}, {b})")).sql(to.name) for word in ("LEAST", "GREATEST"))
    words = f"CASE WHEN {a} <> {b} THEN CONCAT(LENGTH({first}), ':', {first}, {second}) END"
    return listed(table, to, theirs).select(exp.alias_(exp.Var(this=words), table.unit_column, quoted=True))


def stacked(table: Table, to: Dialect) -> exp.Select:
    """The rows of all branches, with their unit; of different tables it is compared as a text, as in joins."""
    mixed, parts = len(row_multiplicity(table)) > 1, []
    for branch in table.branches:
        inside = to.about(branch.rows)
        values = {name: exp.Cast(this=inside.compiled(of), to=of_type(TYPES[table.columns[name].kind]))
                  for name, of in branch.columns}  # fmt: skip
        rows = exp.select(*(exp.column(name, table=ROWS, quoted=True) for name in values))
        if table.unit_column is not None:
            unit = exp.column(UNIT, table=ROWS)
            rows = rows.select(exp.alias_(to.as_text(unit) if mixed else unit, table.unit_column, quoted=True))
        elif not values:
            rows = rows.select(exp.column(ONE, table=ROWS))
        found = row_wise(branch.rows, values or {ONE: whole(1)}, inside)
        parts.append(rows.from_(named(found, ROWS)))
    both = exp.union(*parts, distinct=False)
    return exp.select("*").from_(exp.Subquery(this=both, alias=exp.TableAlias(this=exp.to_identifier(ROWS))))


def from_(table: Table, to: Dialect) -> exp.Expression:
    """The rows of a table, as the first one."""
    return named(of_unit(table, to), table_alias(0))


def few(table: Table, place: int, to: Dialect, most: int = 0, apart: Sequence[Sql] = ()) -> exp.Expression:
    """At most `rows` rows of each unit, before a join could multiply them: those with the least hash of their own
    content; of equal rows it does not matter which. Another unit's rows have no say in it. Or so many of each unit and
    each combination of what tells them `apart`."""
    names = dict.fromkeys([*sorted(table.columns), *filter(None, [table.unit_column])])
    mine = [exp.column(name, table=STORED, quoted=True) for name in names]
    words = [to.content(one.copy(), to.type_of(table, one.name)) for one in mine]
    order = exp.Order(expressions=[exp.Ordered(this=one) for one in [to.hashed(words, 0), *words]])
    number = exp.Window(this=exp.RowNumber(), partition_by=[unit_of(table, STORED, to), *apart], order=order)
    inner = exp.select(*mine, exp.alias_(number, PLACE)).from_(named(of_unit(table, to), STORED))
    place_of = exp.column(PLACE, table=RANKED)
    last = whole(most or table.rows)
    outer = exp.select("*").from_(named(inner, RANKED)).where(exp.LTE(this=place_of, expression=last))
    return named(outer, table_alias(place))


def found_few(join: Join, place: int, to: Dialect) -> exp.Expression:
    """A private table as it is joined: at most `rows` of a unit; or one for each combination of joined values."""
    if not join.once:
        return few(join.table, place, to)
    names = dict.fromkeys(name for _, name in join.on if name != join.table.unit_column)
    return few(join.table, place, to, 1, [joined_value(join, f"stored.{name}", to) for name in names])


def joined_value(join: Join, origin: str, to: Dialect) -> Sql:
    """A column of a joined table as ON compares it: units, and the keys by which they are found, as texts."""
    name = origin.split(".", 1)[1]
    if not join.table.public and (name == join.table.unit_column or name in join.exact):
        return to.as_text(column(origin))
    return to.compiled(Column(origin, join.table.columns[name]))


def whole(value: int) -> Sql:
    return exp.Literal.number(str(value))


def equal(join: Join, number: int, mine: Expression, name: str, to: Dialect) -> Sql:
    """ON: units are compared as texts (as doubles, long numbers of two people could be equal), the rest as typed."""
    theirs = joined_value(join, f"t{number}.{name}", to)
    if not join.table.public and isinstance(mine, Column) and (name == join.table.unit_column or name in join.exact):
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
        case Kind.NUMBER if isinstance(key, Call):
            return paren(exp.Case().when(to.is_nan(found), exp.null()).else_(found.copy()))
    return found


def matched(join: Join, number: int, to: Dialect) -> exp.Expression:
    """A public table with one row for each combination of the joined values, so that a row of ours finds one at most.

    The values are compared as the policy types them, and so they are told apart; of several rows the least is taken.
    """
    typed = {name: to.compiled(Column(f"t{number}.{name}", domain)) for name, domain in join.table.columns.items()}
    first = [typed[name] for name in dict.fromkeys(name for _, name in join.on)]
    order = exp.Order(expressions=[exp.Ordered(this=one.copy(), nulls_first=False) for one in typed.values()])
    place = exp.Window(this=exp.RowNumber(), partition_by=[one.copy() for one in first], order=order)
    plain = [column(f"t{number}.{name}") for name in typed]
    inner = exp.select(*plain, exp.alias_(place, PLACE)).from_(exp.alias_(source(join.table.name), table_alias(number)))
    outer = exp.select("*").from_(named(inner, RANKED)).where(exp.column(PLACE, table=RANKED).eq(1))
    return named(outer, table_alias(number))


def clamped_value(measure: Measure, name: str, to: Dialect) -> str:
    """What one row adds, in steps: an integer, and 0 where there is no value."""
    if measure.of is None:
        return "1"
    if measure.what is What.VALUES:
        missing = none(name, to) if measure.of.domain.kind is Kind.NUMBER else f"{name} IS NULL"
        return f"CASE WHEN {missing} THEN 0 ELSE 1 END"
    domain, (low, high) = measure.of.domain, measure.span()
    value = f"(LEAST(GREATEST({name}, {domain.low!r}), {domain.high!r}) - ({measure.centre!r}))"
    squared = measure.what is What.SQUARES  # of whole steps, as those that are summed: else variances would be off
    scale = 2.0 ** -(measure.exponent // 2 if squared else measure.exponent)
    steps = to.floor(f"{to.scaled(value, scale)} + 0.5")
    steps = f"CAST({f'{steps} * {steps}' if squared else steps} AS {to.whole(low, high)})"
    return f"CASE WHEN {none(name, to)} THEN 0 ELSE LEAST(GREATEST({steps}, {low}), {high}) END"


def none(name: str, to: Dialect) -> str:
    """Is there no number?"""
    return f"{name} IS NULL OR {to.is_nan(raw(name)).sql(to.name)}"


def least_most(plan: Plan, measure: Measure, name: str, to: Dialect) -> str:
    """What one unit adds to one group: never outside its bounds.

    A sum whose values are counted as well is made smaller in proportion when the count is cut: their ratio is a mean,
    and would otherwise be pulled away from it by whoever has many rows.
    """
    low, high = plan.bounds(measure)
    found = "COUNT(*)" if measure.what is What.ROWS else to.total(clamped_value(measure, name, to))
    counted = Measure(What.VALUES, measure.of)
    if measure.what in (What.SUM, What.SQUARES) and counted in plan.measures:
        many = to.total(clamped_value(counted, name, to))
        less = to.divided(f"({found} * {plan.rows})", many)
        found = f"CASE WHEN {many} > {plan.rows} THEN {less} ELSE {found} END"
    return f"CAST(LEAST(GREATEST({found}, {low}), {high}) AS {to.whole(low, high)})"
