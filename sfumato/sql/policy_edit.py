"""Edits of a policy's text that keep everything else as its owner wrote it, comments too.

An edit is made on the line where an entry is, and then checked: the new text is read again, and must say what the old
one says but for the edit. A text that is laid out in another way is left to its owner.
"""

import re
import tomllib
from collections.abc import Collection, Iterator

from sfumato.errors import PolicyError
from sfumato.sql.policy import Policy

HEADER = re.compile(r"\s*\[(?P<name>[^\[\]]+)\]\s*(#.*)?$")
LIMIT = re.compile(r"\s*(rows|groups)\s*=\s*[\d_]+\s*(#.*)?$")
LIMITS = frozenset({"rows", "groups"})
DROPPED = "# "  # a limit that is dropped stays as a comment


def without_limits(text: str) -> str:
    """The policy without `rows` and `groups`: contributions are then scaled to a norm that each question chooses."""
    lines = [
        DROPPED + line if len(section) == 2 and section[0] == "tables" and LIMIT.fullmatch(line.rstrip("\n")) else line
        for section, line in sections(text)
    ]
    found = "".join(lines)
    left = [name for name, table in tomllib.loads(found).get("tables", {}).items() if not LIMITS.isdisjoint(table)]
    if left:
        raise PolicyError(
            "this policy is laid out in a way that cannot be edited line by line.\n"
            f"  found:  rows or groups of {', '.join(left)} not on a line of their own under [tables.…]\n"
            "  do:     remove them by hand"
        )
    require_same_rest(text, found, LIMITS)
    return found


def with_column_bounds(text: str, table: str, column: str, low: float, high: float, comment: str) -> str:
    """The policy with these bounds of a column; what else the line says of it stays, and a comment says where they come
    from."""
    entry = re.compile(r"(?P<name>\s*(?:[\w-]+|\"[^\"]*\"|'[^']*')\s*=\s*)\{(?P<inside>[^{}]*)\}\s*(?P<said>#.*)?$")
    lines = []
    for section, line in sections(text):
        match = entry.fullmatch(line.rstrip("\n"))
        here = [part.lower() for part in section] == ["tables", table, "columns"]
        if here and match and key_path(match["name"].rpartition("=")[0])[-1].lower() == column:
            kept = [one.strip() for one in split_entries(match["inside"]) if not re.match(r"\s*(low|high)\s*=", one)]
            entries = ", ".join([*filter(None, kept), f"low = {low!r}", f"high = {high!r}"])
            line = f"{match['name']}{{{entries}}}  # {comment}\n"
        lines.append(line)
    found = "".join(lines)
    domain = Policy.read(found).tables[table].columns.get(column) if found != text else None
    if domain is None or (domain.low, domain.high) != (low, high):
        raise PolicyError(
            f"{table}.{column} is described in a way that cannot be edited line by line.\n"
            f'  found:  no line such as stay = {{type = "number"}} under [tables.{table}.columns]\n'
            f"  do:     write low = {low!r}, high = {high!r} by hand"
        )
    require_same_rest(text, found, ("low", "high"))
    return found


def require_same_rest(before: str, after: str, names: Collection[str]) -> None:
    """Raises unless both say the same but for entries of these names."""
    if entries(tomllib.loads(before), names) != entries(tomllib.loads(after), names):
        raise PolicyError("the policy cannot be edited line by line.\n  do:     edit it by hand")


def entries(data: object, names: Collection[str]) -> object:
    """All that a policy says, but for numbers under these names."""
    if not isinstance(data, dict):
        return data
    return {
        key: entries(value, names)
        for key, value in data.items()
        if key not in names or isinstance(value, dict)  # a column may have that name
    }


def sections(text: str) -> Iterator[tuple[list[str], str]]:
    """Each line with the path of the section that it is in."""
    path: list[str] = []
    for line in text.splitlines(keepends=True):
        if match := HEADER.fullmatch(line.rstrip("\n")):
            path = key_path(match["name"])
        yield path, line


def key_path(name: str) -> list[str]:
    """The parts of a dotted key, without quotes."""
    return [part.strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", name.strip())]


def split_entries(inside: str) -> list[str]:
    """The entries of an inline table: split at commas that are in no list and no text."""
    return re.findall(r"(?:\[[^\]]*\]|\"[^\"]*\"|'[^']*'|[^,\[\"'])+", inside)
