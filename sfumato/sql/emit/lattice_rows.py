"""Sums of products of columns over single rows, as integers of one pass: what estimators are fitted to in the database.

Each row becomes small integers by itself: a value is moved into its public bounds, scaled to [−1, 1] and rounded to a
multiple of 1/STEPS. Products of two such integers fit 32 bits, so an engine multiplies and adds them as fast as it does
doubles, and the sums are exact. Rows in which a value is missing are left out. Only where a row is a unit.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.unit_rows import row_select
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions.function import Sql
from sfumato.sql.plan import Plan
from sfumato.sql.reserved_names import KEY, ROWS, measure
from sfumato.sql.reserved_names import STEPS as STEPPED

STEPS = 1 << 14  # of half a range: within SMALLINT, which tells the optimiser that products cannot overflow
LARGEST_SCALE = 1e300  # for bounds that nearly meet: a product with 0 stays 0
Term = tuple[int, int]  # coordinates of a row; 0 is the constant 1


class Cell(ABC):
    """Which of several public cells a row is in, by its own integers: SQL for a number from 0; others are no cell."""

    @abstractmethod
    def sql(self, label: str, columns: Sequence[str]) -> str:
        """`columns` hold the integers of each row; `label` a whole number."""


@dataclass(frozen=True)
class ByLabel(Cell):
    """The place of the row's label among the public classes."""

    def sql(self, label: str, columns: Sequence[str]) -> str:
        return label


@dataclass(frozen=True)
class ByBin(Cell):
    """One of `count` bins of equal width of a column."""

    column: int
    count: int

    def sql(self, label: str, columns: Sequence[str]) -> str:
        """Integers from 0 to count, of which the last holds the upper end alone, and belongs to the bin before."""
        return f"LEAST((({columns[self.column]} + {STEPS}) * {self.count}) // {2 * STEPS}, {self.count - 1})"


@dataclass(frozen=True)
class ByLeaf(Cell):
    """The leaf of a complete binary tree, times the number of classes, plus the place of the label."""

    splits: tuple[tuple[int, float], ...]  # of each inner node, level by level: column, threshold in [−1, 1]
    classes: int

    def sql(self, label: str, columns: Sequence[str]) -> str:
        return f"CASE WHEN {label} >= 0 THEN {self.node(0, columns)} * {self.classes} + {label} END"

    def node(self, place: int, columns: Sequence[str]) -> str:
        if place >= len(self.splits):
            return str(place - len(self.splits))
        column, threshold = self.splits[place]
        left, right = (self.node(2 * place + side, columns) for side in (1, 2))
        return f"CASE WHEN {columns[column]} > {round(threshold * STEPS)} THEN {right} ELSE {left} END"


@dataclass(frozen=True)
class Block:
    """Sums of `terms` for each of `count` cells; without cells, of all rows. A row is in one cell at most."""

    terms: tuple[Term, ...]
    cell: Cell | None = None
    count: int = 1


@dataclass(frozen=True)
class LatticeRows:
    """The rows of a plan as integers: `columns` with their public bounds, and whole numbers that name labels."""

    plan: Plan
    columns: tuple[Expression, ...]
    bounds: tuple[tuple[float, float], ...]  # middle, half width
    label: Expression | None = None

    def statement(self, block: Block, to: Dialect) -> str:
        """The cell, if there is one, and each sum: of the integers, for a term with the constant; else of products."""
        sums = [f"{to.total(product(term))} AS {measure(k)}" for k, term in enumerate(block.terms)]
        rows = f"({self.integers(to)}) AS {STEPPED}"
        if block.cell is None:
            return f"SELECT {', '.join(sums)} FROM {rows}"
        names = [f"{STEPPED}.{measure(j)}" for j in range(len(self.columns))]
        cell = block.cell.sql(f"{STEPPED}.{KEY}", names)
        return f"SELECT {cell} AS {KEY}, {', '.join(sums)} FROM {rows} GROUP BY {cell}"

    def integers(self, to: Dialect) -> str:
        """Clamped before they are cast, so that no value can fail. A missing value drops its row, whole."""
        values = {measure(j): read_number(of, to) for j, of in enumerate(self.columns)}
        label = {} if self.label is None else {KEY: to.compiled(self.label)}
        rows = row_select(self.plan, values | label, to).sql(to.name, copy=False)
        names = [f"{ROWS}.{name}" for name in values]
        steps = [
            f"CAST(CAST(LEAST(GREATEST(({name} - ({middle!r}::DOUBLE)) * {scale(half)!r}::DOUBLE, -{STEPS}::DOUBLE),"
            f" {STEPS}::DOUBLE) AS SMALLINT) AS INTEGER) AS {measure(j)}"
            for j, (name, (middle, half)) in enumerate(zip(names, self.bounds, strict=True))
        ]
        steps += [f"CAST({ROWS}.{KEY} AS INTEGER) AS {KEY}"] if label else []
        given = " AND ".join(f"{name} IS NOT NULL AND NOT ISNAN({name})" for name in names)
        return f"SELECT {', '.join(steps)} FROM ({rows}) AS {ROWS} WHERE {given}"


def scale(half: float) -> float:
    return min(STEPS / half, LARGEST_SCALE)


def product(term: Term) -> str:
    """The number that one row adds: 1, an integer, or a product of two."""
    names = [f"{STEPPED}.{measure(j - 1)}" for j in term if j > 0]
    return " * ".join(names) or "1"


def read_number(of: Expression, to: Dialect) -> Sql:
    """A number as a double. Bounds are applied later, so those of the text are left out; and a column is read as it is
    where its type allows: an expression that may be NULL makes every product and sum after it slower."""
    match of:
        case Call("clamp", (Column() as inner, Constant(), Constant())):
            plain = to.unread(inner)
            return to.compiled(inner) if plain is None else exp.Cast(this=plain, to=exp.DataType.build("DOUBLE"))
    return to.compiled(of)


def whole_steps(term: Term) -> int:
    """The factor that puts a sum of this term into steps of 1/STEPS²."""
    return (1, STEPS, STEPS * STEPS)[term.count(0)]
