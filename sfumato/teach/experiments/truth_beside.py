"""Questions asked of a curator, with the exact answers beside them: for owners, before they publish a policy."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb

from sfumato.curator import Curator


@dataclass(frozen=True)
class Cell:
    """One released number, its interval, and the exact number."""

    question: str
    column: str
    key: tuple[object, ...]
    value: float
    low: float
    high: float
    truth: float

    @property
    def inside(self) -> bool:
        """Is the truth in the interval?"""
        return self.low - 1e-9 <= self.truth <= self.high + 1e-9

    @property
    def relative_error(self) -> float:
        """|answer − truth| over |truth|."""
        return abs(self.value - self.truth) / abs(self.truth) if self.truth else math.inf


@dataclass(frozen=True)
class Beside:
    """All released numbers of several questions."""

    cells: tuple[Cell, ...]

    @property
    def coverage(self) -> float:
        """The share of intervals that contain the truth."""
        return sum(cell.inside for cell in self.cells) / len(self.cells)

    def within(self, share: float) -> float:
        """The share of numbers that are off by at most this share of the truth."""
        return sum(cell.relative_error <= share for cell in self.cells) / len(self.cells)

    def __str__(self) -> str:
        lines = [f"{'question':<64}{'answer':>12}  {'95 % interval':<25}{'truth':>12}"]
        for question in dict.fromkeys(cell.question for cell in self.cells):
            cells = [cell for cell in self.cells if cell.question == question]
            first, short = cells[0], question if len(question) <= 62 else question[:61] + "…"
            interval = f"[{first.low:,.5g}, {first.high:,.5g}]"
            mark = "" if first.inside else " *"
            lines.append(f"{short:<64}{first.value:>12,.5g}  {interval:<25}{first.truth:>12,.5g}{mark}")
            if len(cells) > 1:
                found = sum(cell.inside for cell in cells)
                lines.append(f"   … and {len(cells) - 1} more; {found} of {len(cells)} intervals contain the truth")
        return "\n".join(lines)


def ask_beside(curator: Curator, database: str | Path, questions: Iterable[tuple[str, float]]) -> Beside:
    """Ask each question at its ε and compute the exact answer with DuckDB. Only groups that were released are compared.

    The exact answers are for the owner's eyes: they have no privacy at all.
    """
    cells: list[Cell] = []
    for sql, epsilon in questions:
        answer = curator.ask(sql, epsilon=epsilon)
        exact = run(database, sql)
        values = [name for name in answer.columns if f"{name} low" in answer.columns]
        bounds = {f"{name} {side}" for name in values for side in ("low", "high")}
        keys = [name for name in answer.columns if name not in values and name not in bounds]
        truths = {tuple(key_text(row[name]) for name in keys): row for row in exact}
        empty = dict.fromkeys(values, 0) if "COUNT" in sql.upper() else {}  # a public key that nobody has
        for row in (dict(zip(answer.columns, found, strict=True)) for found in answer.rows):
            place = tuple(key_text(row[name]) for name in keys)
            for name in values:
                told = (row[name], row[f"{name} low"], row[f"{name} high"], truths.get(place, empty).get(name))
                if all(isinstance(x, int | float | Decimal) for x in told):
                    cells.append(Cell(sql, name, place, *(float(str(x)) for x in told)))
    return Beside(tuple(cells))


def run(database: str | Path, sql: str) -> list[dict[str, object]]:
    """The exact rows, by column."""
    with duckdb.connect(str(database), read_only=True) as connection:
        found = connection.execute(sql)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def key_text(key: object) -> str:
    """A key as text: 3 and 3.0 are one key."""
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)
