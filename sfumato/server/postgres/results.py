"""What a statement gave, with PostgreSQL's names for its columns, ready to be sent."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sfumato.curator.answer import Answer, Cell
from sfumato.server.postgres import messages
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


def asked(columns: Columns, answer: Answer) -> Result:
    """An answer in the columns that were described: by name, as an interval that is missing is NULL."""
    by_name = {postgres_name(name): place for place, name in reversed(list(enumerate(answer.columns)))}
    places = [by_name.get(name, -1) for name, _ in columns]
    rows = [tuple(row[place] if place >= 0 else None for place in places) for row in answer.rows]
    return Result(columns, rows, f"SELECT {len(rows)}", tuple(filter(None, [answer.footer, answer.note])))


def postgres_name(name: str) -> str:
    """A column of an answer as PostgreSQL would call it: COUNT(*) is count, and its interval count_low, count_high."""
    base, end = name, ""
    if name.endswith((" low", " high")):
        base, _, end = name.rpartition(" ")
        end = f"_{end}"
    found = re.fullmatch(r"(\w+)\(.*\)", base, re.S)
    return (found.group(1).lower() if found else base) + end


def spread(formats: Sequence[int], count: int) -> list[int]:
    """A format for each: none means text, one means all."""
    if any(one not in (0, 1) for one in formats) or len(formats) not in (0, 1, count):
        raise ProtocolError("formats that do not fit")
    return list(formats) if len(formats) == count else (list(formats) or [0]) * count


def describe_row(columns: Columns, formats: Sequence[int]) -> bytes:
    return messages.row_description([(name, kind.oid, kind.size) for name, kind in columns], formats)


def notices(result: Result) -> bytes:
    return b"".join(messages.report(b"N", "NOTICE", "00000", words) for words in result.notices)
