"""What a function takes in one row at most, in nanoseconds of one core, so that no branch of a question can take long.

An analyst sees how long an answer takes. `CASE WHEN id = 17 THEN f(x) END` takes as long as f does, in one row, if that
person is there: so each function has a bound on its time that follows from the question alone, and a question the sum
of them. `make bench-cost` measures every function at its worst input against these numbers, on DuckDB; what takes
longer on another engine is stated in its dialect (`Dialect.costs`).
"""

from collections.abc import Callable
from typing import Protocol

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Domain

MOST_COST = 2_000_000  # nanoseconds for one row of a question
READ_TEXT, READ_OTHER, READ_WORDS = 5_000, 500, 5_000  # of a column; the last of numbers and dates in texts
KEY = 2  # nanoseconds for each character of a key: hashed, compared and sorted
COMPARE = 0.1  # nanoseconds to compare two characters, where many are compared at once


class Argument(Protocol):
    """An expression, as far as costs depend on it."""

    @property
    def domain(self) -> Domain: ...


Cost = Callable[..., float]


def each(nanoseconds: float) -> Cost:
    """So much for each argument, whatever its value; texts are looked at once, at the speed of memory."""
    return lambda *arguments: sum(nanoseconds + one.domain.longest for one in arguments)


def per_character(nanoseconds: float) -> Cost:
    """So much for each character of the texts."""
    return lambda *arguments: 100 + nanoseconds * sum(one.domain.longest for one in arguments)


def search(nanoseconds: float) -> Cost:
    """So much for each character of a text in which another one is sought: from each place on, all of that may have to
    be compared, many bytes at a time."""

    def cost(text: Argument, sought: Argument, *rest: Argument) -> float:
        long = text.domain.longest
        short = min(sought.domain.longest, long // 2)
        return 100 + nanoseconds * long + COMPARE * (long - short) * short

    return cost


def require_cost(worst: float, engine: str = "") -> None:
    """Raises QueryRefused if a question may take so many nanoseconds for one row."""
    if worst > MOST_COST:
        raise QueryRefused(
            f"this question could take too long for one row{engine and f' on {engine}'}:"
            " how long an answer takes must not depend on a row.\n"
            f"  found:  up to {worst / 1000:,.0f} µs; {MOST_COST / 1000:,.0f} are allowed\n"
            "  do:     shorten texts first, such as LOWER(LEFT(x, 100)), or ask less at a time"
        )
