"""LIKE: which patterns are allowed, what they cost in an engine, and how released values are matched in linear time.

DuckDB matches a pattern without `_` part by part, from left to right. A pattern with `_` is tried at every position for
each `%`, in nested loops: two `%` take time quadratic in the length of the text. Such a pattern is refused.
"""

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.functions.costs import COMPARE, Argument
from sfumato.sql.functions.function import Function, constant_text, emit_binary
from sfumato.sql.functions.result_domains import truth_domain

LONGEST_PATTERN = 200  # characters
MOST_PERCENTS = 10  # signs %
STEP, BYTES_PER_CHARACTER = 4.0, 4  # nanoseconds to compare two bytes, and the bytes of a character at most
POSTGRES_STEP = 3.0  # the same on PostgreSQL


def check_pattern(text: Argument, pattern: Argument) -> None:
    """Refuses a pattern that is not a constant of the question (in lower case, of ILIKE), or is slow to match."""
    if getattr(pattern, "value", "") is None:
        return
    constant = constant_text(getattr(pattern, "arguments", (pattern,))[0])
    if constant is None or getattr(pattern, "name", "lower") != "lower":
        raise QueryRefused(
            "LIKE takes a pattern in quotes.\n  found:  a pattern that is computed in each row\n"
            "  do:     if y is to be found as it is: CONTAINS(x, y), STARTS_WITH(x, y) or ENDS_WITH(x, y)"
        )
    if problem := pattern_problem(constant):
        raise QueryRefused(
            f"this pattern of LIKE could take long to match.\n  found:  {problem}\n  do:     write a shorter one"
        )


def pattern_problem(pattern: str) -> str | None:
    """The reason why this pattern is not allowed; None if it is allowed."""
    if len(pattern) > LONGEST_PATTERN:
        return f"a pattern of {len(pattern):,} characters; {LONGEST_PATTERN} are allowed"
    if pattern.count("%") > MOST_PERCENTS:
        return f"{pattern.count('%')} signs %; {MOST_PERCENTS} are allowed"
    if "_" in pattern and count_searches(pattern) > 1:
        return "_ in a pattern with more than one % before its end"
    return None


def count_searches(pattern: str) -> int:
    """How often the text is searched for the next part: once for each % that does not end the pattern."""
    return len([part for part in pattern.split("%")[1:] if part])


def pattern_of(argument: Argument) -> str:
    """The pattern of LIKE, or of ILIKE, in lower case; the worst pattern if the argument is not a constant."""
    match getattr(argument, "arguments", (argument,))[0].domain.keys:
        case (str() as pattern,):
            return pattern
    return "%" + "_" * LONGEST_PATTERN


def like_cost(text: Argument, pattern: Argument) -> float:
    sought, longest = pattern_of(pattern), text.domain.longest
    if "_" in sought and count_searches(sought):
        return 100 + STEP * BYTES_PER_CHARACTER * longest * len(sought.encode())
    return 100 + longest * (20 + COMPARE * len(sought))


def postgres_cost(text: Argument, pattern: Argument) -> float:
    """At each character, all that follows a % may have to be compared."""
    sought, longest = pattern_of(pattern), text.domain.longest
    return 200 + longest * (10 + POSTGRES_STEP * (len(sought.encode()) if count_searches(sought) else 0))


# ---- of released values ---------------------------------------------------------------------------------------------


def like(text: str, pattern: str) -> bool:
    """The first part must begin the text, the last must end it, and each part between is matched as early as possible:
    a later match would leave less for the rest. One pass over the text."""
    first, *rest = pattern.split("%")
    if not rest:
        return len(text) == len(pattern) and matches_start(text, pattern)
    *middle, last = rest
    if len(text) < len(first) + len(last) or not (
        matches_start(text, first) and matches_start(text[len(text) - len(last) :], last)
    ):
        return False
    place, end = len(first), len(text) - len(last)
    for part in filter(None, middle):
        place = end_of_match(text, part, place, end)
        if place < 0:
            return False
    return True


def matches_start(text: str, part: str) -> bool:
    """Does the text begin with this, `_` being any character?"""
    return all(sign in ("_", found) for sign, found in zip(part, text, strict=False))


def end_of_match(text: str, part: str, start: int, end: int) -> int:
    """Where the first match of a part in text[start:end] ends; −1 if there is none.

    Bit j of `open_` says that part[:j + 1] ends here [Baeza-Yates & Gonnet 1992, shift-and].
    """
    any_ = sum(1 << j for j, sign in enumerate(part) if sign == "_")
    allowed = dict.fromkeys(part, any_)
    for j, sign in enumerate(part):
        allowed[sign] |= 1 << j
    open_, whole = 0, 1 << (len(part) - 1)
    for place in range(start, end):
        open_ = (open_ << 1 | 1) & allowed.get(text[place], any_)
        if open_ & whole:
            return place + 1
    return -1


BACKSLASH = "'\\\\'"  # as Spark writes it in quotes
FUNCTIONS: dict[str, Function] = {
    "like": Function(
        (Kind.TEXT, Kind.TEXT),
        truth_domain,
        emit_binary(exp.Like),
        like,
        check=check_pattern,
        cost=like_cost,
        cost_in={"postgres": postgres_cost},
        sql_in={
            "postgres": lambda a, b: f"(({a}) LIKE ({b}) ESCAPE '')",
            "spark": lambda a, b: f"({a} LIKE REPLACE({b}, {BACKSLASH}, {BACKSLASH[:-1]}{BACKSLASH[1:]}))",
        },
        constants=(
            (f"%{'a' * (LONGEST_PATTERN - 3)}b%",),
            (f"%_{'a' * 40}b%",),
            (f"%_{'😀' * 20}b%",),
            (f"%{'_' * 40}b",),
            ("%a" * 9 + "%b",),
            (f"%{'😀' * 90}b%",),
        ),
    ),
}
