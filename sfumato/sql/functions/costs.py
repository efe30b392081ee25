"""Worst-case costs of functions, in nanoseconds per row on one core, so that no branch of a question can take long.

An analyst sees how long an answer takes. `CASE WHEN id = 17 THEN f(x) END` takes as long as f does in one row, if that
person is there. So the time of each function has a bound that follows from the question alone, and the bound of a
question is the sum of them. `make bench-cost` measures every function at its worst input against these numbers, on
DuckDB. Where another engine takes longer, the entry (`cost_in`) or the dialect (`costs`) states its cost.
"""

from collections.abc import Callable
from typing import Protocol

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Domain

MOST_COST = 2_000_000  # nanoseconds for one row of a question
READ_TEXT, READ_OTHER = 5_000, 500  # to read a column
READ_WORDS = 5_000  # to read a number or a date that is stored as text
KEY = 2  # nanoseconds for each character of a key: hashed, compared and sorted
COMPARE = 0.1  # nanoseconds to compare two characters, many at a time


class Argument(Protocol):
    """An expression, as far as costs depend on it."""

    @property
    def domain(self) -> Domain: ...


Cost = Callable[..., float]


def each(nanoseconds: float) -> Cost:
    """A constant for each argument, whatever its value, plus one pass over texts at the speed of memory."""
    return lambda *arguments: sum(nanoseconds + one.domain.longest for one in arguments)


def per_character(nanoseconds: float) -> Cost:
    """A constant for each character of the texts."""
    return lambda *arguments: 100 + nanoseconds * sum(one.domain.longest for one in arguments)


def search(nanoseconds: float) -> Cost:
    """A constant for each character of a text that is searched for another one: at each position all of the other text
    may have to be compared, many bytes at a time."""

    def cost(text: Argument, sought: Argument, *rest: Argument) -> float:
        long = text.domain.longest
        short = min(sought.domain.longest, long // 2)
        return 100 + nanoseconds * long + COMPARE * (long - short) * short

    return cost


def cost_refusal(worst: float, engine: str = "") -> QueryRefused:
    """The refusal of a question whose worst case for one row, in nanoseconds, is above MOST_COST."""
    return QueryRefused(
        f"this question could take too long for one row{engine and f' on {engine}'}:"
        " how long an answer takes must not depend on a row.\n"
        f"  found:  up to {worst / 1000:,.0f} µs; {MOST_COST / 1000:,.0f} are allowed\n"
        "  do:     shorten texts first, such as LOWER(LEFT(x, 100)), or ask less at a time"
    )
