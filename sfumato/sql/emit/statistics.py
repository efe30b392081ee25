"""Statements for trimmed means, modes and triangles: counts of values, and the few values whose ranks matter."""

from fractions import Fraction

from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect, raw, written_out
from sfumato.sql.domains import Kind
from sfumato.sql.emit.sums import by, row_wise
from sfumato.sql.emit.values import X, by_parts, close, frequencies, given, lattice, listed, values
from sfumato.sql.plan import Plan
from sfumato.sql.reserved_names import (
    ALL,
    CLOSED,
    COUNT,
    COUNTED,
    EDGES,
    ENDS,
    FIRST,
    OPEN,
    PLACE,
    RANKED,
    ROWS,
    SECOND,
    SUM,
    SUM_UP_TO,
    UP_TO,
    VALUE,
    VALUES,
    A,
    B,
)  # fmt: skip
from sfumato.sql.reserved_names import of as qualified
from sfumato.sql.statistics import Mode, Triangles, Trimmed


def ends(plan: Plan, trimmed: Trimmed, reach: int, salt: int, dialect: str | Dialect) -> str:
    """keys, how many values there are, and in order: values, how many have each, how many have it or less, and the sum
    of these; for all values that are within `reach` ranks of either end of what is kept."""
    to, names = dialect_of(dialect).about(plan), listed(plan)
    value, count, total = qualified(COUNTED, [VALUE, COUNT, SUM])
    split = by_parts(qualified(COUNTED, names))
    running = [f"{to.total(of)} OVER ({split} ORDER BY {value}) AS {name}" for name, of in
               ((UP_TO, count), (SUM_UP_TO, total))]  # fmt: skip
    mine = [*qualified(COUNTED, names), value, count, *running, f"{to.total(count)} OVER ({split}) AS {ALL}"]
    ranked = f"SELECT {', '.join(mine)} FROM {COUNTED}"
    part = trimmed.lattice.part
    near = " OR ".join(close(one, 0, reach * part.denominator) for one in (part, Fraction(1) - part))
    kept = qualified(RANKED, names)
    lists = to.lists(*qualified(RANKED, [VALUE, COUNT, UP_TO, SUM_UP_TO]))
    shown = ", ".join([*kept, f"CAST(MAX({RANKED}.{ALL}) AS BIGINT)", *lists])
    counted = frequencies(plan, trimmed.lattice, salt, to, f"{to.total(f'{VALUES}.{VALUE}')} AS {SUM}")
    return f"WITH {counted} SELECT {shown} FROM ({ranked}) AS {RANKED} WHERE {near} {by(kept)}"


def votes(plan: Plan, mode: Mode, salt: int, dialect: str | Dialect) -> str:
    """keys, a value, and how many have it: of all public values; else of the two most common ones of each group."""
    to, names = dialect_of(dialect).about(plan), listed(plan)
    kept = values(plan, told(mode, to), mode.of, salt, to, once=False)
    each = qualified(VALUES, [*names, VALUE])
    counted = f"(SELECT {', '.join([*each, f'COUNT(*) AS {COUNT}'])} FROM {VALUES} {by(each)}) AS {COUNTED}"
    if mode.choices is not None:
        public = None if mode.lattice else mode.of.domain.keys
        shown = ", ".join(qualified(COUNTED, [*names, VALUE, COUNT]))
        only = (
            f" WHERE {COUNTED}.{VALUE} IN ({written_out(type(to), mode.of.domain.kind, public)})"
            if public is not None
            else ""
        )
        return f"WITH {kept} SELECT {shown} FROM {counted}{only}"
    order = f"{by_parts(qualified(COUNTED, names))} ORDER BY {COUNTED}.{COUNT} DESC, {COUNTED}.{VALUE}"
    placed = f"SELECT {COUNTED}.*, ROW_NUMBER() OVER ({order}) AS {PLACE} FROM {counted}"
    shown = ", ".join(qualified(RANKED, [*names, VALUE, COUNT]))
    return f"WITH {kept} SELECT {shown} FROM ({placed}) AS {RANKED} WHERE {RANKED}.{PLACE} <= 2"


def told(mode: Mode, to: Dialect) -> str:
    """A value as it is counted and shown."""
    if mode.lattice is not None:
        return lattice(mode.lattice, to)
    return to.date_text(raw(X)).sql(to.name) if mode.of.domain.kind is Kind.DATE else given(mode.of, to)


def triangles(plan: Plan, graph: Triangles, dialect: str | Dialect) -> str:
    """How many triangles there are, and the most nodes that two nodes are both joined to.

    Each pair of different nodes counts once, however often and in which order it is listed. Two nodes with a common
    neighbour are an open triangle; it is closed if they are an edge, and each triangle is met three times.
    """
    to = dialect_of(dialect).about(plan)
    rows = row_wise(plan, {A: to.compiled(graph.ends[0]), B: to.compiled(graph.ends[1])}, to).sql(to.name)
    a, b = qualified(ROWS, [A, B])
    pairs = f"SELECT LEAST({a}, {b}) AS {A}, GREATEST({a}, {b}) AS {B} FROM ({rows}) AS {ROWS} WHERE {a} <> {b}"
    third = to.divided(f"(SELECT {CLOSED}.{COUNT} FROM {CLOSED})", "3")
    return (
        f"WITH {EDGES} AS {to.materialized}({pairs} GROUP BY 1, 2),"
        f" {ENDS} AS (SELECT {EDGES}.{A}, {EDGES}.{B} FROM {EDGES}"
        f" UNION ALL SELECT {EDGES}.{B}, {EDGES}.{A} FROM {EDGES}),"
        f" {OPEN} AS (SELECT {FIRST}.{B} AS {A}, {SECOND}.{B} AS {B}, COUNT(*) AS {COUNT}"
        f" FROM {ENDS} AS {FIRST} JOIN {ENDS} AS {SECOND} ON {FIRST}.{A} = {SECOND}.{A} AND {FIRST}.{B} < {SECOND}.{B}"
        " GROUP BY 1, 2),"
        f" {CLOSED} AS (SELECT SUM({OPEN}.{COUNT}) AS {COUNT}"
        f" FROM {OPEN} JOIN {EDGES} ON {OPEN}.{A} = {EDGES}.{A} AND {OPEN}.{B} = {EDGES}.{B})"
        f" SELECT CAST(COALESCE({third}, 0) AS BIGINT),"
        f" CAST(COALESCE((SELECT MAX({OPEN}.{COUNT}) FROM {OPEN}), 0) AS BIGINT)"
    )
