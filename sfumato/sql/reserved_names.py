"""Reserved names: what emitted SQL calls its own tables and columns. A policy cannot use them.

An engine resolves a bare name in all tables that a statement reads, including the owner's. If one of our aliases were
also a column of the owner's, our condition could bind to the owner's values, and bound nothing. Therefore:

- every alias, CTE and lambda variable is made by `ours`, whose prefix `Policy.read` refuses for tables and columns;
- references to columns name their table as well (`of`), for columns that a database has and its policy does not name.

The same holds for columns of UNION ALL, which are named by a hash of what stands in them (`label`).
"""

import re
from collections.abc import Iterable

from sqlglot import exp

PREFIX = "_sf_"
LABEL = re.compile(r"c[0-9a-f]{32}x*")  # a column of UNION ALL


def ours(name: str) -> str:
    """A reserved name, which no policy can use."""
    return f"{PREFIX}{name}"


def is_reserved(name: str) -> bool:
    """May only emitted SQL use this name? Engines ignore case."""
    return name.lower().startswith(PREFIX) or LABEL.fullmatch(name.lower()) is not None


def folds_everywhere(name: str) -> bool:
    """Is its lower case the same name to every engine? They fold A to a; Ä to ä, some do."""
    return all(sign == sign.lower() or sign.isascii() for sign in name)


# tables and sub-selects
ROWS, PAIRS, RANKED, CHOSEN, KEPT = ours("rows"), ours("pairs"), ours("ranked"), ours("chosen"), ours("kept")
STORED, OWNERS, ABOVE = ours("stored"), ours("owners"), ours("above")  # rows of a table, and whose they are
LEAST, CUTS = ours("least"), ours("cuts")
NORMS, SCALED, WEIGHTED = ours("norms"), ours("scaled"), ours("weighted")  # scaling of contributions
VALUES, READ, NUMBERED, HASHED, COUNTED, NEAR = (
    ours(name) for name in ("values", "read", "numbered", "hashed", "counted", "near")
)
EDGES, ENDS, FIRST, SECOND, OPEN, CLOSED = (
    ours(name) for name in ("edges", "ends", "first", "second", "open", "closed")
)
BETWEEN, EACH, STEPS, SIZES = (ours(name) for name in ("between", "each", "steps", "sizes"))

# columns
UNIT, HASH, PLACE, ONE, KEY, HASHES, CUT = (
    ours(name) for name in ("unit", "hash", "place", "one", "key", "hashes", "cut")
)
GIVEN, VALUE, COPY, COUNT, UP_TO, ALL, SUM, SUM_UP_TO = (
    ours(name) for name in ("given", "value", "copy", "count", "up_to", "all", "sum", "sum_up_to")
)
DAY, MANY = ours("day"), ours("many")
A, B, LIST, BIN, WEIGHT = ours("a"), ours("b"), ours("list"), ours("bin"), ours("weight")


def key(place: int) -> str:
    return ours(f"k{place}")


def measure(place: int) -> str:
    return ours(f"m{place}")


def norm(place: int) -> str:
    """The norm of a unit's contributions to block number `place`, or its square."""
    return ours(f"q{place}")


def weight(place: int) -> str:
    return ours(f"w{place}")


def table_alias(place: int) -> str:
    """Alias of the table number `place` of a plan, which lineages call t0, t1, …"""
    return ours(f"t{place}")


def qualify(rows: str, columns: Iterable[str]) -> list[str]:
    """Our columns, each qualified with its table."""
    return [f"{rows}.{column}" for column in columns]


def column(origin: str) -> exp.Column:
    """A column of the owner's by its lineage: "t0.stay" is "stay" of the table that we call t0."""
    alias, name = origin.split(".", 1)
    return exp.column(name, table=ours(alias), quoted=True)
