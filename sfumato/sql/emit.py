"""A release as one statement for an engine. Everything is compiled from the plan; no text of the analyst reaches it."""

from collections.abc import Mapping

from sqlglot import exp

from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect, written_out
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions.function import Sql, of_type, paren
from sfumato.sql.policy import ROW, Table
from sfumato.sql.release import Join, Measure, Release, What
from sfumato.sql.stack import times

# what each kind is compiled to, on every engine
TYPES = {Kind.NUMBER: "DOUBLE", Kind.TEXT: "TEXT", Kind.TRUTH: "BOOLEAN", Kind.DATE: "TIMESTAMPNTZ"}


def statement(release: Release, salt: int, dialect: str | Dialect) -> str:
    """SQL that gives, for each group: its keys, then its measures as integers.

    One row per (unit, group) first, clamped; of a unit with more groups than allowed those with the least keyed hash of
    unit and keys are kept: a function of the unit's own rows. Should two hashes tie at the cut, the keys themselves
    decide; where that would make the order slow, each is counted with the other, and neither is kept. Where units have
    few rows in a group, an engine may be faster if the groups are chosen before their rows are summed.
    """
    to = dialect_of(dialect).about(release)
    keys = [exp.column(f"k{i}") for i in range(len(release.keys))]
    names = ", ".join(key.name for key in keys)
    summed = [m for m in release.measures if m.what is not What.DISTINCT]
    values = {f"m{j}": to.compiled(m.of) for j, m in enumerate(summed) if m.of} or {"one": whole(1)}
    rows = f"({row_wise(release, values, to).sql(to.name)}) AS r"
    units = [m.what is What.UNITS for m in summed]  # one in each row of p
    inner = [f"{least_most(release, m, f'm{j}', to)} AS m{j}" for j, m in enumerate(summed) if not units[j]]
    outer = [f"{'COUNT(*)' if units[j] else to.total(f'm{j}')} AS m{j}" for j in range(len(summed))]
    if release.table.unit == ROW:
        each = [f"{to.total(clamped_value(m, f'm{j}', to))} AS m{j}" for j, m in enumerate(summed)]
        return f"SELECT {', '.join([*filter(None, [names]), *each])} FROM {rows} {by(names)}"
    listed = ", ".join(["u", *filter(None, [names])])
    if not release.keys:
        return f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(['u', *inner])} FROM {rows} GROUP BY u) AS p"
    hashed = to.hashed([exp.column("u"), *keys], salt).sql(to.name)
    if to.chosen_first(release):
        place = f"DENSE_RANK() OVER (PARTITION BY u ORDER BY {hashed}, {names})"
        kept = f"SELECT * FROM (SELECT r.*, {place} AS i FROM {rows}) AS q WHERE i <= {release.groups}"
        pairs = f"SELECT {', '.join([listed, *inner])} FROM ({kept}) AS r GROUP BY {listed}"
        return f"SELECT {names}, {', '.join(outer)} FROM ({pairs}) AS p {by(names)}"
    pairs = f"SELECT {', '.join([listed, *inner])}, {hashed} AS h FROM {rows} GROUP BY {listed}"
    place = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY h, {names})"
    place = place if to.windowed(release.keys) else "COUNT(*) OVER (PARTITION BY u ORDER BY h)"
    kept = f"SELECT * FROM (SELECT p.*, {place} AS i FROM ({pairs}) AS p) AS q WHERE i <= {release.groups}"
    return f"SELECT {names}, {', '.join(outer)} FROM ({kept}) AS p {by(names)}"


def cut(most: int) -> str:
    """Of units that have more groups in p than this: the largest hash that is kept."""
    return (
        f"l AS (SELECT u, LIST_SORT(MIN(h, {most + 1})) AS hs FROM p GROUP BY u HAVING COUNT(*) > {most}),"
        f" c AS (SELECT u, CASE WHEN hs[{most}] = hs[{most + 1}] THEN hs[{most}] - 1 ELSE hs[{most}] END AS cut FROM l)"
    )


def by(names: str) -> str:
    return f"GROUP BY {names}" if names else ""


