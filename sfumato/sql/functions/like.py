"""Patterns of LIKE: which are allowed, what they cost in an engine, and how released values are matched in linear time.

DuckDB matches a pattern without `_` part by part, from left to right. One that has `_` it tries at every place for each
`%`, one inside the other: two of them take the square of a text's length. So that is refused, from the text alone.
"""

from sfumato.sql.functions.costs import COMPARE, Argument

LONGEST_PATTERN = 200  # characters
MOST_PERCENTS = 10  # signs %
STEP, BYTES = 4.0, 4  # nanoseconds to compare two bytes, and the bytes of a character at most


def pattern_problem(pattern: str) -> str | None:
    """Why this pattern is not allowed; None if it is."""
    if len(pattern) > LONGEST_PATTERN:
        return f"a pattern of {len(pattern):,} characters; {LONGEST_PATTERN} are allowed"
    if pattern.count("%") > MOST_PERCENTS:
        return f"{pattern.count('%')} signs %; {MOST_PERCENTS} are allowed"
    if "_" in pattern and searches(pattern) > 1:
        return "_ in a pattern with more than one % before its end"
    return None


def searches(pattern: str) -> int:
    """How often a text is searched for what comes next: once for each % that does not end the pattern."""
    return len([part for part in pattern.split("%")[1:] if part])


def pattern_of(argument: Argument) -> str:
    """The pattern of LIKE, also in lower case, of ILIKE; of anything else the worst there is."""
    match getattr(argument, "arguments", (argument,))[0].domain.keys:
        case (str() as pattern,):
            return pattern
    return "%" + "_" * LONGEST_PATTERN


def like_cost(text: Argument, pattern: Argument) -> float:
    sought, longest = pattern_of(pattern), text.domain.longest
    if "_" in sought and searches(sought):
        return 100 + STEP * BYTES * longest * len(sought.encode())
    return 100 + longest * (20 + COMPARE * len(sought))


# ---- of released values ---------------------------------------------------------------------------------------------


def like(text: str, pattern: str) -> bool:
    """The first part begins the text, the last one ends it, and each between is found as early as it can be: a later
    place would leave less for the rest. One pass over the text."""
    first, *rest = pattern.split("%")
    if not rest:
        return len(text) == len(pattern) and fits(text, pattern)
    *middle, last = rest
    if len(text) < len(first) + len(last) or not (fits(text, first) and fits(text[len(text) - len(last) :], last)):
        return False
    place, end = len(first), len(text) - len(last)
    for part in filter(None, middle):
        place = end_of_match(text, part, place, end)
        if place < 0:
            return False
    return True


def fits(text: str, part: str) -> bool:
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
