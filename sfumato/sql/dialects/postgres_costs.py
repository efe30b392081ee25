"""What functions take in one row at most on PostgreSQL, where that is more than their tables state.

`make bench-cost OPTIONS="--engine postgres"` measures each at its worst input; what stands here is about twice as much.
"""

from sfumato.sql.dialects.postgres_letters import case_cost
from sfumato.sql.domains import Kind
from sfumato.sql.functions.costs import Argument, Cost, each, per_character
from sfumato.sql.functions.patterns import BYTES, pattern_of, searches

STEP, SEEK = 3.0, 0.8  # nanoseconds to compare two bytes: LIKE, and STRPOS and REPLACE, do it one by one
NUMBERS = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
TYPES = {  # of columns that are not read through their words
    Kind.NUMBER: NUMBERS | {"boolean"},
    Kind.TRUTH: NUMBERS | {"boolean"},
    Kind.DATE: frozenset({"date", "timestamp without time zone"}),
}
READ_TEXT, READ_OTHER = 12_000, 2_000  # nanoseconds for a column
READ_DECIMAL = 60_000  # a number of 16,383 decimal places
READ_SHORT = 10_000  # through words of 35 characters
READ_WORDS = {Kind.NUMBER: 100_000, Kind.TRUTH: 30_000, Kind.DATE: 250_000}  # that is another kind in words


def like_cost(text: Argument, pattern: Argument) -> float:
    """From each character on, all of what follows a % may have to be compared."""
    sought, longest = pattern_of(pattern), text.domain.longest
    return 200 + longest * (10 + STEP * (len(sought.encode()) if searches(sought) else 0))


def search_cost(text: Argument, sought: Argument, *rest: Argument) -> float:
    """From each character on, all that is sought may have to be compared, from its end [Horspool 1980]."""
    longest = text.domain.longest
    short = min(sought.domain.longest, longest // 2)
    return 200 + longest * 20 + SEEK * (longest - short) * min(most_bytes(sought), short * BYTES)


def most_bytes(text: Argument) -> int:
    match text.domain.keys:
        case (str() as word,):
            return len(word.encode())
    return text.domain.longest * BYTES


COSTS: dict[str, Cost] = {
    **dict.fromkeys(["=", "<", "<=", "in", "is null", "case", "coalesce", "and", "or", "not"], each(100)),
    **dict.fromkeys(["+", "-"], each(500)),
    **dict.fromkeys(["*", "/", "round"], each(1_000)),
    **dict.fromkeys(["magnitude", "round to", "width_bucket"], each(4_000)),
    "mod": each(100_000),
    "like": like_cost,
    **dict.fromkeys(["lower", "upper"], case_cost),
    **dict.fromkeys(["trim", "ltrim", "rtrim"], per_character(120)),
    **dict.fromkeys(["substr", "starts_with", "ends_with", "||", "length"], per_character(20)),
    **dict.fromkeys(["contains", "replace"], search_cost),
    "number": per_character(100),
    **dict.fromkeys(["date", "timestamp"], per_character(250)),
    "text": each(2_000),
    **dict.fromkeys(["year", "month", "day", "hour", "weekday"], each(1_000)),
    **dict.fromkeys([f"start of {unit}" for unit in ("year", "month", "day")], each(1_000)),
}
