"""SQL around private aggregations: bound against empty tables before the charge, run over released values after it."""

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sfumato.aggregates.arithmetic_intervals import Apply, Cells, Known, Tree
from sfumato.aggregates.linear import Estimate
from sfumato.curator.expression_intervals import interval_around, known_value, tree_of
from sfumato.curator.layout import Shown, finite_or_none
from sfumato.curator.precheck import fixed_error
from sfumato.engines.base import Engine
from sfumato.engines.postprocessing import SmallTable, Tables
from sfumato.errors import PostprocessingFailed, QueryRefused
from sfumato.sql.dialects import dialect_of
from sfumato.sql.domains import Kind
from sfumato.sql.emit.public_rows import MOST_PUBLIC, TYPES, public_columns, public_rows
from sfumato.sql.expressions import Expression, Output
from sfumato.sql.parse.outer_select import is_free
from sfumato.sql.parse.trace import ROW, ROWS, outputs
from sfumato.sql.plan import Table
from sfumato.sql.postprocess import Value, arrange_rows, evaluate
from sfumato.sql.question import (
    Outer,
    Question,
    ReleasedPart,
    ReleasedTable,
    TracedCall,
    TracedNumber,
    TracedTree,
    TracedValue,
)

MOST_CELLS = 500_000  # of tables by public keys
MOST_READ = 200_000  # released values that the intervals of an answer are made of


class Processor(Protocol):
    """A process that holds no private rows; raises ValueError with a reason."""

    def describe(self, tables: Tables, sql: str) -> tuple[tuple[str, str], ...]: ...

    def compute(self, tables: Tables, sql: str) -> Sequence[tuple[Shown, ...]]: ...


@dataclass(frozen=True)
class ReleasedRows:
    """The answer to one question: keys and values of each group, and where intervals come from."""

    question: Question
    values: Sequence[Sequence[Value]]
    cells: Cells

    @property
    def shown(self) -> list[int]:
        """Indexes of the rows after HAVING, ORDER BY and LIMIT."""
        return arrange_rows(self.question, self.values)

    def value(self, row: int, place: int) -> Value:
        e = self.question.columns[place][1]
        return self.values[row][e.place] if isinstance(e, Output) else evaluate(e, self.values[row])

    def tree(self, row: int, place: int) -> Tree:
        return tree_of(self.question, self.question.columns[place][1], self.values[row], self.cells, row)


# ---- before the charge ----------------------------------------------------------------------------------------------


def bind(outer: Outer, processor: Processor) -> Outer:
    """The query with the names and types of its columns; QueryRefused, free of charge, if it cannot run."""
    cells = [
        sum(outer.questions[part.question].plan.combinations for part in table.parts) * len(table.titles)
        for table in outer.tables
    ]
    if sum(cells) > MOST_CELLS:
        raise QueryRefused(f"the released tables are too large for a query over them.\n  found:  {sum(cells):,} values")
    empty = {name: SmallTable(columns) for name, columns in columns_by_table(outer).items()}
    try:
        columns = processor.describe(empty, outer.sql)
    except ValueError as problem:
        raise QueryRefused(
            "the SQL around the private aggregation cannot run over released values. Nothing was charged.\n"
            f"  found:  {problem}\n  do:     write it as DuckDB reads it, over released and public tables"
        ) from None
    traced = outer.traced
    if traced is not None and traced.sql:
        try:
            found = processor.describe(empty, traced.sql)
            if [kind for _, kind in found[: len(columns)]] != [kind for _, kind in columns]:
                raise ValueError("another type")
        except ValueError:
            traced = replace(traced, sql="", trees=(None,) * len(traced.trees))
    if traced is not None and len(traced.trees) != len(columns):
        traced = None
    if len(outer.titles) == len(columns):
        columns = tuple((title, kind) for title, (_, kind) in zip(outer.titles, columns, strict=True))
    return replace(outer, columns=unique_names(columns), traced=traced)


