"""A release as one statement for an engine. Everything is compiled from the plan; no text of the analyst reaches it."""

from collections.abc import Mapping

from sqlglot import exp

from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.casts import as_text
from sfumato.sql.functions.function import Sql, of_type, paren
from sfumato.sql.policy import ROW, Table
from sfumato.sql.release import Join, Measure, Release, What


def statement(release: Release, salt: int, dialect: str) -> str:
    """SQL that gives, for each group: its keys, then its measures as integers.

    One row per (unit, group) first, clamped; of a unit with more groups than allowed those with the least keyed hash of
    unit and keys are kept: a function of the unit's own rows. Should two hashes tie at the cut, neither is kept.
    """
    keys = [exp.column(f"k{i}") for i in range(len(release.keys))]
    names = ", ".join(key.name for key in keys)
    summed = [m for m in release.measures if m.what is not What.DISTINCT]
    values = {f"m{j}": compiled(m.of) if m.of else exp.Literal.number("1") for j, m in enumerate(summed)}
    rows = row_wise(release, values).sql(dialect)
    inner = [f"{least_most(release, m, f'm{j}')} AS m{j}" for j, m in enumerate(summed)]
    outer = [f"SUM(m{j}) AS m{j}" for j, m in enumerate(summed)]
    if release.table.unit == ROW:
        each = [f"SUM({clamped_value(release, m, f'm{j}')}) AS m{j}" for j, m in enumerate(summed)]
        return f"SELECT {', '.join([*filter(None, [names]), *each])} FROM ({rows}) {by(names)}"
    listed = ", ".join(["u", *filter(None, [names])])
    if not release.keys:
        return f"SELECT {', '.join(outer)} FROM (SELECT u, {', '.join(inner)} FROM ({rows}) GROUP BY u)"
    hashed = f"CAST(HASH({listed}, {salt}) >> 1 AS BIGINT)"
    return (
        f"WITH p AS MATERIALIZED (SELECT {listed}, {', '.join(inner)}, {hashed} AS h FROM ({rows}) GROUP BY {listed}),"
        f" {cut(release.groups)}"
        f" SELECT {names}, {', '.join(outer)} FROM p LEFT JOIN c USING (u)"
        f" WHERE c.cut IS NULL OR p.h <= c.cut {by(names)}"
    )


def cut(most: int) -> str:
    """Of units that have more groups in p than this: the largest hash that is kept."""
    return (
        f"l AS (SELECT u, LIST_SORT(MIN(h, {most + 1})) AS hs FROM p GROUP BY u HAVING COUNT(*) > {most}),"
        f" c AS (SELECT u, CASE WHEN hs[{most}] = hs[{most + 1}] THEN hs[{most}] - 1 ELSE hs[{most}] END AS cut FROM l)"
    )


def by(names: str) -> str:
    return f"GROUP BY {names}" if names else ""


def row_wise(release: Release, values: Mapping[str, Sql]) -> exp.Select:
    """unit, keys and the named values, for each row that counts."""
    table = release.table
    found = exp.select().from_(few(table, 0) if release.crossed else from_(table))
    for number, join in enumerate(release.joins, 1):
        right = matched(join, number) if join.table.public else few(join.table, number)
        found = found.join(right, join_type="left", on=exp.and_(*(equal(join, number, *pair) for pair in join.on)))
    chosen = [exp.alias_(as_key(key), f"k{i}") for i, key in enumerate(release.keys)]
    chosen += [exp.alias_(value, name) for name, value in values.items()]
    conditions: list[Sql] = []
    if table.unit != ROW:
        chosen.insert(0, exp.alias_(exp.column(table.unit, table="t0", quoted=True), "u"))
        conditions.append(exp.column(table.unit, table="t0", quoted=True).is_(exp.null()).not_())
    if release.where != Constant(True):
        conditions.append(compiled(release.where))
    for key in release.keys:
        if key.domain.keys is not None:
            conditions.append(exp.In(this=as_key(key), expressions=[literal(value) for value in key.domain.keys]))
    found = found.select(*chosen)
    return found.where(*conditions) if conditions else found