def row_wise(release: Release, values: Mapping[str, Sql], to: Dialect) -> exp.Select:
    """unit, keys and the named values, for each row that counts."""
    table = release.table
    found = exp.select().from_(few(table, 0, to) if release.crossed else from_(table, to))
    for number, join in enumerate(release.joins, 1):
        right = matched(join, number, to) if join.table.public else few(join.table, number, to)
        on = exp.and_(*(equal(join, number, *pair, to) for pair in join.on))
        found = found.join(right, join_type="left", on=on, copy=False)  # each copy would be of all joins before
    chosen = [exp.alias_(as_key(key, to), f"k{i}") for i, key in enumerate(release.keys)]
    chosen += [exp.alias_(value, name) for name, value in values.items()]
    conditions: list[Sql] = []
    if table.unit != ROW:
        chosen.insert(0, exp.alias_(unit_of(table, "t0", to), "u"))
        conditions.append(exp.column(table.unit, table="t0", quoted=True).is_(exp.null()).not_())
    if release.where != Constant(True):
        conditions.append(to.compiled(release.where))
    for key in release.keys:
        if key.domain.keys is not None:
            public = written_out(type(to), key.domain.kind, key.domain.keys)
            conditions.append(exp.In(this=as_key(key, to), expressions=[exp.Var(this=public)]))
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
    column = exp.column(table.unit, table=alias, quoted=True)
    return column if table.owner or table.branches else to.apart(column, to.type_of(table.name, table.unit))


def of_unit(table: Table, to: Dialect, *more: str) -> exp.Table | exp.Select:
    """The rows of a table (its columns of the policy, and `more`) with their unit; where another table knows it, that
    one is looked up, one unit for a key.

    Keys are compared as texts: of one type they are equal then if they are equal, and nothing can raise.
    """
    if table.branches:
        return stacked(table, to)
    if table.edges:
        return of_edges(table, to, *more)
    if table.owner is None:
        return source(table.name)
    above, mine, theirs = table.owner.table, table.owner.mine, table.owner.theirs
    unit = unit_of(above, "b", to)
    known = (
        exp.select(exp.alias_(to.as_text(exp.column(theirs, table="b", quoted=True)), "k"))
        .select(exp.alias_(exp.Min(this=unit), "u"))
        .from_(named(of_unit(above, to, theirs), "b"))
        .where(unit.copy().is_(exp.null()).not_())
        .group_by(to.as_text(exp.column(theirs, table="b", quoted=True)))
    )
    listed = [exp.column(name, table="a", quoted=True) for name in dict.fromkeys([*table.columns, mine, *more])]
    return (
        exp.select(*listed, exp.alias_(exp.column("u", table="p"), table.unit, quoted=True))
        .from_(exp.alias_(source(table.name), "a"))
        .join(
            named(known, "p"),
            on=exp.EQ(this=to.as_text(exp.column(mine, table="a", quoted=True)), expression=exp.column("k", table="p")),
        )
    )


def of_edges(table: Table, to: Dialect, *more: str) -> exp.Select:
    """The rows of a table of edges. An edge is told in words: the length of its lesser node, then both; so that no two
    edges are told alike, and one is told alike in both directions. None from a node to itself, or to nothing."""
    a, b = (to.compiled(Column(f"a.{name}", table.columns[name])).sql(to.name) for name in table.edges)
    if table.columns[table.edges[0]].kind is Kind.NUMBER:
        a, b = (f"CASE WHEN {one} = 0 THEN 0 ELSE {one} END" for one in (a, b))  # −0 is 0
    first, second = (to.as_text(exp.Var(this=f"{word}({a}, {b})")).sql(to.name) for word in ("LEAST", "GREATEST"))
    words = f"CASE WHEN {a} <> {b} THEN CONCAT(LENGTH({first}), ':', {first}, {second}) END"
    unit = exp.alias_(exp.Var(this=words), table.unit, quoted=True)
    listed = [exp.column(name, table="a", quoted=True) for name in dict.fromkeys([*table.columns, *more])]
    return exp.select(*listed, unit).from_(exp.alias_(source(table.name), "a"))


