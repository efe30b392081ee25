"""A piece of work as plain data, so that each side can translate it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One line of the table: the peer must take `ratio` times as long as we do, our relative gap be at most `gap`."""

    item: str
    work: str
    job: str  # the name of a function in each of the sides/*.py
    arguments: dict[str, object] = field(repr=False)
    peer: str | None = None
    ratio: float | None = None
    gap: float | None = None
    most_ms: float | None = None  # a bar on our own time
    never_above_peer: bool = False  # our upper side must not exceed the peer's
    per: int = 1  # times are divided by this: how often the work is done in one call
    long: bool = False  # only run when asked for