def source(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def named(rows: exp.Table | exp.Select, alias: str) -> exp.Expression:
    title = exp.TableAlias(this=exp.to_identifier(alias))
    if isinstance(rows, exp.Table):
        rows.set("alias", title)
        return rows
    return exp.Subquery(this=rows, alias=title)


def of_unit(table: Table, *more: str) -> exp.Table | exp.Select:
    """The rows of a table (its columns of the policy, and `more`) with their unit; where another table knows it, that
    one is looked up, one unit for a key.

    Keys are compared as texts: of one type they are equal then if they are equal, and nothing can raise.
    """
    if table.owner is None:
        return source(table.name)
    above, mine, theirs = table.owner.table, table.owner.mine, table.owner.theirs
    unit = exp.column(above.unit, table="b", quoted=True)
    known = (
        exp.select(exp.alias_(as_text(exp.column(theirs, table="b", quoted=True)), "k"))
        .select(exp.alias_(exp.Min(this=unit), "u"))
        .from_(named(of_unit(above, theirs), "b"))
        .where(unit.copy().is_(exp.null()).not_())
        .group_by(as_text(exp.column(theirs, table="b", quoted=True)))
    )
    listed = [exp.column(name, table="a", quoted=True) for name in dict.fromkeys([*table.columns, mine, *more])]
    return (
        exp.select(*listed, exp.alias_(exp.column("u", table="p"), table.unit, quoted=True))
        .from_(exp.alias_(source(table.name), "a"))
        .join(
            named(known, "p"),
            on=exp.EQ(this=as_text(exp.column(mine, table="a", quoted=True)), expression=exp.column("k", table="p")),
        )
    )


def from_(table: Table) -> exp.Expression:
    """The rows of a table, as t0."""
    return named(of_unit(table), "t0")


def few(table: Table, place: int) -> exp.Expression:
    """At most `rows` rows of each unit, before a join could multiply them: those with the least hash of their own
    content; of equal rows it does not matter which. Another unit's rows have no say in it."""
    unit = exp.column(table.unit, table="a", quoted=True)
    listed = [exp.column(name, table="a", quoted=True) for name in dict.fromkeys([*sorted(table.columns), table.unit])]
    hashed = exp.Anonymous(this="hash", expressions=[one.copy() for one in listed])
    order = exp.Order(expressions=[exp.Ordered(this=one) for one in [hashed, *(one.copy() for one in listed)]])
    number = exp.Window(this=exp.RowNumber(), partition_by=[unit], order=order)
    inner = exp.select(*listed, exp.alias_(number, "i")).from_(named(of_unit(table), "a"))
    outer = exp.select("*").from_(named(inner, "a")).where(exp.LTE(this=exp.column("i"), expression=whole(table.rows)))
    return named(outer, f"t{place}")


def whole(value: int) -> Sql:
    return exp.Literal.number(str(value))


def equal(join: Join, number: int, mine: Expression, name: str) -> Sql:
    """ON: units are compared as texts (as doubles, long numbers of two people could be equal), the rest as typed."""
    theirs = exp.column(name, table=f"t{number}", quoted=True)
    if not join.table.public and name == join.table.unit and isinstance(mine, Column):
        return exp.EQ(this=as_text(raw(mine)), expression=as_text(theirs))
    return exp.EQ(this=compiled(mine), expression=compiled(Column(f"t{number}.{name}", join.table.columns[name])))


def raw(column: Column) -> Sql:
    alias, name = column.origin.split(".", 1)
    return exp.column(name, table=alias, quoted=True)


def as_key(key: Expression) -> Sql:
    """A key as it is released: dates in words (clients have no infinite ones, and would take one for another), and no
    NaN, which equals itself here and not there."""
    found = compiled(key)
    match key.domain.kind:
        case Kind.DATE:
            return as_text(found)
        case Kind.NUMBER if isinstance(key, Call):
            return paren(exp.Case().when(exp.func("ISNAN", found), exp.null()).else_(found.copy()))
    return found


def matched(join: Join, number: int) -> exp.Subquery:
    """A public table with one row for each combination of the joined values, so that a row of ours finds one at most.

    The values are compared as the policy types them, and so they are told apart; of several rows the least is taken.
    """
    alias = f"t{number}"
    all_of = {name: compiled(Column(f"{alias}.{name}", domain)) for name, domain in join.table.columns.items()}
    first = [all_of[name] for name in dict.fromkeys(name for _, name in join.on)]
    inner = (
        exp.select(*(exp.alias_(value, name, quoted=True) for name, value in all_of.items()))
        .from_(exp.alias_(source(join.table.name), alias))
        .distinct(*(one.copy() for one in first))
        .order_by(*(one.copy() for one in first), *(one.copy() for one in all_of.values()))
    )
    return exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias)))


