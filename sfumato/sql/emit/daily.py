"""Tables that last: what each unit adds to each group on each day; a question about many days is answered from them.

Such a table has a row for each (day, unit, keys) with sums of clamped rows, which are not bounded further. Days are
merged exactly, before anything else happens to a unit. What is *not* a sum is never merged: adding the squares of days
would understate a norm.

Theorem: sums over days, merged for each unit and group, are those of all rows [docs/theorems/days.md, Theorem 1]
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from sfumato.errors import QueryRefused
from sfumato.sql.dialects.base import Dialect, raw
from sfumato.sql.domains import Kind
from sfumato.sql.emit.unit_rows import clamped_value, row_select
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions.function import Sql
from sfumato.sql.plan import Measure, Plan, What, digest
from sfumato.sql.reserved_names import DAY, ONE, ROWS, UNIT, column, key, measure, qualify, table_alias
from sfumato.sql.units import ColumnUnit

FIRST = "t0"  # lineage of the table whose days are told apart


@dataclass(frozen=True)
class DailyTable:
    """A table that lasts: what its rows are (`rows`), the column of days, and the column of each measure.

    `whole_days`: the column holds dates, so that any condition on it is decided by the day; of moments, only
    conditions that begin or end at midnight are.
    """

    days: str  # the table by days, as SQL names it
    all_days: str  # the same of all days together
    rows: str
    day: str
    whole_days: bool
    measures: Mapping[str, str]

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> "DailyTable":
        return DailyTable(**json.loads(text))

    # ---- may it serve? ----------------------------------------------------------------------------------------------

    def conditions(self, plan: Plan, measures: Sequence[Measure]) -> tuple[Expression, ...] | None:
        """The conditions on the day, if these sums of the plan are those of some days of this table; else None."""
        chosen, rest = split_days(plan, self.day)
        if text_of_rows(plan, rest) != self.rows or any(
            text_of_measure(m) not in self.measures for m in stored_measures(measures)
        ):
            return None
        fits = self.whole_days or all(ends_at_midnight(one) for one in chosen)
        return chosen if fits else None

    # ---- what is read of it -----------------------------------------------------------------------------------------

    def source(self, plan: Plan, measures: Sequence[Measure], chosen: Sequence[Expression], to: Dialect) -> str:
        """Rows with unit, keys and the sums of a day, in the place of the rows that were summed."""
        names = [UNIT, *(key(i) for i in range(len(plan.keys)))]
        shown = [*qualify(table_alias(0), names), *(
            f"{table_alias(0)}.{self.measures[text_of_measure(m)]} AS {measure(j)}"
            for j, m in enumerate(measures) if m.what is not What.UNITS
        )]  # fmt: skip
        only = " AND ".join(f"({to.compiled(one).sql(to.name)})" for one in chosen)
        stored_in = self.days if chosen else self.all_days
        where = f" WHERE {only}" if chosen else ""
        return f"(SELECT {', '.join(shown)} FROM {stored_in} AS {table_alias(0)}{where}) AS {ROWS}"


def stored_measures(measures: Sequence[Measure]) -> list[Measure]:
    return [m for m in measures if m.what is not What.UNITS]


def serving(plan: Plan, measures: Sequence[Measure], to: Dialect) -> tuple[DailyTable, tuple[Expression, ...]] | None:
    """A table that lasts and holds the sums of a plan, and the conditions on its days."""
    for text in to.lasting:
        table = DailyTable.from_json(text)
        if (chosen := table.conditions(plan, measures)) is not None:
            return table, chosen
    return None


# ---- making it ------------------------------------------------------------------------------------------------------


def require_daily(plan: Plan, day: str) -> None:
    """Raises QueryRefused unless the sums of this plan can be kept by day."""
    if plan.crossed or plan.table.derived or plan.table.edges or not isinstance(plan.table.unit, ColumnUnit):
        what = "a join that multiplies rows, a SELECT in FROM, or a table whose unit is the row"
    elif plan.standalone or plan.bounded_by or any(m.what is What.DISTINCT for m in plan.measures):
        what = "an aggregate that is no sum (a quantile, a count of different values, a mode), or grouping sets"
    elif day not in plan.table.columns or plan.table.columns[day].kind is not Kind.DATE:
        what = f"no column {day} of dates in {plan.table.name}"
    elif split_days(plan, day)[0]:
        what = f"a condition on {day}, whose days are chosen later"
    else:
        return
    raise QueryRefused(
        f"sums of these rows cannot be kept by day.\n  found:  {what}\n"
        "  do:     build the view of counts, sums or means of one private table, and ask for other things as before"
    )


def daily_table(plan: Plan, day: str, dates: bool, days: str, all_days: str) -> DailyTable:
    """The table for the sums of this plan by the days of a column."""
    measures = dict.fromkeys(
        [*stored_measures(plan.measures), *(m.counted_by for m in stored_measures(plan.measures) if m.of), ROW_COUNT]
    )
    named = {text_of_measure(m): measure(j) for j, m in enumerate(measures)}
    return DailyTable(days, all_days, text_of_rows(plan, split_days(plan, day)[1]), day, dates, named)


ROW_COUNT = Measure(What.ROWS)


def measures_of(plan: Plan) -> tuple[Measure, ...]:
    """All measures of a plan that are kept, and what they are counted by."""
    listed = stored_measures(plan.measures)
    return tuple(dict.fromkeys([*listed, *(m.counted_by for m in listed if m.of), ROW_COUNT]))


def day_rows(plan: Plan, table: DailyTable, to: Dialect) -> str:
    """The rows of a plan with their day: unit, keys, and the values of measures."""
    values = {measure(j): to.compiled(m.of) for j, m in enumerate(measures_of(plan)) if m.of}
    return row_select(plan, {DAY: day_of(table, to), **values, ONE: to.literal(1)}, to).sql(to.name)


def daily_sums(plan: Plan, table: DailyTable, to: Dialect) -> str:
    """day, unit, keys, and each sum, of the rows of each day."""
    measures = measures_of(plan)
    mine = [f"{ROWS}.{measure(j)}" for j in range(len(measures))]
    counted = [mine[measures.index(m.counted_by)] if m.of and m.given is not None else mine[j]
               for j, m in enumerate(measures)]  # fmt: skip
    names = qualify(ROWS, [UNIT, *(key(i) for i in range(len(plan.keys)))])
    day = to.identifier(table.day)
    sums = [f"{day_total(m, mine[j], counted[j], to)} AS {measure(j)}" for j, m in enumerate(measures)]
    return (
        f"SELECT {ROWS}.{DAY} AS {day}, {', '.join([*names, *sums])} FROM ({day_rows(plan, table, to)}) AS {ROWS}"
        f" GROUP BY {', '.join([f'{ROWS}.{DAY}', *names])}"
    )


def merged_days(plan: Plan, table: DailyTable, to: Dialect) -> str:
    """unit, keys, and each sum, of all days."""
    names = qualify(ROWS, [UNIT, *(key(i) for i in range(len(plan.keys)))])
    sums = [f"{total_of_days(f'{ROWS}.{measure(j)}', m, to)} AS {measure(j)}" for j, m in enumerate(measures_of(plan))]
    return f"SELECT {', '.join([*names, *sums])} FROM {table.days} AS {ROWS} GROUP BY {', '.join(names)}"


def fits(of: Measure) -> bool:
    """Do 2⁴⁰ rows of this measure add up to less than 2⁶³?"""
    return of.of is None or max(map(abs, of.span())) <= 2**23


def day_total(of: Measure, name: str, counted: str, to: Dialect) -> str:
    """The sum of a day; in a type that files have, in which nothing is lost."""
    total = "COUNT(*)" if of.what is What.ROWS else to.total(clamped_value(of, name, counted, to))
    return f"CAST({total} AS {'BIGINT' if fits(of) else 'DECIMAL(38, 0)'})"


def total_of_days(name: str, of: Measure, to: Dialect) -> str:
    return f"CAST(SUM({to.wide(name)}) AS {'BIGINT' if fits(of) else 'DECIMAL(38, 0)'})"


def day_of(table: DailyTable, to: Dialect) -> Sql:
    """The day of a row, in the type of its column."""
    plain = column(f"{FIRST}.{table.day}")
    return plain if table.whole_days else raw(f"DATE_TRUNC('day', {plain.sql(to.name)})")


# ---- texts that tell tables apart -----------------------------------------------------------------------------------


def split_days(plan: Plan, day: str) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """The parts of WHERE that are about the day alone, and the others."""
    where = plan.where
    parts = where.arguments if isinstance(where, Call) and where.name == "and" else (where,)
    parts = tuple(one for one in parts if one != Constant(True))
    chosen = tuple(one for one in parts if origins(one) == {f"{FIRST}.{day}"})
    return chosen, tuple(one for one in parts if one not in chosen)


def origins(of: Expression) -> set[str]:
    """The columns that an expression reads."""
    match of:
        case Column(origin):
            return {origin}
        case Call(_, arguments):
            return set().union(*map(origins, arguments))
    return set()


def ends_at_midnight(one: Expression) -> bool:
    """Is it x >= c or x < c, for a midnight c?"""
    match one:
        case Call("<=", (Constant(value), Column())) | Call("<", (Column(), Constant(value))):
            return str(value).endswith(" 00:00:00") or len(str(value)) == 10
        case Call("<=", (Call("timestamp" | "date", (Constant(value),)), Column())) | Call(
            "<", (Column(), Call("timestamp" | "date", (Constant(value),)))
        ):
            return str(value).endswith(" 00:00:00") or len(str(value)) == 10
    return False


def text_of_measure(of: Measure) -> str:
    return repr(replace(of, centre=0.0)) + repr(of.centre)


def text_of_rows(plan: Plan, rest: Sequence[Expression]) -> str:
    """A text that identifies rows and groups: tables as the policy types them, joins, conditions, keys; no bounds."""
    tables = [plan.table, *(join.table for join in plan.joins)]
    typed = repr([(one.name, sorted(one.columns.items()), one.unit, one.owner, one.edges) for one in tables])
    parts = [repr(plan.joins), sorted(map(repr, rest)), repr(plan.keys), repr(plan.key_lists), digest(typed)]
    return json.dumps([plan.table.name, *parts])
