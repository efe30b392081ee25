"""What pages draw of answers and previews: intervals and errors as positions on a scale."""

import datetime
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from sfumato.curator.answer import Answer, Cell, decimals, format_cell, format_columns

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
                    at = [scaled(x, low, high) for x in (low if start is None else start, high if end is None else end)]
                    middle = None if value is None else scaled(value, low, high)
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


def scaled(x: float, low: float, high: float) -> float:
    return round(WIDTH * (x - low) / (high - low), 1)


@dataclass(frozen=True)
class ErrorBar:
    """An error to scale: the bar of a round number, of which it is at most a quarter, with the error at its end."""

    name: str
    words: str
    error: float | None
    example: float = 0.0
    bar: float = 0.0  # length
    arm: float = 0.0  # of the error to each side

    @staticmethod
    def of(name: str, words: str, error: float | None) -> "ErrorBar":
        if error is None or not 0 < error < 1e300:
            return ErrorBar(name, words, error)
        example = round_up(4 * error)
        unit = WIDTH / (example + error)
        return ErrorBar(name, words, error, example, round(unit * example, 1), round(unit * error, 1))


def round_up(x: float) -> float:
    """The next number of the form 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(x))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= x * (1 - 1e-12))


def emphasise(text: str) -> Markup:
    """A text with its decimal numbers set in bold."""
    return Markup(re.sub(r"\d+\.\d+", r"<strong>\g<0></strong>", str(escape(text))))


def moment(seconds: object) -> str:
    """A time as people write it, in UTC."""
    try:
        return datetime.datetime.fromtimestamp(float(str(seconds)), datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return ""


def plain(cell: Cell) -> str:
    """A bound, a key or an error: whole numbers whole, others with three digits."""
    if not isinstance(cell, float):
        return format_cell(cell)
    text = format_cell(cell, 0 if cell.is_integer() else decimals([cell], 3))
    return text.rstrip("0").rstrip(".") if "." in text else text


def dial(x: float) -> float:
    """Where a number stands on a slider."""
    return round(math.log10(x), 2) if x > 0 else -3.0
