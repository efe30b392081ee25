"""Ways of asking that are no SQL of the engine: EXPLAIN PRIVACY, SELECT WITH DIFFERENTIAL_PRIVACY, a relative error."""

import re
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot.errors import SqlglotError

from sfumato.errors import QueryRefused
from sfumato.sql.parse.text import LONGEST, has_too_many_words

EXPLAIN = re.compile(r"\s*EXPLAIN\s+PRIVACY\b", re.IGNORECASE)
OPTIONS = re.compile(r"\s*SELECT\s+WITH\s+DIFFERENTIAL_PRIVACY\b(?:\s+OPTIONS\s*\(([^()]*)\))?", re.IGNORECASE)
NUMBER = re.compile(r"\d{1,10}(?:\.\d{0,10})?(?:[eE]-?\d{1,2})?")
RELATIVE = re.compile(r"\bWITH\s+RELATIVE\s+ERROR\s+(\d{1,3}(?:\.\d{1,10})?)\s*(?:%|PERCENT)\Z", re.IGNORECASE)
LONGEST_CLAUSE = 80
ELSEWHERE = "the policy says it, for everybody"


@dataclass(frozen=True)
class DpSyntax:
    """The plain SELECT, the ε and the relative error that the text itself names, whose unit it takes for granted, and
    is it only explained?"""

    text: str
    epsilon: float | None = None
    unit: str | None = None
    explained: bool = False
    relative_error: float | None = None


def parse_dp_syntax(text: str) -> DpSyntax:
    """A text as the reader takes it."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return DpSyntax(text)  # the reader refuses it
    explain = EXPLAIN.match(text)
    rest, share = split_relative_error(text[explain.end() :] if explain else text)
    options = OPTIONS.match(rest)
    if options is None:
        return DpSyntax(rest, explained=explain is not None, relative_error=share)
    epsilon, unit = None, None
    for name, value in parse_options(options[1] or ""):
        match name:
            case "epsilon" if NUMBER.fullmatch(value) and epsilon is None:
                epsilon = float(value)
            case "privacy_unit_column" if value.isidentifier() and unit is None:
                unit = value.lower()
            case "delta" | "max_groups_contributed" | "max_rows_contributed" | "min_privacy_units_per_group":
                raise QueryRefused(
                    f"OPTIONS: {name} is not a matter of the question.\n  do:     leave it out: {ELSEWHERE}"
                )
            case _:
                raise QueryRefused(
                    f"OPTIONS: {name[:40]} is not understood.\n  do:     epsilon = 0.5, or privacy_unit_column = unit"
                )
    return DpSyntax(f"SELECT{rest[options.end() :]}", epsilon, unit, explain is not None, share)


@lru_cache(maxsize=16)  # a question is looked at more than once on its way
def split_relative_error(text: str) -> tuple[str, float | None]:
    """… WITH RELATIVE ERROR 5 %, at the end, if it is not a comment: what stands before it, and the share.

    Tokens are told apart only if the last few words look like it, and there are not too many in all.
    """
    whole = text.rstrip().rstrip(";").rstrip()
    found = RELATIVE.search(whole[-LONGEST_CLAUSE:])
    if found is None or has_too_many_words(whole):  # if it is, the reader refuses it
        return text, None
    try:
        last = sqlglot.tokenize(whole, read="duckdb")[-5:]
    except SqlglotError:
        return text, None  # the reader refuses it
    if [token.text.upper() for token in last[:3]] != ["WITH", "RELATIVE", "ERROR"]:
        return text, None
    return whole[: len(whole) - len(found[0])], float(found[1]) / 100


def parse_options(text: str) -> list[tuple[str, str]]:
    """name = value, name = value."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        found.append((name.strip().lower(), value.strip()))
    return found
