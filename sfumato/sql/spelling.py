"""Two ways of asking that are not SQL of the engine: EXPLAIN PRIVACY, and SELECT WITH DIFFERENTIAL_PRIVACY."""

import re
from dataclasses import dataclass

from sfumato.errors import QueryRefused
from sfumato.sql.limits import LONGEST

EXPLAIN = re.compile(r"\s*EXPLAIN\s+PRIVACY\b", re.IGNORECASE)
OPTIONS = re.compile(r"\s*SELECT\s+WITH\s+DIFFERENTIAL_PRIVACY\b(?:\s+OPTIONS\s*\(([^()]*)\))?", re.IGNORECASE)
NUMBER = re.compile(r"\d{1,10}(?:\.\d{0,10})?(?:[eE]-?\d{1,2})?")
ELSEWHERE = "the policy says it, for everybody"


@dataclass(frozen=True)
class Spelled:
    """The plain SELECT, the ε that the text itself names, whose unit it takes for granted, and is it only explained?"""

    text: str
    epsilon: float | None = None
    unit: str | None = None
    explained: bool = False


def spelled(text: str) -> Spelled:
    """A text as the reader takes it."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return Spelled(text)  # the reader refuses it
    explain = EXPLAIN.match(text)
    rest = text[explain.end() :] if explain else text
    options = OPTIONS.match(rest)
    if options is None:
        return Spelled(rest, explained=explain is not None)
    epsilon, unit = None, None
    for name, value in listed(options[1] or ""):
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
    return Spelled(f"SELECT{rest[options.end() :]}", epsilon, unit, explain is not None)


def listed(text: str) -> list[tuple[str, str]]:
    """name = value, name = value."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        found.append((name.strip().lower(), value.strip()))
    return found
