"""An answer as a picture: intervals as positions on a scale, and lines where the key is ordered."""

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sfumato.curator.answer import Answer, Cell, format_columns

WIDTH = 1000.0  # of a drawing, in its own units
LINES = 3  # rows from which on an ordered key is drawn as a line


@dataclass(frozen=True)
class Interval:
    """An interval on a scale from 0 to WIDTH; `value` is None where nothing was released."""

    low: float
    value: float | None
    high: float


@dataclass(frozen=True)
class Picture:
    """A table with an interval drawn beside each aggregate."""

    names: list[str]
    right: list[bool]
    rows: list[list[str]]
    drawn: list[dict[int, Interval]]  # by row: column of the shown table → interval

    @staticmethod
    def of(answer: Answer) -> "Picture":
        names, rows, right = format_columns(answer.columns, answer.rows, answer.coverage)
        drawn: list[dict[int, Interval]] = [{} for _ in rows]
        for shown, place in aggregates(answer):
            spans = [numbers(row[place : place + 3]) for row in answer.rows]
            known = [x for span in spans for x in span if x is not None]
            low, high = min([0.0, *known]), max([0.0, *known])
            for row, (value, start, end) in enumerate(spans):
                if high > low and not (value is None and (start is None or end is None)):
                    at = [
                        to_pixels(x, low, high) for x in (low if start is None else start, high if end is None else end)
                    ]
                    middle = None if value is None else to_pixels(value, low, high)
                    drawn[row][shown + 1] = Interval(at[0], middle, at[1])
        return Picture(names, right, rows, drawn)


def aggregates(answer: Answer) -> Iterator[tuple[int, int]]:
    """Of each aggregate: its place in the shown table, where an interval is one column, and in the answer."""
    shown = place = 0
    while place < len(answer.columns):
        name = answer.columns[place]
        wide = answer.columns[place + 1 : place + 3] == (f"{name} low", f"{name} high")
        if wide:
            yield shown, place
        shown, place = (shown + 2, place + 3) if wide else (shown + 1, place + 1)


def series(answer: Answer) -> dict[str, object] | None:
    """A line with its band, if the only key is ordered: a day or a number."""
    found = list(aggregates(answer))
    if not found or found[0][1] != 1 or len(answer.rows) < LINES:
        return None
    x = [position(row[0]) for row in answer.rows]
    rows = [(at, *numbers(row[1:4])) for at, row in zip(x, answer.rows, strict=True) if at is not None]
    if len(rows) < LINES:
        return None
    rows.sort(key=lambda row: row[0] or 0.0)
    days = isinstance(answer.rows[0][0], datetime.date)
    return {"label": answer.columns[1], "key": answer.columns[0], "time": days, "data": list(zip(*rows, strict=True))}


def position(cell: Cell) -> float | None:
    if isinstance(cell, datetime.datetime):
        return cell.replace(tzinfo=cell.tzinfo or datetime.UTC).timestamp()
    if isinstance(cell, datetime.date):
        return datetime.datetime.combine(cell, datetime.time(), datetime.UTC).timestamp()
    return numbers([cell])[0]


def numbers(cells: Sequence[Cell]) -> list[float | None]:
    """Cells that are finite numbers; None for others."""
    found = [float(c) if isinstance(c, int | float) and not isinstance(c, bool) else math.nan for c in cells]
    return [c if math.isfinite(c) else None for c in found]


def to_pixels(x: float, low: float, high: float) -> float:
    return round(WIDTH * (x - low) / (high - low), 1)
