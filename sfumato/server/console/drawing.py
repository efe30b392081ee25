"""What pages draw of previews, and how they write numbers and times."""

import datetime
import math
import re
from dataclasses import dataclass

from markupsafe import Markup, escape

from sfumato.curator.answer import Cell, decimals, format_cell
from sfumato.curator.picture import WIDTH


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