def unique_names(columns: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for name, kind in columns:
        taken, number, title = [one for one, _ in found], 1, name
        while not is_free(title, taken):
            number += 1
            title = f"{name} {number}"
        found.append((title, kind))
    return tuple(found)


def columns_by_table(outer: Outer) -> dict[str, tuple[tuple[str, str], ...]]:
    """Names and types of all tables; released ones also with the numbers of their rows."""
    found = {table.name: public_columns(table) for table in outer.public}
    for table in outer.tables:
        columns = tuple((title, column_type(outer, table, j)) for j, title in enumerate(table.titles))
        found |= {table.name: columns, table.name + ROWS: (*columns, (ROW, "BIGINT"))}
    return found


def column_type(outer: Outer, table: ReleasedTable, place: int) -> str:
    kinds, is_count = [], False
    for part in table.parts:
        column = part.columns[place]
        if column is not None:
            question = outer.questions[part.question]
            is_count |= any(one >= len(question.plan.keys) for one in outputs(question.columns[column][1]))
            kinds.append(sql_type(question, question.columns[column][1]))
        elif isinstance(part.constants[place], int):
            kinds.append("BIGINT")
    return "DOUBLE" if {"DOUBLE", "BIGINT"} == set(kinds) or (is_count and table.consistent) else kinds[0]


def sql_type(question: Question, expression: Expression) -> str:
    """Counts and listed whole numbers are integers, other numbers doubles."""
    if isinstance(expression, Output) and expression.domain.kind is Kind.NUMBER:
        place = expression.place - len(question.plan.keys)
        if place >= 0:
            return "BIGINT" if question.aggregates[place].is_count else "DOUBLE"
        listed = question.plan.key_lists[expression.place]
        if listed and all(isinstance(one, int | float) and float(one).is_integer() for one in listed):
            return "BIGINT"
    return TYPES[expression.domain.kind]


# ---- after the release ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OuterAnswer:
    """Columns, with intervals where there are some, and the names of noisy ones without."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Shown, ...], ...]
    with_interval: tuple[str, ...]
    without: tuple[str, ...]


def run(
    outer: Outer, released: Mapping[int, ReleasedRows], public: Mapping[str, SmallTable], processor: Processor
) -> OuterAnswer:  # fmt: skip
    """The answer to an outer query. Post-processing: it reads released and public values alone."""
    origins = {table.name: [(part, i) for part in table.parts for i in released[part.question].shown]
               for table in outer.tables}  # fmt: skip
    tables = dict(public)
    types = columns_by_table(outer)
    for table in outer.tables:
        rows = []
        for part, i in origins[table.name]:
            one, pairs = released[part.question], zip(part.columns, part.constants, strict=True)
            rows.append(tuple(finite_or_none(one.value(i, c) if c is not None else constant) for c, constant in pairs))
        rows = [whole_where(row, types[table.name]) for row in rows]
        tables[table.name] = SmallTable(types[table.name], tuple(rows))
        numbered = tuple((*row, number) for number, row in enumerate(rows))
        tables[table.name + ROWS] = SmallTable(types[table.name + ROWS], numbered)
    try:
        found = processor.compute(tables, outer.sql)
    except ValueError as problem:
        raise PostprocessingFailed(
            "the SQL over released values failed; these are stored, so another query over them is free.\n"
            f"  found:  {problem}\n  do:     change the SQL around the aggregation"
        ) from None
    intervals = traced_intervals(outer, found, released, origins, tables, processor)
    return lay_out(outer, found, intervals)


def whole_where(row: Sequence[Value], columns: Sequence[tuple[str, str]]) -> tuple[Value, ...]:
    return tuple(
        int(cell) if kind == "BIGINT" and isinstance(cell, float) else cell
        for cell, (_, kind) in zip(row, columns, strict=True)
    )


def traced_intervals(
    outer: Outer, found: Sequence[tuple[Shown, ...]], released: Mapping[int, ReleasedRows],
    origins: Mapping[str, Sequence[tuple[ReleasedPart, int]]], tables: Tables, processor: Processor,
) -> dict[int, list[Estimate]]:  # fmt: skip
    """The intervals of each column that has a tree, row by row; none where the traced query gives other values."""
    traced = outer.traced
    if traced is None or not traced.sql:
        return {}
    places = outer.with_interval
    nothing: dict[int, list[Estimate]] = {j: [(None, None, None)] * len(found) for j in places}
    try:
        rows = processor.compute(tables, traced.sql)
    except ValueError:
        return nothing
    width = len(outer.columns)
    if [row[:width] for row in rows] != list(found) or sum(map(cells_read, rows)) > MOST_READ:
        return nothing
    tracer = TreeBuilder(outer, released, origins)
    return {
        j: [interval_around(row[j], tracer.tree(traced.trees[j], row[width:])) for row in rows] for j in places
    }  # fmt: skip


def cells_read(row: Sequence[Shown]) -> int:
    return sum(cell.count(",") for cell in row if isinstance(cell, str) and cell.startswith("["))


@dataclass(frozen=True)
class TreeBuilder:
    """From hidden columns to what a value is made of."""

    outer: Outer
    released: Mapping[int, ReleasedRows]
    origins: Mapping[str, Sequence[tuple[ReleasedPart, int]]]

    def tree(self, traced: TracedTree | None, hidden: Sequence[Shown]) -> Tree:
        match traced:
            case TracedNumber(value):
                return Known(value)
            case TracedValue("known", place):
                cell = hidden[place]
                return known_value(cell)
            case TracedValue("cell", place, table, title):
                cell = hidden[place]
                return Known(None) if not isinstance(cell, int) else self.cell(table, title, cell)
            case TracedValue(how, place, table, title):
                rows = read_row_numbers(hidden[place])
                return Apply(how, tuple(self.cell(table, title, row) for row in rows)) if rows else Known(None)
            case TracedCall("case", arguments):
                return self.case(arguments, hidden)
            case TracedCall("coalesce" | "greatest" | "least" as name, arguments):
                trees = [one for one in (self.tree(part, hidden) for part in arguments) if one != Known(None)]
                return (trees[0] if name == "coalesce" else Apply(name, tuple(trees))) if trees else Known(None)
            case TracedCall(name, arguments):
                return Apply(name, tuple(self.tree(one, hidden) for one in arguments))
        return Known(None)

    def case(self, arguments: Sequence[TracedTree], hidden: Sequence[Shown]) -> Tree:
        for when, then in zip(arguments[:-1:2], arguments[1::2], strict=True):
            if isinstance(when, TracedValue) and hidden[when.hidden] is True:
                return self.tree(then, hidden)
        return self.tree(arguments[-1], hidden)

    def cell(self, table: str, title: str, number: int) -> Tree:
        part, row = self.origins[table][number]
        described = next(one for one in self.outer.tables if one.name == table)
        place = part.columns[described.titles.index(title)]
        return Known(None) if place is None else self.released[part.question].tree(row, place)


def read_row_numbers(cell: Shown) -> list[int]:
    """A list of row numbers, as the processor writes it."""
    text = str(cell or "").strip("[]")
    return [int(one) for one in text.split(",") if one.strip().isdigit()]


def lay_out(
    outer: Outer, rows: Sequence[tuple[Shown, ...]], intervals: Mapping[int, list[Estimate]]
) -> OuterAnswer:  # fmt: skip
    names: list[str] = []
    columns: list[list[Shown]] = []
    noisy = outer.traced.noisy if outer.traced is not None else (True,) * len(outer.columns)
    without = []
    for j, (name, kind) in enumerate(outer.columns):
        names.append(name)
        columns.append(as_days([finite(row[j]) for row in rows]))
        if j in intervals:
            names += [f"{name} low", f"{name} high"]
            columns += [[finite_or_none(low) for _, low, _ in intervals[j]],
                        [finite_or_none(high) for _, _, high in intervals[j]]]  # fmt: skip
        elif noisy[j] and kind not in ("VARCHAR", "BOOLEAN", "TIMESTAMP", "DATE"):
            without.append(name)
    shown = tuple(zip(*columns, strict=True)) if rows else ()
    return OuterAnswer(tuple(names), shown, tuple(outer.columns[j][0] for j in intervals), tuple(without))


def finite(cell: Shown) -> Shown:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def as_days(cells: list[Shown]) -> list[Shown]:
    """Moments as days, if all are at midnight."""
    moments = [one for one in cells if isinstance(one, datetime.datetime)]
    if moments and all(one.time() == datetime.time() for one in moments):
        return [one.date() if isinstance(one, datetime.datetime) else one for one in cells]
    return cells


# ---- public tables, read once for such queries ----------------------------------------------------------------------


def read_public(engine: Engine, table: Table) -> SmallTable:
    """All rows of a public table, sorted; refused if there are too many."""
    with fixed_error():
        schema = engine.schema()
        dialect = replace(dialect_of(engine.dialect), schema=schema)
        rows = engine.run(public_rows(table, dialect))
    if len(rows) > MOST_PUBLIC:
        raise QueryRefused(
            f"{table.name} is too large for a query over released values.\n  found:  more than {MOST_PUBLIC:,} rows\n"
            "  do:     join it to the private table instead"
        )
    cells = sorted((tuple(map(plain_cell, row)) for row in rows), key=repr)
    return SmallTable(public_columns(table), tuple(cells))


def plain_cell(value: object) -> float | str | bool | None:
    if isinstance(value, bool | str | None):
        return value
    return str(value) if isinstance(value, datetime.date) else float(value)  # type: ignore[arg-type]