def stacked(table: Table, to: Dialect) -> exp.Select:
    """The rows of all branches, with their unit; of different tables it is compared as a text, as in joins."""
    mixed, parts = len(times(table)) > 1, []
    for branch in table.branches:
        inside = to.about(branch.rows)
        values = {name: exp.Cast(this=inside.compiled(of), to=of_type(TYPES[table.columns[name].kind]))
                  for name, of in branch.columns}  # fmt: skip
        rows = exp.select(*(exp.column(name, table="r", quoted=True) for name in values))
        if table.unit != ROW:
            unit = exp.column("u", table="r")
            rows = rows.select(exp.alias_(to.as_text(unit) if mixed else unit, table.unit, quoted=True))
        elif not values:
            rows = rows.select(exp.alias_(whole(1), "i"))
        found = row_wise(branch.rows, values or {"i": whole(1)}, inside)
        parts.append(rows.from_(named(found, "r")))
    both = exp.union(*parts, distinct=False)
    return exp.select("*").from_(exp.Subquery(this=both, alias=exp.TableAlias(this=exp.to_identifier("r"))))


def from_(table: Table, to: Dialect) -> exp.Expression:
    """The rows of a table, as t0."""
    return named(of_unit(table, to), "t0")


def few(table: Table, place: int, to: Dialect) -> exp.Expression:
    """At most `rows` rows of each unit, before a join could multiply them: those with the least hash of their own
    content; of equal rows it does not matter which. Another unit's rows have no say in it."""
    names = dict.fromkeys([*sorted(table.columns), table.unit])
    listed = [exp.column(name, table="a", quoted=True) for name in names]
    words = [to.content(one.copy(), to.type_of(table.name, one.name)) for one in listed]
    order = exp.Order(expressions=[exp.Ordered(this=one) for one in [to.hashed(words, 0), *words]])
    number = exp.Window(this=exp.RowNumber(), partition_by=[unit_of(table, "a", to)], order=order)
    inner = exp.select(*listed, exp.alias_(number, "i")).from_(named(of_unit(table, to), "a"))
    outer = exp.select("*").from_(named(inner, "a")).where(exp.LTE(this=exp.column("i"), expression=whole(table.rows)))
    return named(outer, f"t{place}")


def whole(value: int) -> Sql:
    return exp.Literal.number(str(value))


def equal(join: Join, number: int, mine: Expression, name: str, to: Dialect) -> Sql:
    """ON: units are compared as texts (as doubles, long numbers of two people could be equal), the rest as typed."""
    theirs = exp.column(name, table=f"t{number}", quoted=True)
    if not join.table.public and name == join.table.unit and isinstance(mine, Column):
        return exp.EQ(this=to.as_text(raw(mine)), expression=to.as_text(theirs))
    other = to.compiled(Column(f"t{number}.{name}", join.table.columns[name]))
    return exp.EQ(this=to.compiled(mine), expression=other)


def raw(column: Column) -> Sql:
    alias, name = column.origin.split(".", 1)
    return exp.column(name, table=alias, quoted=True)


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
    alias = f"t{number}"
    typed = {name: to.compiled(Column(f"{alias}.{name}", domain)) for name, domain in join.table.columns.items()}
    first = [typed[name] for name in dict.fromkeys(name for _, name in join.on)]
    order = exp.Order(expressions=[exp.Ordered(this=one.copy(), nulls_first=False) for one in typed.values()])
    place = exp.Window(this=exp.RowNumber(), partition_by=[one.copy() for one in first], order=order)
    plain = [exp.column(name, table=alias, quoted=True) for name in typed]
    inner = exp.select(*plain, exp.alias_(place, "i")).from_(exp.alias_(source(join.table.name), alias))
    return named(exp.select("*").from_(named(inner, alias)).where(exp.column("i").eq(1)), alias)


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
    return f"{name} IS NULL OR {to.is_nan(exp.column(name)).sql(to.name)}"


def least_most(release: Release, measure: Measure, name: str, to: Dialect) -> str:
    """What one unit adds to one group: never outside its bounds.

    A sum whose values are counted as well is made smaller in proportion when the count is cut: their ratio is a mean,
    and would otherwise be pulled away from it by whoever has many rows.
    """
    low, high = release.bounds(measure)
    found = "COUNT(*)" if measure.what is What.ROWS else to.total(clamped_value(measure, name, to))
    counted = Measure(What.VALUES, measure.of)
    if measure.what in (What.SUM, What.SQUARES) and counted in release.measures:
        many = to.total(clamped_value(counted, name, to))
        less = to.divided(f"({found} * {release.rows})", many)
        found = f"CASE WHEN {many} > {release.rows} THEN {less} ELSE {found} END"
    return f"CAST(LEAST(GREATEST({found}, {low}), {high}) AS {to.whole(low, high)})"
