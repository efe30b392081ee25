"""Turns: one at a time for one question, among the threads and processes of one machine.

Who holds a turn holds a lock on one byte of a file beside the ledger. The operating system takes it back when the
process dies, however it dies, so that the next in line never waits for the dead. Turns are a courtesy: that nothing is
charged twice or answered in two ways is the ledger's doing, with or without them.
"""

import errno
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows: turns among threads only
    fcntl = None  # type: ignore[assignment]

TAKEN = (errno.EAGAIN, errno.EACCES)


@dataclass
class Held:
    """The turns that this process holds at one place, and the file that its locks are on."""

    file: int = -1
    names: set[int] = field(default_factory=set)


PLACES: dict[str, Held] = {}
LOCK = threading.Lock()


def take(place: Path | None, owner: object, name: int) -> bool:
    """Take the turn `name` (a number below 2^62) if nobody has it. Without a place, among the users of `owner` only."""
    with LOCK:
        key = str(place or id(owner))
        held = PLACES.setdefault(key, Held())
        if name in held.names or not (place is None or locked(held, place, name)):
            closed(held, key)
            return False
        held.names.add(name)
        return True


def give_back(place: Path | None, owner: object, name: int) -> None:
    with LOCK:
        key = str(place or id(owner))
        held = PLACES.get(key)
        if held is None:  # in a forked process: the turn is its parent's
            return
        held.names.discard(name)
        if held.file >= 0 and held.names:
            fcntl.lockf(held.file, fcntl.LOCK_UN, 1, name)
        closed(held, key)


def closed(held: Held, key: str) -> None:
    """Let go of the file if no turn is held. Closing it gives back all locks of this process, so not before."""
    if not held.names:
        if held.file >= 0:
            os.close(held.file)
        del PLACES[key]


def locked(held: Held, place: Path, name: int) -> bool:
    if fcntl is None:
        return True
    if held.file < 0:
        try:
            held.file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:  # no room, no permission: nobody waits then
            return True
    try:
        fcntl.lockf(held.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, name)
    except OSError as problem:
        return problem.errno not in TAKEN  # a file system without locks: the same
    return True


def in_child() -> None:
    """Locks are not inherited, and neither are turns."""
    global LOCK
    LOCK = threading.Lock()
    for held in PLACES.values():
        if held.file >= 0:
            os.close(held.file)
    PLACES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=in_child)
