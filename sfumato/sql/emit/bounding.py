"""Bounding contributions: the one step between the rows of a unit and what it adds.

What is kept of a unit is decided by keyed hashes of its own rows, so adding or removing a unit changes nothing of any
other. Statement and sensitivity stand together: nothing else knows how contributions are bounded.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect, raw
from sfumato.sql.dialects.keyed_hash import Form, Hashed
from sfumato.sql.emit.daily import serving
from sfumato.sql.emit.unit_rows import clamped_value, row_select
from sfumato.sql.expressions import Expression
from sfumato.sql.plan import Measure, Plan, What
from sfumato.sql.reserved_names import (
    CHOSEN,
    COPY,
    CUT,
    CUTS,
    GIVEN,
    HASH,
    HASHED,
    HASHES,
    LEAST,
    MANY,
    NUMBERED,
    ONE,
    PAIRS,
    PLACE,
    RANKED,
    READ,
    ROWS,
    UNIT,
    VALUE,
    VALUES,
    key,
    measure,
    qualify,
)  # fmt: skip
from sfumato.sql.units import RowUnit


@dataclass(frozen=True)
class Bounding(ABC):
    """A unit changes at most `groups` groups, and in each of them sums of at most `rows` rows."""

    groups: int
    rows: int

    def bounds(self, measure: Measure) -> tuple[int, int]:
        """The least and the most that one unit adds to one group; a unit with fewer rows, or no values, adds less."""
        low, high = measure.span()
        rows = 1 if measure.what is What.UNITS else self.rows
        return min(low, 0) * rows, max(high, 0) * rows

    def sensitivity(self, measure: Measure) -> int:
        """How far one unit moves one group."""
        low, high = self.bounds(measure)
        return max(abs(low), abs(high), 1)

    @abstractmethod
    def sums(self, plan: Plan, rows: "RowSums", salt: int, to: Dialect) -> str:
        """The statement for bounded sums: keys, then each measure."""

    @abstractmethod
    def values(self, plan: Plan, value: str, of: Expression, salt: int, to: Dialect, once: bool, form: Form) -> str:
        """Tables of WITH, of which VALUES has keys and VALUE for each value that is kept; `once`: different ones. The
        form is that of `value`."""


@dataclass(frozen=True)
class EachRow(Bounding):
    """Each row is a unit: there is nothing to bound but its values."""

    def sums(self, plan: Plan, rows: "RowSums", salt: int, to: Dialect) -> str:
        keys = qualify(ROWS, key_names(plan))
        totals = [f"{to.total_of(rows.row_steps(j), rows.most(j))} AS {measure(j)}" for j in range(len(rows.measures))]
        return f"SELECT {', '.join([*keys, *totals])} FROM {rows.source} {group_by(keys)}"

    def values(self, plan: Plan, value: str, of: Expression, salt: int, to: Dialect, once: bool, form: Form) -> str:
        names = key_names(plan)
        each = f"SELECT {', '.join([*qualify(READ, names), f'{value} AS {VALUE}'])} FROM {read_rows(plan, of, to)}"
        shown = ", ".join(qualify(NUMBERED, [*names, VALUE]))
        return f"{VALUES} AS (SELECT {shown} FROM ({each}) AS {NUMBERED} WHERE NOT {NUMBERED}.{VALUE} IS NULL)"


@dataclass(frozen=True)
class Box(Bounding):
    """A hash cut to groups × rows: of each unit the groups, and in each the values, with the least keyed hashes."""

    def sums(self, plan: Plan, rows: "RowSums", salt: int, to: Dialect) -> str:
        """One row per (unit, group) first, clamped; of a unit with more groups than allowed those with the least keyed
        hash of unit and keys are kept. If two hashes tie at the cut, the keys themselves decide; where that would make
        the order slow, only those that are doubles do, as others do not tie; and else each is counted with the other,
        and neither is kept. Where units have few rows in a group, an
        engine may be faster if the groups are chosen before their rows are summed.
        """
        measures, keys = rows.measures, key_names(plan)
        units = [m.what is What.UNITS for m in measures]  # one in each row of pairs
        inner = [f"{self.unit_total(j, rows, to)} AS {measure(j)}" for j in range(len(measures)) if not units[j]]
        outer = [
            f"{'COUNT(*)' if units[j] else to.total_of(f'{PAIRS}.{measure(j)}', self.sensitivity(m))} AS {measure(j)}"
            for j, m in enumerate(measures)
        ]
        owner, names = qualify(ROWS, [UNIT, *keys]), qualify(PAIRS, keys)
        source = rows.source if rows.by_day else to.by_unit(rows.source, UNIT, plan)
        if not plan.cuts_groups:
            pairs = f"SELECT {', '.join([*owner, *inner])} FROM {source} {group_by(owner)}"
            return f"SELECT {', '.join([*names, *outer])} FROM ({pairs}) AS {PAIRS} {group_by(names)}".rstrip()
        hashed = hash_of(hashed_group(plan, ROWS, to), salt, to)
        if to.chosen_first(plan) and not rows.by_day:
            order = ", ".join([hashed, *qualify(ROWS, keys)])
            place = f"DENSE_RANK() OVER (PARTITION BY {ROWS}.{UNIT} ORDER BY {order})"
            kept = first_places(f"SELECT {ROWS}.*, {place} AS {PLACE} FROM {source}", self.groups)
            pairs = f"SELECT {', '.join([*owner, *inner])} FROM ({kept}) AS {ROWS} {group_by(owner)}"
            return f"SELECT {', '.join([*names, *outer])} FROM ({pairs}) AS {PAIRS} {group_by(names)}"
        pairs = f"SELECT {', '.join([*owner, *inner, f'{hashed} AS {HASH}'])} FROM {source} {group_by(owner)}"
        order = f"PARTITION BY {PAIRS}.{UNIT} ORDER BY {PAIRS}.{HASH}"
        place = f"ROW_NUMBER() OVER ({', '.join([order, *names])})"
        if not to.orders_quickly(plan.keys):
            tied = [name for name, one in zip(names, plan.keys, strict=True) if to.form(one) is Form.NUMBER]
            place = f"COUNT(*) OVER ({', '.join([order, *tied])})"
        kept = first_places(f"SELECT {PAIRS}.*, {place} AS {PLACE} FROM ({pairs}) AS {PAIRS}", self.groups)
        return f"SELECT {', '.join([*names, *outer])} FROM ({kept}) AS {PAIRS} {group_by(names)}"

    def unit_total(self, place: int, rows: "RowSums", to: Dialect) -> str:
        """The sum that one unit adds to one group: never outside its bounds.

        A sum whose values are counted as well is made smaller in proportion when the count is cut: their ratio is a
        mean, and would otherwise be pulled away from it by units with many rows.
        """
        measure = rows.measures[place]
        low, high = self.bounds(measure)
        proportional = measure.what in (What.SUM, What.SQUARES) and measure.counted_by in rows.measures
        total = rows.roomy_total(place) if proportional else rows.total(place)  # multiplied, which needs room
        if proportional:
            many = rows.count(place)
            less = to.quotient(f"({total} * {self.rows})", many)
            total = f"CASE WHEN {many} > {self.rows} THEN {less} ELSE {total} END"
        return f"CAST(LEAST(GREATEST({total}, {low}), {high}) AS {to.whole(low, high)})"

    def values(self, plan: Plan, value: str, of: Expression, salt: int, to: Dialect, once: bool, form: Form) -> str:
        """Equal values of a unit in a group are numbered COPY = 0, 1, …; as they are equal, it does not matter which is
        which. Hash and VALUE order all that a unit has, so that exactly `rows` are kept.
        """
        rows, names = read_rows(plan, of, to), key_names(plan)
        owner = [UNIT, *names]
        each = f"SELECT {', '.join([*qualify(READ, owner), f'{value} AS {VALUE}'])} FROM {rows}"
        mine = qualify(NUMBERED, [*owner, VALUE])
        number = "0" if once else f"ROW_NUMBER() OVER ({partition_by(mine)} ORDER BY {NUMBERED}.{VALUE})"
        counts = to.counts_before_hashing  # then only groups with more values than count are hashed
        many = f"COUNT(*) OVER (PARTITION BY {', '.join(qualify(NUMBERED, owner))}) AS {MANY}"
        listed_columns = [*mine, f"{number} AS {COPY}", *([many] if counts else [])]
        numbered = f"SELECT {', '.join(listed_columns)} FROM ({each}) AS {NUMBERED}"
        again = to.materialized if plan.cuts_groups else ""  # only then it is read twice
        found = f"{ROWS} AS {again}({numbered}{f' {group_by(mine)}' if once else ''})"
        if plan.cuts_groups:
            found += f", {self.chosen_groups(plan, salt, to)}"
        source = CHOSEN if plan.cuts_groups else ROWS
        mine, ordered = qualify(source, [*owner, VALUE]), qualify(HASHED, owner)
        listed = [*hashed_group(plan, source, to), Hashed(f"{source}.{VALUE}", form, known=True)]
        hashed = hash_of([*listed, Hashed(f"{source}.{COPY}", Form.WHOLE, known=True)], salt, to)
        hashed = f"{f'CASE WHEN {source}.{MANY} > {self.rows} THEN {hashed} END' if counts else hashed} AS {HASH}"
        hashed = f"SELECT {', '.join([*mine, hashed])} FROM {source} WHERE NOT {source}.{VALUE} IS NULL"
        order = f"ORDER BY {HASHED}.{HASH}, {HASHED}.{VALUE}"
        place = f"ROW_NUMBER() OVER ({partition_by(ordered)} {order}) AS {PLACE}"
        placed = f"SELECT {HASHED}.*, {place} FROM ({hashed}) AS {HASHED}"
        shown = ", ".join(qualify(RANKED, [*names, VALUE]))
        return (
            f"{found}, {VALUES} AS (SELECT {shown} FROM ({placed}) AS {RANKED} WHERE {RANKED}.{PLACE} <= {self.rows})"
        )

    def chosen_groups(self, plan: Plan, salt: int, to: Dialect) -> str:
        """Tables of WITH, of which CHOSEN has the rows of ROWS in the groups that their unit keeps."""
        mine = qualify(ROWS, [UNIT, *key_names(plan)])
        hashed = hash_of(hashed_group(plan, ROWS, to), salt, to)
        if to.orders_quickly(plan.keys) or any(to.form(one) is Form.NUMBER for one in plan.keys):
            order = f"PARTITION BY {ROWS}.{UNIT} ORDER BY {', '.join([hashed, *mine[1:]])}"
            placed = f"SELECT {ROWS}.*, DENSE_RANK() OVER ({order}) AS {PLACE} FROM {ROWS}"
            return f"{CHOSEN} AS ({first_places(placed, self.groups)})"
        pairs = f"{PAIRS} AS (SELECT {', '.join([*mine, f'{hashed} AS {HASH}'])} FROM {ROWS} {group_by(mine)})"
        within = (
            f"LEFT JOIN {CUTS} ON {ROWS}.{UNIT} = {CUTS}.{UNIT} WHERE {CUTS}.{CUT} IS NULL OR {hashed} <= {CUTS}.{CUT}"
        )
        return f"{pairs}, {hash_cut(self.groups)}, {CHOSEN} AS (SELECT {ROWS}.* FROM {ROWS} {within})"


def bounding_of(plan: Plan) -> Bounding:
    """How the contributions to a plan are bounded, by the policy."""
    kind = EachRow if isinstance(plan.table.unit, RowUnit) else Box
    return kind(plan.groups, plan.rows)


# ---- pieces of statements -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowSums:
    """The sums of the rows of one group, for each measure; and the table of these rows: unit, keys, values.

    `by_day`: a row has the sums of many rows, of one unit, group and day.
    """

    source: str
    measures: tuple[Measure, ...]
    to: Dialect
    by_day: bool = False

    @staticmethod
    def of(plan: Plan, measures: Sequence[Measure], to: Dialect) -> "RowSums":
        """Of a table that lasts, where one serves; else of the rows themselves."""
        listed = tuple(measures)
        if to.lasting and (found := serving(plan, listed, to)) is not None:
            return RowSums(found[0].source(plan, listed, found[1], to), listed, to, by_day=True)
        values = {measure(j): to.compiled(m.of) for j, m in enumerate(listed) if m.of} or {ONE: raw("1")}
        return RowSums(f"({row_select(plan, values, to).sql(to.name, copy=False)}) AS {ROWS}", listed, to)

    def row_steps(self, place: int) -> str:
        """The integer that one row adds to the sum."""
        mine, counted = value_columns(self.measures)
        return clamped_value(self.measures[place], mine[place], counted[place], self.to)

    def most(self, place: int) -> int:
        """The most that one row adds."""
        return max(map(abs, self.measures[place].span()))

    def total(self, place: int) -> str:
        if self.by_day:
            return self.roomy_total(place)
        if self.measures[place].what is What.ROWS:
            return "COUNT(*)"
        return self.to.total_of(self.row_steps(place), self.most(place))

    def roomy_total(self, place: int) -> str:
        """The sum of a group, in a type that is wide enough for a product."""
        if self.by_day:
            return f"SUM({self.to.wide(f'{ROWS}.{measure(place)}')})"
        return self.to.total(self.row_steps(place))

    def count(self, place: int) -> str:
        """The number of rows that this measure sums."""
        counted_by, counted = self.measures[place].counted_by, value_columns(self.measures)[1][place]
        if self.by_day:
            return self.total(self.measures.index(counted_by))
        return self.to.total_of(clamped_value(counted_by, counted, counted, self.to), 1)


def value_columns(measures: Sequence[Measure]) -> tuple[list[str], list[str]]:
    """For each measure the column with its values, and the column whose values say in which rows it counts."""
    mine = [f"{ROWS}.{measure(j)}" for j in range(len(measures))]
    return mine, [
        mine[measures.index(m.counted_by)] if m.given is not None else mine[j] for j, m in enumerate(measures)
    ]


def read_rows(plan: Plan, of: Expression, to: Dialect) -> str:
    return f"({row_select(plan, {GIVEN: to.compiled(of)}, to).sql(to.name, copy=False)}) AS {READ}"


def first_places(rows: str, most: int) -> str:
    """The rows whose place is not beyond this."""
    return f"SELECT * FROM ({rows}) AS {RANKED} WHERE {RANKED}.{PLACE} <= {most}"


def hash_cut(most: int) -> str:
    """Of units that have more groups among the pairs than this: the largest hash that is kept."""
    last, next_ = (f"{LEAST}.{HASHES}[{i}]" for i in (most, most + 1))
    return (
        f"{LEAST} AS (SELECT {PAIRS}.{UNIT}, LIST_SORT(MIN({PAIRS}.{HASH}, {most + 1})) AS {HASHES} FROM {PAIRS}"
        f" GROUP BY {PAIRS}.{UNIT} HAVING COUNT(*) > {most}),"
        f" {CUTS} AS (SELECT {LEAST}.{UNIT}, CASE WHEN {last} = {next_} THEN {last} - 1 ELSE {last} END AS {CUT}"
        f" FROM {LEAST})"
    )


def group_by(names: Sequence[str]) -> str:
    return f"GROUP BY {', '.join(names)}" if names else ""


def partition_by(names: Sequence[str]) -> str:
    return f"PARTITION BY {', '.join(names)}" if names else ""


def hash_of(listed: Sequence[Hashed], salt: int, to: Dialect) -> str:
    return to.row_hash(listed, salt).sql(to.name)


def hashed_group(plan: Plan, rows: str, to: Dialect) -> list[Hashed]:
    """The unit and the keys of these rows, as they are hashed."""
    names = qualify(rows, key_names(plan))
    keys = [Hashed(name, to.form(one)) for name, one in zip(names, plan.keys, strict=True)]
    return [to.unit(f"{rows}.{UNIT}", plan.table), *keys]


def key_names(plan: Plan) -> list[str]:
    return [key(i) for i in range(len(plan.keys))]


def statement(plan: Plan, salt: int, dialect: str | Dialect) -> str:
    """SQL that gives, for each group: its keys, then its measures as integers, bounded for each unit."""
    if plan.bounded_by:
        return regroup(plan, f"({statement(plan.finest, salt, dialect)})", dialect)
    to = dialect_of(dialect).about(plan)
    summed = [m for m in plan.measures if m.what is not What.DISTINCT]
    return bounding_of(plan).sums(plan, RowSums.of(plan, summed, to), salt, to)


def regroup(plan: Plan, finest: str, dialect: str | Dialect) -> str:
    """The sums of a plan from those of its finest groups."""
    to = dialect_of(dialect)
    keys = [f"{PAIRS}.{key(plan.bounded_by.index(one))}" for one in plan.keys]
    shown = [f"{name} AS {key(i)}" for i, name in enumerate(keys)]
    summed = [m for m in plan.measures if m.what is not What.DISTINCT]
    shown += [f"{to.total(f'{PAIRS}.{measure(j)}')} AS {measure(j)}" for j in range(len(summed))]
    return f"SELECT {', '.join(shown)} FROM {finest} AS {PAIRS} {group_by(keys)}"
