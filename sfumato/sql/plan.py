"""What a question needs from the data, per group: integers that each unit moves by little, and values of some rank.

The rest is post-processing.
Two questions with the same plan are the same question, however they are spelled.
"""

import hashlib
import math
import re
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind, Scalar
from sfumato.sql.expressions import Column, Constant, Expression, columns, unmistakable
from sfumato.sql.policy import Table
from sfumato.sql.possible_keys import possible_keys

if TYPE_CHECKING:  # they are made of what stands here
    from sfumato.sql.statistics import Statistic

STACKED = re.compile(r"t\d+\.c[0-9a-f]{32}x*")  # names that no analyst has given
FINE = 2**20  # steps across a range whose policy names none
FINEST = 2**40  # steps across a range of which values are chosen
WIDE, LARGEST = 40, 2.0**100  # sums of 10^6 rows of 2^40 steps stay far below 2^63, whatever the data are


class What(Enum):
    """What is counted or summed in a group, over the rows that one unit has there."""

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
    """One integer per group. Values are taken from `centre`, in whole steps of 2^exponent."""

    what: What
    of: Expression | None = None
    centre: float = 0.0
    exponent: int = 0

    def __repr__(self) -> str:
        if not self.of:
            return self.what.value
        short = f"{self.centre:g}"  # few digits only where they say it all: answers are stored under this text
        centre = short if float(short) == self.centre else repr(self.centre)
        return f"{self.what.value}({self.of!r}, {centre}, {self.exponent})"

    def span(self) -> tuple[int, int]:
        """The least and the most that one row adds, in steps."""
        if self.of is None or self.what in (What.VALUES, What.DISTINCT):
            return 0, 1
        domain, step = self.of.domain, 2.0**self.exponent
        low, high = domain.low - self.centre, domain.high - self.centre
        if self.what is What.SQUARES:
            ends = [math.floor(end / 2.0 ** (self.exponent // 2) + 0.5) ** 2 for end in (low, high)]
            return 0 if low <= 0 <= high else min(ends), max(ends)
        return int(low // step), int(-(-high // step))


@dataclass(frozen=True)
class Window:
    """A value of each group by its rank: that which the fraction `part` of all values does not exceed; 0: the least.

    Values are taken in steps of 2^exponent from `origin`: 0 … points − 1.
    """

    of: Expression
    exponent: int
    part: Fraction

    def __repr__(self) -> str:
        return f"quantile({self.of!r}, {self.exponent}, {self.part})"

    @property
    def origin(self) -> float:
        return float(self.of.domain.low // 2.0**self.exponent * 2.0**self.exponent)

    @property
    def points(self) -> int:
        return int(-(-(self.of.domain.high - self.origin) // 2.0**self.exponent)) + 1

    @property
    def spare(self) -> float:
        """How far the value of a step is from those it stands for."""
        step = 2.0**self.exponent
        return 0.0 if self.of.domain.step and self.of.domain.step % step == 0 else step / 2

    def value(self, place: int, spare: float = 0.0) -> float:
        """The number that a step stands for, within its range."""
        found = self.origin + place * 2.0**self.exponent + spare
        return min(max(found, self.of.domain.low), self.of.domain.high)


@dataclass(frozen=True)
class Join:
    """A public table, each of whose rows is found by equality: at most one match is kept for a row. Or a private one of
    the same unit, joined on it: then each side keeps at most `rows` of a unit before, by a hash of the row itself.

    `once`: the private table knows the unit of the rows so far by a key: a row finds one of its unit's rows at most.
    The joined rows of a unit are then made of its own rows alone, and no more than it had before, so the
        bounds of the rows so far bound the join.
    Proof. ON has the equality of units, so a row meets only rows of its unit; of these one is kept for each combination
    of joined values, chosen by their own content, and a row of ours has one combination. ∎
    """

    table: Table
    on: tuple[tuple[Expression, str], ...]  # (of the rows so far, column of the joined table)
    exact: tuple[str, ...] = ()  # columns by which units are found: compared as these are, not as numbers
    once: bool = False

    def __repr__(self) -> str:
        more = f" exactly {self.exact!r}{' once' if self.once else ''}" if self.exact else ""
        return f"{unmistakable(self.table.name)} on {self.on!r}{more}"

    @property
    def multiplies(self) -> bool:
        """Can a row find several?"""
        return not self.table.public and not self.once


@dataclass(frozen=True)
class Plan:
    """Rows of `table` (and public tables) that pass `where`, by `keys`, with bounded `measures` and with `windows` on
    their order, and `statistics` of another kind."""

    table: Table
    joins: tuple[Join, ...]
    where: Expression
    keys: tuple[Expression, ...]
    measures: tuple[Measure, ...]
    windows: tuple[Window, ...] = ()
    statistics: tuple["Statistic", ...] = ()

    @property
    def canonical(self) -> str:
        """One text for all spellings."""
        parts = [
            unmistakable(self.table.name),
            repr(self.joins),
            repr(self.where),
            repr(self.keys),
            repr(self.measures),
        ]
        parts += [repr(part) for part in (self.windows, self.statistics) if part]
        tables = [self.table, *(join.table for join in self.joins)]
        stated = repr(tables) + "".join(
            repr(table.edges) for table in tables if table.edges
        )  # other bounds: another one
        if [key.domain.keys and tuple(dict.fromkeys(key.domain.keys)) for key in self.keys] != list(self.key_lists):
            parts.append(f"keys {self.key_lists!r}")  # WHERE rules some out
        return " | ".join([*parts, hashlib.sha256(stated.encode()).hexdigest()[:16]])

    @property
    def parts(self) -> int:
        """How many releases share the price."""
        return len(self.measures) + len(self.windows) + len(self.statistics)

    @property
    def rows(self) -> int:
        """How many rows one unit has in a group at most."""
        joined = math.prod(join.table.rows for join in self.joins if join.multiplies)
        if self.told_apart:  # what is in one group is of one branch
            return max(branch.rows.rows for branch in self.table.branches) * joined
        return self.table.rows * joined

    @property
    def told_apart(self) -> bool:
        """Is there a key that is another constant in each branch of UNION ALL?"""
        branches = [dict(branch.columns) for branch in self.table.branches]
        names = {key.origin.removeprefix("t0.") for key in self.keys if isinstance(key, Column)}
        for name in names if branches else ():
            found = [one.value for branch in branches if isinstance(one := branch.get(name), Constant)]
            if len(set(found)) == len(branches):
                return True
        return False

    @property
    def crossed(self) -> bool:
        """Are private tables joined so that rows are multiplied?"""
        return any(join.multiplies for join in self.joins)

    @property
    def groups(self) -> int:
        """How many groups one unit touches at most: no more than there are, if all are known."""
        if not self.keys:
            return 1
        return self.table.groups if self.discovered else min(self.table.groups, max(1, self.combinations))

    @cached_property
    def key_lists(self) -> tuple[tuple[Scalar, ...] | None, ...]:
        """For each key the values that rows can have under `where`, if they are public; None if not."""
        return tuple(possible_keys(key, self.where) for key in self.keys)

    @property
    def discovered(self) -> bool:
        """Must keys be found in the data?"""
        return any(key.domain.keys is None for key in self.keys)

    @property
    def public(self) -> tuple[tuple[object, ...], ...] | None:
        """All keys, if they are public; each once, or noise would be drawn twice for it."""
        found: list[tuple[object, ...]] = [()]
        for listed in self.key_lists:
            if listed is None:
                return None
            found = [(*before, value) for before in found for value in listed]
        return tuple(found)

    @property
    def combinations(self) -> int:
        """How many keys `public` would list."""
        return math.prod(len(listed or ()) for listed in self.key_lists)

    def bounds(self, measure: Measure) -> tuple[int, int]:
        """The least and the most that one unit adds to one group; whoever has fewer rows, or no values, adds less."""
        low, high = measure.span()
        rows = 1 if measure.what is What.UNITS else self.rows
        return min(low, 0) * rows, max(high, 0) * rows

    def sensitivity(self, measure: Measure) -> int:
        """How far one unit moves one group."""
        low, high = self.bounds(measure)
        return max(abs(low), abs(high), 1)


def exponent(expression: Expression, text: str, wide: int = WIDE) -> int:
    """The lattice of a sum: the policy's step, else a fine one, but never more than 2^wide steps; all public facts."""
    domain = expression.domain
    if domain.kind is not Kind.NUMBER or not domain.bounded:
        if domain.kind is not Kind.NUMBER:
            days = "; of a date, DATE_DIFF('day', DATE '2020-01-01', x)" if domain.kind is Kind.DATE else ""
            raise QueryRefused(
                f"{text} is of numbers.\n  found:  a {domain.kind.value}\n"
                f"  do:     ask about a number made of it, such as CLAMP(LENGTH(x), 0, 100){days}"
            )
        used = list(columns(expression))
        free = {c.origin for c in used if not c.domain.bounded} or {c.origin for c in used}
        names = {"a column of UNION ALL" if STACKED.fullmatch(o) else o.split(".", 1)[1] for o in free}
        found = f", of {', '.join(sorted(names)[:5])}" if names else ""
        raise QueryRefused(
            f"{text} has no bounds, so one person could change it without limit.\n"
            f"  found:  a {domain.kind.value} of unknown range{found}\n"
            "  do:     give low and high in the policy, or ask for CLAMP(…, low, high) with ends that no value exceeds"
        )
    largest = max(abs(domain.low), abs(domain.high))
    if largest > LARGEST:
        raise QueryRefused(
            f"{text} is bounded by {largest:.2g}, too much for a sum.\n"
            "  do:     ask for CLAMP(…, low, high) with ends that no value exceeds"
        )
    fine = _power(domain.step or (domain.high - domain.low) / FINE)
    return max(fine, math.frexp(largest)[1] - wide, -200)


def _power(step: float) -> int:
    """The largest e with 2^e ≤ step; 0 for none."""
    return math.frexp(step)[1] - 1 if step else 0


def window(expression: Expression, part: Fraction, text: str) -> Window:
    """The lattice of a quantile: that of a sum, unless it had more than FINEST points."""
    least = _power((expression.domain.high - expression.domain.low) / (FINEST / 8)) if expression.domain.bounded else 0
    return Window(expression, max(exponent(expression, text), least), part)