def compiled(expression: Expression) -> Sql:
    match expression:
        case Constant(value):
            return literal(value)
        case Column(origin, domain):
            return typed(raw(Column(origin, domain)), domain.kind)
        case Call(name, arguments):
            return FUNCTIONS[name].emit(*(compiled(argument) for argument in arguments))
    raise AssertionError("unreachable")


def typed(column: Sql, kind: Kind) -> Sql:
    """A column as the kind that the policy says; what is not becomes NULL, NaN as well."""
    match kind:
        case Kind.NUMBER:
            double = exp.TryCast(this=column, to=of_type("DOUBLE"))
            return paren(exp.Case().when(exp.func("ISNAN", double), exp.null()).else_(double.copy()))
        case Kind.TEXT:
            return exp.TryCast(this=column, to=of_type("TEXT"))
        case Kind.TRUTH:
            return exp.TryCast(this=column, to=of_type("BOOLEAN"))
        case Kind.DATE:
            return exp.TryCast(this=column, to=of_type("TIMESTAMP"))


def literal(value: object) -> Sql:
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.true() if value else exp.false()
        case int() | float():
            size = exp.Cast(this=exp.Literal.number(repr(abs(float(value)))), to=of_type("DOUBLE"))
            return size if value >= 0 else exp.Neg(this=size)
    return exp.Literal.string(str(value))


def clamped_value(release: Release, measure: Measure, name: str) -> str:
    """What one row adds, in steps: an integer, and 0 where there is no value."""
    if measure.of is None:
        return "1"
    if measure.what is What.VALUES:
        missing = f"{name} IS NULL OR ISNAN({name})" if measure.of.domain.kind is Kind.NUMBER else f"{name} IS NULL"
        return f"CASE WHEN {missing} THEN 0 ELSE 1 END"
    domain, (low, high) = measure.of.domain, measure.span()
    value = f"(LEAST(GREATEST({name}, {domain.low!r}), {domain.high!r}) - ({measure.centre!r}))"
    squared = measure.what is What.SQUARES  # of whole steps, as those that are summed: else variances would be off
    steps = f"FLOOR({value} * {2.0 ** -(measure.exponent // 2 if squared else measure.exponent)!r} + 0.5)"
    steps = f"CAST({steps} * {steps} AS BIGINT)" if squared else f"CAST({steps} AS BIGINT)"
    return f"CASE WHEN {name} IS NULL OR ISNAN({name}) THEN 0 ELSE LEAST(GREATEST({steps}, {low}), {high}) END"


def least_most(release: Release, measure: Measure, name: str) -> str:
    """What one unit adds to one group: never outside its bounds.

    A sum whose values are counted as well is made smaller in proportion when the count is cut: their ratio is a mean,
    and would otherwise be pulled away from it by whoever has many rows.
    """
    if measure.what is What.UNITS:
        return "1"
    low, high = release.bounds(measure)
    found = f"SUM({clamped_value(release, measure, name)})"
    counted = Measure(What.VALUES, measure.of)
    if measure.what in (What.SUM, What.SQUARES) and counted in release.measures:
        many = f"SUM({clamped_value(release, counted, name)})"
        found = f"CASE WHEN {many} > {release.rows} THEN {found} * {release.rows} // {many} ELSE {found} END"
    return f"CAST(LEAST(GREATEST({found}, {low}), {high}) AS BIGINT)"
