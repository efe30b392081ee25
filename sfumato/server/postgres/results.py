"""What a statement gave, with PostgreSQL's names for its columns, ready to be sent."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sfumato.curator.answer import Answer, Cell
from sfumato.errors import QueryRefused
from sfumato.server.postgres import messages, types
from sfumato.server.postgres.messages import ProtocolError
from sfumato.server.postgres.types import Type

Columns = list[tuple[str, Type]]


@dataclass
class Result:
    """What a statement gave, ready to be sent."""

    columns: Columns = field(default_factory=list)
    rows: Sequence[Sequence[Cell]] = ()
    tag: str = ""
    notices: tuple[str, ...] = ()
    sent: int = 0


@dataclass(frozen=True)
class Shape:
    """What an answer will look like: the columns of the SELECT, and behind them all their intervals.

    Programs read by position, and some take the first columns for those that they asked for.
    """

    selected: tuple[tuple[str, Type], ...]
    with_interval: tuple[bool, ...]
    shown: bool = True  # intervals

    @property
    def columns(self) -> Columns:
        ends = [
            (f"{name}_{end}", types.FLOAT8)
            for (name, _), has in zip(self.selected, self.with_interval, strict=True)
            for end in ("low", "high")
            if has and self.shown
        ]
        return [*self.selected, *ends]

    def places(self, names: Sequence[str]) -> list[int]:
        """Where each of `columns` stands in an answer with these names; −1 for an interval that is missing.

        By position: PostgreSQL calls both COUNT(*) and COUNT(DISTINCT x) count, and one was shown for both.
        """
        found = list(groups(names))
        if len(found) != len(self.selected):
            raise QueryRefused("the policy changed in between.\n  do:     ask again; what was charged is stored")
        ends = [
            first + end if complete else -1
            for (first, complete), has in zip(found, self.with_interval, strict=True)
            for end in (1, 2)
            if has and self.shown
        ]
        return [first for first, _ in found] + ends


def groups(names: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Each column of an answer that was asked for: its place, and whether its interval follows."""
    place = 0
    while place < len(names):
        name = names[place]
        complete = tuple(names[place + 1 : place + 3]) == (f"{name} low", f"{name} high")
        yield place, complete
        place += 3 if complete else 1


def asked(shape: Shape, answer: Answer) -> Result:
    """An answer in the columns that were described; an interval that is missing is NULL."""
    places = shape.places(answer.columns)
    rows = [tuple(row[place] if place >= 0 else None for place in places) for row in answer.rows]
    return Result(shape.columns, rows, f"SELECT {len(rows)}", tuple(filter(None, [answer.footer, answer.note])))


def postgres_name(name: str) -> str:
    """A column without an alias as PostgreSQL would call it: COUNT(*) is count."""
    found = re.fullmatch(r"(\w+)\(.*\)", name, re.S)
    return found.group(1).lower() if found else name


def spread(formats: Sequence[int], count: int) -> list[int]:
    """A format for each: none means text, one means all."""
    if any(one not in (0, 1) for one in formats) or len(formats) not in (0, 1, count):
        raise ProtocolError("formats that do not fit")
    return list(formats) if len(formats) == count else (list(formats) or [0]) * count


def describe_row(columns: Columns, formats: Sequence[int]) -> bytes:
    return messages.row_description([(name, kind.oid, kind.size) for name, kind in columns], formats)


def notices(result: Result) -> bytes:
    return b"".join(messages.report(b"N", "NOTICE", "00000", words) for words in result.notices)
