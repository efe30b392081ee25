"""Statements about single values: how many different ones a group has, and those around a rank.

A unit keeps at most `rows` values in a group, and at most `groups` groups, by keyed hashes of its own values: adding or
removing a unit changes nothing of any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.dialects.keyed_hash import FORMS, Form
from sfumato.sql.domains import Kind
from sfumato.sql.emit.bounding import bounding_of, group_by, key_names, partition_by
from sfumato.sql.emit.norm import RankBound
from sfumato.sql.emit.unit_rows import is_missing, row_select
from sfumato.sql.expressions import Column, Expression
from sfumato.sql.plan import Plan
from sfumato.sql.reserved_names import (
    ALL,
    BETWEEN,
    COUNT,
    COUNTED,
    GIVEN,
    LIST,
    NEAR,
    RANKED,
    READ,
    STEPS,
    UP_TO,
    VALUE,
    VALUES,
    WEIGHT,
    measure,
    qualify,
)  # fmt: skip
from sfumato.sql.value_lattice import Lattice

X = f"{READ}.{GIVEN}"  # a value of a row


def distinct_counts(plan: Plan, of: Expression, salt: int, dialect: str | Dialect) -> str:
    """keys, and the number of different values of a group.

    One unit changes it by at most `rows`: that many values are its own, and others may have them as well.
    """
    to, names = dialect_of(dialect).about(plan), qualify(VALUES, key_names(plan))
    kept = bounding_of(plan).values(plan, value_or_null(of, to), of, salt, to, once=True, form=FORMS[of.domain.kind])
    counted = f"COUNT(DISTINCT {VALUES}.{VALUE}) AS {measure(0)}"
    return f"WITH {kept} SELECT {', '.join([*names, counted])} FROM {VALUES} {group_by(names)}"


@dataclass(frozen=True)
class RankWindow:
    """The values whose rank is near the fraction `part` of all, moved by `shift`: those with a score below `cap`. Shift
    and cap count in parts (denominators) of a rank."""

    part: Fraction
    shift: int
    cap: int

    def holds(self) -> str:
        """Is one of the ranks UP_TO − COUNT + 1 … UP_TO inside?"""
        a, b = self.part.numerator, self.part.denominator
        many, count, upto = qualify(RANKED, [ALL, COUNT, UP_TO])
        above = f"{b} * ({upto} - {count}) - {a} * {many} - ({self.shift}) < {self.cap}"
        return f"({a} * {many} + ({self.shift}) - {b} * {upto} < {self.cap} AND {above})"


def ranked_values(
    plan: Plan, lattice: Lattice, salt: int, dialect: str | Dialect, bound: RankBound | None = None
) -> str:
    """keys, and each VALUE with how many have it (COUNT), how many have it or less (UP_TO), and how many there are
    (ALL). With a bound, rows count with weights whose norm it limits."""
    to, names = dialect_of(dialect).about(plan), qualify(COUNTED, key_names(plan))
    counted = frequencies(plan, lattice, salt, to) if bound is None else weighted_frequencies(plan, lattice, bound, to)
    split, (value, count) = partition_by(names), qualify(COUNTED, [VALUE, COUNT])
    upto = f"{to.total(count)} OVER ({split} ORDER BY {value}) AS {UP_TO}"
    shown = [*names, value, count, upto, f"{to.total(count)} OVER ({split}) AS {ALL}"]
    return f"WITH {counted} SELECT {', '.join(shown)} FROM {COUNTED}"


@dataclass(frozen=True)
class Selection:
    """Statements about the values of a whole table where each row is a person, for an engine that selects by rank.

    `rows` has the values GIVEN as the policy reads them, `unread` has them as they are, if that is in the same order.
    """

    rows: str
    unread: str
    lattice: str
    to: Dialect

    @staticmethod
    def of(plan: Plan, lattice: Lattice, dialect: str | Dialect) -> "Selection":
        to, of = dialect_of(dialect).about(plan), lattice.of
        read = to.compiled(of)
        key, unread = (to.key(of), to.unread(of)) if isinstance(of, Column) else (None, None)
        rows, plain = (row_select(plan, {GIVEN: one or read}, to).sql(to.name, copy=False) for one in (key, unread))
        return Selection(rows, plain, step_of(lattice, to), to)

    def quantile_statement(self, parts: Sequence[float]) -> str:
        """How many values there are, and those below which these parts of them lie."""
        return f"SELECT COUNT({X}), {self.to.quantile_list(X, parts)} FROM ({self.rows}) AS {READ}"

    def between(self, low: float, high: float) -> str:
        """How many values are at most the higher end; and, from the lower one on: steps, and how many have each."""
        first = f"LIST({X}) FILTER (WHERE {X} >= {self.number(low)}) AS {LIST}"
        found = f"SELECT COUNT(*) AS {ALL}, {first} FROM ({self.unread}) AS {READ} WHERE {X} <= {self.number(high)}"
        one = f"CAST(UNNEST({BETWEEN}.{LIST}) AS DOUBLE) AS {GIVEN}"
        each = f"SELECT {BETWEEN}.{ALL}, {one} FROM ({found}) AS {BETWEEN}"
        steps = f"SELECT {READ}.{ALL}, {self.lattice} AS {VALUE} FROM ({each}) AS {READ}"
        many, step = qualify(STEPS, [ALL, VALUE])
        return f"SELECT {many}, {step}, COUNT(*) FROM ({steps}) AS {STEPS} GROUP BY {many}, {step} ORDER BY {step}"

    def number(self, value: float) -> str:
        return self.to.number(float(value)).sql(self.to.name)


def frequencies(plan: Plan, lattice: Lattice, salt: int, to: Dialect, *more: str) -> str:
    """Tables of WITH, of which COUNTED has the keys, each VALUE, how many have it (COUNT), and `more`."""
    names = qualify(VALUES, [*key_names(plan), VALUE])
    kept = bounding_of(plan).values(plan, step_of(lattice, to), lattice.of, salt, to, once=False, form=Form.WHOLE)
    shown = [*names, f"COUNT(*) AS {COUNT}", *more]
    return f"{kept}, {COUNTED} AS (SELECT {', '.join(shown)} FROM {VALUES} {group_by(names)})"


def weighted_frequencies(plan: Plan, lattice: Lattice, bound: RankBound, to: Dialect) -> str:
    """Tables of WITH, of which COUNTED has the keys, each VALUE, and the weight of its rows (COUNT)."""
    names = qualify(VALUES, [*key_names(plan), VALUE])
    kept = bound.scaling(plan, to).values(step_of(lattice, to), lattice.of, bound.bound)
    shown = [*names, f"CAST({to.total(f'{VALUES}.{WEIGHT}')} AS BIGINT) AS {COUNT}"]
    return f"{kept}, {COUNTED} AS (SELECT {', '.join(shown)} FROM {VALUES} {group_by(names)})"


def values_near_ranks(plan: Plan, windows: Sequence[RankWindow], ranked: str, dialect: str | Dialect) -> str:
    """keys, how many values there are, and in order: values, how many have each, how many have it or less; for all
    values in one of the windows. `ranked` is the table that `ranks` makes."""
    to, names = dialect_of(dialect).about(plan), key_names(plan)
    near_one = " OR ".join(window.holds() for window in windows)
    whole = [f"CAST({RANKED}.{name} AS BIGINT) AS {name}" for name in (UP_TO, ALL)]
    found = ", ".join([*qualify(RANKED, [*names, VALUE, COUNT]), *whole])
    mine, most = qualify(NEAR, names), f"MAX({NEAR}.{ALL})"
    shown = ", ".join([*mine, most, *to.lists(*qualify(NEAR, [VALUE, COUNT, UP_TO]))])
    return (
        f"WITH {NEAR} AS (SELECT {found} FROM {ranked} AS {RANKED} WHERE {near_one})"
        f" SELECT {shown} FROM {NEAR} {group_by(mine)}"
    )


def value_or_null(of: Expression, to: Dialect) -> str:
    """X itself, with NULL in the place of NaN."""
    return f"CASE WHEN {is_missing(X, to)} THEN NULL ELSE {X} END" if of.domain.kind is Kind.NUMBER else X


def step_of(lattice: Lattice, to: Dialect) -> str:
    """X as the number of its step; clamped before it is cast, so that nothing can overflow."""
    low, high = lattice.of.domain.low, lattice.of.domain.high
    value = f"(LEAST(GREATEST({X}, {low!r}), {high!r}) - ({lattice.origin!r}))"
    steps = to.floor(f"{to.scaled(value, 2.0**-lattice.exponent)} + 0.5")
    whole = f"CAST(LEAST(GREATEST({steps}, 0), {lattice.points - 1}) AS BIGINT)"
    return f"CASE WHEN {is_missing(X, to)} THEN NULL ELSE {whole} END"
