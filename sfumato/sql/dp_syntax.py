"""Privacy syntax that no engine knows: EXPLAIN PRIVACY, SELECT WITH DIFFERENTIAL_PRIVACY, ERROR, EVERY DAY."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

import sqlglot
from sqlglot.errors import SqlglotError

from sfumato.errors import QueryRefused
from sfumato.sql.parse.text import LONGEST, has_too_many_words
from sfumato.sql.question_bounds import AS_STATED, QuestionBounds

EXPLAIN = re.compile(r"\s*EXPLAIN\s+PRIVACY\b", re.IGNORECASE)
OPTIONS = re.compile(r"\s*SELECT\s+WITH\s+DIFFERENTIAL_PRIVACY\b(?:\s+OPTIONS\s*\(([^()]*)\))?", re.IGNORECASE)
NUMBER = re.compile(r"\d{1,10}(?:\.\d{0,10})?(?:[eE]-?\d{1,2})?")
WHOLE = re.compile(r"\d{1,9}")
RELATIVE = re.compile(r"\bWITH\s+RELATIVE\s+ERROR\s+(\d{1,3}(?:\.\d{1,10})?)\s*(?:%|PERCENT)\Z", re.IGNORECASE)
EVERY_DAY = re.compile(
    r"\bEVERY\s+DAY\s+OF\s+([A-Za-z_]\w{0,62})\s+FROM\s+'(\d{4}-\d{2}-\d{2})'\s+FOR\s+(\d{1,5})\s+DAYS?\Z",
    re.IGNORECASE,
)
LONGEST_CLAUSE = 160
MOST_DAYS = 10_000
ELSEWHERE = "it is the same for all questions"


@dataclass(frozen=True)
class EveryDay:
    """A count is published at the end of each day of a column of dates, for so many days from the first one."""

    day: str
    first: date
    days: int


@dataclass(frozen=True)
class DpSyntax:
    """A question without its privacy syntax: the plain SELECT, and the ε, privacy unit and relative error that the text
    names. `explained`: it asks for a preview only."""

    text: str
    epsilon: float | None = None
    unit: str | None = None
    explained: bool = False
    relative_error: float | None = None
    bounds: QuestionBounds = AS_STATED
    every_day: EveryDay | None = None
    delta: float | None = None


@lru_cache(maxsize=16)  # one question is parsed several times
def parse_dp_syntax(text: str) -> DpSyntax:
    """Split the privacy syntax from a question."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return DpSyntax(text)  # the parser refuses it
    explain = EXPLAIN.match(text)
    rest, every_day = split_every_day(text[explain.end() :] if explain else text)
    rest, share = split_relative_error(rest)
    options = OPTIONS.match(rest)
    if options is None:
        return DpSyntax(rest, explained=explain is not None, relative_error=share, every_day=every_day)
    epsilon, delta, unit, bounds = None, None, None, dict[str, int]()
    for name, value in parse_options(options[1] or ""):
        match name:
            case "epsilon" if NUMBER.fullmatch(value) and epsilon is None:
                epsilon = float(value)
            case "delta" if NUMBER.fullmatch(value) and delta is None and 0 < float(value) < 1:
                delta = float(value)
            case "privacy_unit_column" if value.isidentifier() and unit is None:
                unit = value.lower()
            case "rows" | "groups" | "most" if WHOLE.fullmatch(value) and name not in bounds:
                bounds[name] = int(value)
            case "max_groups_contributed" | "max_rows_contributed":
                raise QueryRefused(
                    f"OPTIONS: {name} has another name here.\n"
                    "  do:     leave it out, or rows = 3, groups = 2: 3 rows of a unit in each of 2 groups at most"
                )
            case "min_privacy_units_per_group":
                raise QueryRefused(
                    f"OPTIONS: {name} is set by the policy, not by a question.\n  do:     leave it out: {ELSEWHERE}"
                )
            case _:
                raise QueryRefused(
                    f"OPTIONS: {name[:40]} is not understood.\n"
                    "  do:     epsilon = 0.5, privacy_unit_column = unit, or tighter bounds: rows = 3, groups = 2"
                )
    text = f"SELECT{rest[options.end() :]}"
    return DpSyntax(text, epsilon, unit, explain is not None, share, QuestionBounds(**bounds), every_day, delta)


def split_relative_error(text: str) -> tuple[str, float | None]:
    """Split `… WITH RELATIVE ERROR 5 %` from the end of a question: the text before it, and the error as a fraction."""
    rest, found = split_clause(text, RELATIVE, 5, ["WITH", "RELATIVE", "ERROR"])
    return rest, None if found is None else float(found[1]) / 100


@lru_cache(maxsize=16)
def split_every_day(text: str) -> tuple[str, EveryDay | None]:
    """Split `… EVERY DAY OF day FROM '2026-01-01' FOR 365 DAYS` from the end of a question."""
    rest, found = split_clause(text, EVERY_DAY, 9, ["EVERY", "DAY", "OF"])
    if found is None:
        return text, None
    try:
        first, days = date.fromisoformat(found[2]), int(found[3])
        _ = first + timedelta(days=days)
    except (ValueError, OverflowError):
        raise QueryRefused(
            f"EVERY DAY needs a first day.\n  found:  {found[2]}\n  do:     write such as FROM '2026-01-01'"
        ) from None
    if not 1 <= days <= MOST_DAYS:
        raise QueryRefused(
            f"EVERY DAY is for 1 to {MOST_DAYS:,} days.\n  found:  {days:,}\n  do:     write such as FOR 365 DAYS"
        )
    return rest, EveryDay(found[1].lower(), first, days)


def split_clause(text: str, clause: re.Pattern[str], words: int, first: list[str]) -> tuple[str, re.Match[str] | None]:
    """Split a clause of so many tokens, that begins with these, from the end of a question: the text before it.

    The text is tokenised, to rule out comments, only if its end looks like this clause and it has few words.
    """
    whole = text.rstrip().rstrip(";").rstrip()
    found = clause.search(whole[-LONGEST_CLAUSE:])
    if found is None or has_too_many_words(whole):  # the parser refuses a text with too many words
        return text, None
    try:
        last = sqlglot.tokenize(whole, read="duckdb")[-words:]
    except SqlglotError:
        return text, None  # the parser refuses it
    if [token.text.upper() for token in last[: len(first)]] != first:
        return text, None
    return whole[: len(whole) - len(found[0])], found


def parse_options(text: str) -> list[tuple[str, str]]:
    """(name, value) of each option in `name = value, name = value`."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        found.append((name.strip().lower(), value.strip()))
    return found
