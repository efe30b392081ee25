"""The plan of a question: which rows, grouped by which keys, and what is released for each group.

Rows come from a table, a UNION ALL or a GROUP BY of the unit, and tables joined to it. Two things are released:
integers of bounded sensitivity (measures), and values with a mechanism of their own (standalone). All else is
post-processing.
Two questions with the same plan are the same question, however they are spelled.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Protocol

from sfumato.sql.domains import Domain, Scalar
from sfumato.sql.expressions import Column, Constant, Expression, columns, quote_name
from sfumato.sql.functions.costs import KEY
from sfumato.sql.possible_keys import possible_keys
from sfumato.sql.units import EACH_ROW, Unit, column_of, explain_ambiguity


class Standalone(Protocol):
    """An aggregate with a mechanism of its own, as a plan knows it: its `repr` is part of the canonical text."""

    @property
    def stored_as(self) -> str:
        """The entry of a stored answer that holds its values."""
        ...

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """The expressions that it reads from each row."""
        ...


# ---- rows -----------------------------------------------------------------------------------------------------------

JOINED_ROWS = 64  # of a unit on each side of a join that multiplies them, at least, if the policy states no bounds
MOST_JOINED_ROWS = 1_000_000  # that joins may make of one unit's rows: it must not decide how long a question takes
CUT_GROUPS = 4  # of a unit, for aggregates that are no sums, if the policy states no bounds


@dataclass(frozen=True)
class Table:
    """One table: public, or private, with contribution bounds: a unit adds to at most `groups` groups, and at most
    `rows` rows to each.

    `scaled`: the policy states no such bounds, so what a unit adds to sums is scaled to a norm that each question
    chooses; `rows` then limits the rows of a unit before a join that multiplies them, and `groups` what is no sum.
    """

    name: str
    columns: Mapping[str, Domain]
    public: bool = False
    unit: Unit = EACH_ROW
    groups: int = 1
    rows: int = 1
    owner: "Owner | None" = None  # where the unit is found, if it is not a column of this table
    branches: tuple["Branch", ...] = ()  # of UNION ALL: no table of the database, but rows of several
    edges: tuple[str, ...] = field(default=(), repr=False)  # two columns: each pair of their values is a unit
    bare_word: bool = field(default=False, repr=False)  # is the unit the word `row` or `edge`, which may be a column's?
    scaled: bool = field(default=False, repr=False)
    most: int | None = field(default=None, repr=False)  # rows that a unit has at most, as the owner states
    supposed: bool = field(default=False, repr=False)  # or as who asks supposes: answers are about that, then
    grouped: "Grouped | None" = field(default=None, repr=False)  # no table of the database, but GROUP BY of rows

    def scale(self, most: int | None = None) -> "Table":
        """This table with contributions that are scaled to a norm, not cut."""
        return replace(self, groups=CUT_GROUPS, rows=JOINED_ROWS, scaled=True, most=most)

    @cached_property
    def derived(self) -> bool:
        """Is it made of rows of other tables, by UNION ALL, a SELECT or GROUP BY?"""
        return bool(self.branches) or self.grouped is not None

    @cached_property
    def inner_plans(self) -> tuple["Plan", ...]:
        """The rows that a derived table is made of."""
        return tuple(one.rows for one in self.branches) + ((self.grouped.rows,) if self.grouped else ())

    @cached_property
    def inner_expressions(self) -> tuple[Expression, ...]:
        """The expressions that a derived table computes of those rows."""
        return tuple(of for one in self.branches for of in one.expressions) + (
            self.grouped.expressions if self.grouped else ()
        )

    @cached_property
    def unit_column(self) -> str | None:
        """The name of the unit in rows and questions; None where each row is a unit."""
        return column_of(self.unit)

    @property
    def unit_origin(self) -> str | None:
        """The lineage of the unit where this table is the first one."""
        return None if self.unit_column is None else f"t0.{self.unit_column}"

    def describing(self, names: Iterable[str]) -> "Table":
        """This table, described only as far as these columns, its unit and the key of its owner need."""
        kept, owner = {*names, self.unit_column, *self.edges}, self.owner
        if owner is not None:
            kept.add(owner.mine)
            owner = replace(owner, table=owner.table.describing([owner.theirs]))
        return replace(self, columns={name: one for name, one in self.columns.items() if name in kept}, owner=owner)

    def unclear_unit(self, columns: Iterable[str]) -> str | None:
        """Why the policy does not say what the unit is, if the table has these columns; None if it does."""
        return explain_ambiguity(self.unit, columns) if self.bare_word and not self.public else None


@dataclass(frozen=True)
class Owner:
    """The parent table, in which the unit of a row is found: the parent row whose column `theirs` equals our `mine`."""

    table: Table
    mine: str
    theirs: str


@dataclass(frozen=True)
class Branch:
    """One SELECT of a UNION ALL: its rows, and its expression for each column of the union, or its window."""

    rows: "Plan"  # without keys or measures
    columns: tuple[tuple[str, Expression], ...]
    windows: "tuple[tuple[str, WindowValue], ...]" = ()

    def __repr__(self) -> str:
        windows = f" | {self.windows!r}" if self.windows else ""
        return f"({self.rows.canonical} | {self.columns!r}{windows})"

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*(of for _, of in self.columns), *(of for _, value in self.windows for of in value.expressions))


class Reduce(Enum):
    """How the rows of one group of a GROUP BY inside a question become one value."""

    ROWS = "count rows"
    VALUES = "count values"
    DISTINCT = "count different values"
    SUM = "sum"
    MEAN = "mean"
    LEAST = "least"
    GREATEST = "greatest"
    FIRST = "first"

    def __repr__(self) -> str:
        return self.value


@dataclass(frozen=True)
class GroupValue:
    """An aggregate over the rows of one group, inside a question: exact, and a function of these rows' content alone.

    Sums and means are made of whole steps of 2^exponent, so the order of rows changes nothing; `FIRST` is the value of
    the first row by `order`, and of several such rows the least value.
    """

    reduce: Reduce
    of: Expression | None = None
    exponent: int = 0
    order: "Ordering" = ()

    def __repr__(self) -> str:
        steps = f", {self.exponent}" if self.reduce in (Reduce.SUM, Reduce.MEAN) else ""
        return f"{self.reduce!r}({self.of!r}{steps}{f', by {self.order!r}' if self.order else ''})"

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*(() if self.of is None else (self.of,)), *(one for one, _, _ in self.order))


class Over(Enum):
    """What a window makes of the rows of one person."""

    ROW_NUMBER = "row number"
    RANK = "rank"
    DENSE_RANK = "dense rank"
    LAG = "lag"
    LEAD = "lead"
    FIRST = "first"
    TOTAL = "total"

    def __repr__(self) -> str:
        return self.value


Ordering = tuple[tuple[Expression, bool, bool], ...]  # (what, is it descending, are NULLs first)


@dataclass(frozen=True)
class WindowValue:
    """A window over the rows of one unit: a function of the content of these rows alone.

    Theorem: the rows of one unit in a table with windows are a function of that unit's own rows, and no more than it
        had before. [each window is partitioned by the unit; rows that tie in its order are ordered by the texts of all
        that can be read of them, so they are alike where that ties, too; totals are of all rows that tie, and of whole
        steps]
    """

    over: Over
    of: tuple[Expression, ...]
    partition: tuple[Expression, ...]  # without the unit
    order: Ordering
    ties: tuple[Expression, ...] = ()
    total: "GroupValue | None" = None
    steps: int = 1
    default: Expression | None = None

    def __repr__(self) -> str:
        more = f", {self.steps}, {self.default!r}" if self.over in (Over.LAG, Over.LEAD) else ""
        of = repr(self.total) if self.total is not None else f"{self.over!r}({self.of!r}{more})"
        return f"{of} over {self.partition!r} by {self.order!r}{f' then {self.ties!r}' if self.ties else ''}"

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*self.of, *self.partition, *(of for of, _, _ in self.order), *self.ties)


@dataclass(frozen=True)
class Grouped:
    """GROUP BY inside a question: one row for each combination of keys. In private rows the unit is always among the
    keys, written or not.

    Theorem: the rows of one unit in such a table are a function of that unit's own rows. [one group holds rows of one
        unit, and each GroupValue is a function of the set of rows of its group, whatever their order]
    """

    rows: "Plan"  # without keys or measures
    keys: tuple[tuple[str, Expression], ...]  # without the unit
    values: tuple[tuple[str, GroupValue], ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*(of for _, of in self.keys), *(of for _, value in self.values for of in value.expressions))

    def __repr__(self) -> str:
        return f"({self.rows.canonical} | {self.keys!r} | {self.values!r})"


@dataclass(frozen=True)
class Join:
    """A public table, each of whose rows is found by equality: at most one match is kept for a row. Or a private one of
    the same unit, joined on it: then each side keeps at most `rows` of a unit before, by a hash of the row itself.

    `once`: a row finds one of its unit's rows at most, as the private table knows units by the key that is compared,
    has one row of a unit, or is grouped by what is compared.
    The joined rows of a unit are then made of its own rows alone, and no more than it had before, so the
        bounds of the rows so far bound the join.
    Proof. ON has the equality of units, so a row meets only rows of its unit; of these one is kept for each combination
    of joined values, chosen by their own content, and each private row has one combination. ∎
    """

    table: Table
    on: tuple[tuple[Expression, str], ...]  # (of the rows so far, column of the joined table)
    exact: tuple[str, ...] = ()  # columns by which units are found: compared as these are, not as numbers
    once: bool = False

    def __repr__(self) -> str:
        more = f" exactly {self.exact!r}" if self.exact else ""
        made = f" {digest(repr(self.table) + repr(self.table.grouped))}" if self.table.derived else ""
        return f"{quote_name(self.table.name)}{made} on {self.on!r}{more}{' once' if self.once else ''}"

    @property
    def multiplies(self) -> bool:
        """Can a row have several matches?"""
        return not self.table.public and not self.once


# ---- what is released of a group ------------------------------------------------------------------------------------


class What(Enum):
    """The quantity that a measure counts or sums in a group, over the rows of one unit."""

    UNITS = "units"
    ROWS = "rows"
    VALUES = "values"  # rows with a value
    SUM = "sum"
    SQUARES = "squares"
    DISTINCT = "distinct"  # different values, of all units together

    def __repr__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Measure:
    """One integer per group. Values are taken from `centre`, in whole steps of 2^exponent.

    A row counts where it has a value; where `given` is set, where that has one, so that several sums are about the same
    rows. Then the count of `given` must be a measure of the plan too.
    """

    what: What
    of: Expression | None = None
    centre: float = 0.0
    exponent: int = 0
    given: Expression | None = None

    def __repr__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if not self.of:
            return self.what.value
        short = f"{self.centre:g}"  # short only if it is exact: answers are stored under this text
        centre = short if float(short) == self.centre else repr(self.centre)
        given = f", given {self.given!r}" if self.given is not None else ""
        return f"{self.what.value}({self.of!r}, {centre}, {self.exponent}{given})"

    @cached_property
    def counted_by(self) -> "Measure":
        """The count of the rows that it sums."""
        return Measure(What.VALUES, self.given or self.of)

    def span(self) -> tuple[int, int]:
        """The least and the most that one row adds, in lattice steps."""
        if self.of is None or self.what in (What.VALUES, What.DISTINCT):
            return 0, 1
        domain, step = self.of.domain, 2.0**self.exponent
        low, high = domain.low - self.centre, domain.high - self.centre
        if self.what is What.SQUARES:
            ends = [math.floor(end / 2.0 ** (self.exponent // 2) + 0.5) ** 2 for end in (low, high)]
            return 0 if low <= 0 <= high else min(ends), max(ends)
        return int(low // step), int(-(-high // step))


@dataclass(frozen=True)
class Plan:
    """Rows of `table` and what is joined to it that pass `where`, by `keys`, with bounded `measures` and with
    aggregates that are released on their own."""

    table: Table
    joins: tuple[Join, ...]
    where: Expression
    keys: tuple[Expression, ...]
    measures: tuple[Measure, ...]
    standalone: tuple[Standalone, ...] = ()
    bounded_by: tuple[Expression, ...] = ()  # finer keys by which contributions are bounded: of grouping sets

    @cached_property
    def finest(self) -> "Plan":
        """This plan, grouped by the finer keys by which contributions are bounded."""
        return replace(self, keys=self.bounded_by, bounded_by=())

    @property
    def merged_groups(self) -> int:
        """How many groups of the finest keys make one group."""
        pairs = zip(self.bounded_by, self.finest.key_lists, strict=True)
        return math.prod(len(listed or ()) for key, listed in pairs if key not in self.keys)

    @cached_property
    def canonical(self) -> str:
        """The canonical text: the same for all spellings of a question."""
        parts = [self.canonical_rows, repr(self.measures)]
        for name in sorted({one.stored_as for one in self.standalone}):
            parts.append(repr(tuple(one for one in self.standalone if one.stored_as == name)))
        return " | ".join([*parts, *self.canonical_limits])

    @cached_property
    def canonical_rows(self) -> str:
        """The start of the canonical text: which rows, by which keys."""
        return " | ".join([quote_name(self.table.name), repr(self.joins), repr(self.where), repr(self.keys)])

    @cached_property
    def canonical_limits(self) -> tuple[str, ...]:
        """The end of the canonical text: which keys there are, how contributions are bounded, what the policy says of
        the tables."""
        parts = []
        if [key.domain.keys and tuple(dict.fromkeys(key.domain.keys)) for key in self.keys] != list(self.key_lists):
            parts.append(f"keys {self.key_lists!r}")  # WHERE excludes some
        if self.bounded_by:
            parts.append(f"bounded by {self.bounded_by!r}, keys {self.finest.key_lists!r}")
        if self.table.scaled:  # never taken for an answer about rows that were cut
            parts.append(f"scaled, most {self.table.most}" if self.table.supposed else "scaled")
        stated = repr([*self.tables]) + "".join(repr(table.edges) for table in self.tables if table.edges)
        stated += "".join(f"{i} grouped {table.grouped!r}" for i, table in enumerate(self.tables) if table.grouped)
        return (*parts, digest(stated))

    def of_columns_read(self) -> "Plan":
        """This plan over tables that describe only the columns that it reads: a release that is stored under its
        canonical text stays in use when the owner describes another column otherwise.

        Rows of a private join are cut by a hash of all their columns, and a union has columns of its own: these keep
        their tables as they are.
        """
        if self.table.supposed:
            return replace(self, table=replace(self.table, supposed=False)).of_columns_read()
        if self.crossed or any(table.derived for table in self.tables):
            return self
        listed = [
            *self.keys,
            *self.bounded_by,
            self.where,
            *(of for m in self.measures for of in (m.of, m.given) if of is not None),
        ]
        listed += [of for one in self.standalone for of in one.arguments]
        listed += [of for join in self.joins for of, _ in join.on]
        read = [column.origin.partition(".") for of in listed for column in columns(of)]
        names = {place: [name for at, _, name in read if at == f"t{place}"] for place in range(len(self.joins) + 1)}
        joins = tuple(
            replace(join, table=join.table.describing([*names[i], *(theirs for _, theirs in join.on), *join.exact]))
            for i, join in enumerate(self.joins, 1)
        )
        return replace(self, table=self.table.describing(names[0]), joins=joins)

    # ---- what one row is made of ------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables that lineages call t0, t1, …"""
        return (self.table, *(join.table for join in self.joins))

    @cached_property
    def row_expressions(self) -> tuple[Expression, ...]:
        """All expressions over its rows."""
        measured = [m.of for m in self.measures if m.of]
        arguments = [value for one in self.standalone for value in one.arguments]
        return (self.where, *self.keys, *measured, *arguments, *(mine for join in self.joins for mine, _ in join.on))

    @cached_property
    def evaluated(self) -> tuple[Expression, ...]:
        """All expressions that an engine evaluates for one row, those of derived tables too, as often as it does.

        Their costs and `key_cost` together bound what one row takes.
        """
        inside = [(*table.inner_expressions, *(e for rows in table.inner_plans for e in rows.evaluated))
                  for table in self.tables]  # fmt: skip
        # keys twice: each may be looked up in a list
        return (*self.row_expressions, *self.keys, *(e for listed in inside for e in listed))

    @cached_property
    def key_cost(self) -> float:
        """Upper bound on the nanoseconds that an engine needs to group one row by its keys."""
        keys = [*self.keys, *(key for table in self.tables if table.grouped for _, key in table.grouped.keys)]
        inside = sum(rows.key_cost for table in self.tables for rows in table.inner_plans)
        return inside + sum(KEY * key.domain.longest for key in keys)

    # ---- bounds and keys --------------------------------------------------------------------------------------------

    @property
    def parts(self) -> int:
        """How many releases share the price."""
        return len(self.measures) + len(self.standalone)

    @cached_property
    def rows(self) -> int:
        """The most rows that one unit has in a group; of scaled contributions those that count for what is no sum."""
        if self.table.scaled:
            return 1
        if self.bounded_by:
            return self.finest.rows * min(self.finest.groups, self.merged_groups)
        joined = math.prod(join.table.rows for join in self.joins if join.multiplies)
        if self.keyed_by_group:  # a unit has one row for each of its keys
            return joined
        if self.keyed_by_branch:  # the rows of one group come from one branch
            return max(branch.rows.rows for branch in self.table.branches) * joined
        return self.table.rows * joined

    @cached_property
    def keyed_by_branch(self) -> bool:
        """Is there a key that is a different constant in each branch of UNION ALL?"""
        branches = [dict(branch.columns) for branch in self.table.branches]
        names = {key.origin.removeprefix("t0.") for key in self.keys if isinstance(key, Column)}
        for name in names if branches else ():
            found = [one.value for branch in branches if isinstance(one := branch.get(name), Constant)]
            if len(set(found)) == len(branches):
                return True
        return False

    @cached_property
    def keyed_by_group(self) -> bool:
        """Are all keys of GROUP BY inside the question keys of the question, too?"""
        names = {key.origin.removeprefix("t0.") for key in self.keys if isinstance(key, Column)}
        return self.table.grouped is not None and {name for name, _ in self.table.grouped.keys} <= names

    @cached_property
    def crossed(self) -> bool:
        """Are private tables joined so that rows are multiplied?"""
        return any(join.multiplies for join in self.joins)

    @cached_property
    def groups(self) -> int:
        """The most groups that one unit contributes to: no more than there are, if all keys are public.

        Of grouping sets: no more than if each group had as much of the unit as it can have.
        Theorem: if a unit is in L of the finest groups, of which R make one group, then the numbers of these that fall
            into each group have squares of sum ≤ L·min(L, R) and sum L, as have ⌈L/R⌉ groups with min(L, R) each, or
            more [c² ≤ c·min(L, R)]
        """
        if self.bounded_by:
            return -(-self.finest.groups // self.merged_groups)
        if not self.keys:
            return 1
        return self.table.groups if self.discovered else min(self.table.groups, max(1, self.combinations))

    @cached_property
    def cuts_groups(self) -> bool:
        """Can a unit have more groups than count? Not if all keys are public, and there are no more of them."""
        return bool(self.keys) and (self.discovered or self.combinations > self.table.groups)

    @cached_property
    def key_lists(self) -> tuple[tuple[Scalar, ...] | None, ...]:
        """For each key the values that rows can have under `where`, if they are public; None if not."""
        return tuple(possible_keys(key, self.where) for key in self.keys)

    @cached_property
    def discovered(self) -> bool:
        """Are there private keys, which partition selection must find in the data?"""
        return any(key.domain.keys is None for key in self.keys)

    @cached_property
    def public(self) -> tuple[tuple[object, ...], ...] | None:
        """All keys, if they are public; each once, or noise would be drawn twice for it."""
        found: list[tuple[object, ...]] = [()]
        for listed in self.key_lists:
            if listed is None:
                return None
            found = [(*before, value) for before in found for value in listed]
        return tuple(found)

    @cached_property
    def combinations(self) -> int:
        """How many keys `public` would list."""
        return math.prod(len(listed or ()) for listed in self.key_lists)


def digest(text: str) -> str:
    """A short name of a long text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
