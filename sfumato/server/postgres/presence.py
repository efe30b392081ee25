"""Somebody at the PostgreSQL door: what all of their connections share, and how much the door keeps for them."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from sfumato.errors import TooManyRequests
from sfumato.server.postgres.results import Result

MOST_UNREAD = 64 << 20  # bytes of results that one person has asked for and not read
CELL = 64  # bytes of a cell, besides the characters of a text


class Connection(Protocol):
    """What is unread of one connection."""

    def unread(self) -> int:
        """Bytes of results that wait in it."""


@dataclass(eq=False)
class Presence:
    """Somebody with open connections, and the lock under which their texts are read."""

    open: set[Connection] = field(default_factory=set)
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def require_room(self, result: Result) -> None:
        """Raises if results that this person leaves unread would take too much memory with this one."""
        if size_of(result) + sum(one.unread() for one in self.open) > MOST_UNREAD:
            raise TooManyRequests(
                "too many results are open.\n"
                f"  found:  more than {MOST_UNREAD >> 20} MiB that were asked for and not read\n"
                "  do:     read them to their end, or close portals and cursors; what was charged is stored",
                1.0,
            )


def size_of(result: Result) -> int:
    """About how many bytes of memory the rows of a result take."""
    if not result.rows:
        return 0
    texts = sum(len(cell) for row in result.rows for cell in row if isinstance(cell, str))
    return CELL * len(result.rows) * (1 + len(result.columns)) + texts
