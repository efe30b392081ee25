"""Locks by number on one machine, for the per-question lock: each is a lock on one byte of a file beside the ledger.

The operating system frees it when the process ends, however it ends, so nobody waits for a process that crashed. The
lock only saves work: with or without it, the ledger charges a question once and stores one answer.
"""

import errno
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows: locks between threads only
    fcntl = None  # type: ignore[assignment]

TAKEN = (errno.EAGAIN, errno.EACCES)


@dataclass
class HeldLocks:
    """The locks that this process holds in one file, and the file's descriptor."""

    file: int = -1
    names: set[int] = field(default_factory=set)


HELD: dict[str, HeldLocks] = {}  # by file, or by the owner of locks without a file
MUTEX = threading.Lock()


def try_lock(file: Path | None, owner: object, name: int) -> bool:
    """Take the lock `name` (a number below 2^62) if it is free. Without a file, among the users of `owner` only."""
    with MUTEX:
        key = str(file or id(owner))
        held = HELD.setdefault(key, HeldLocks())
        if name in held.names or not (file is None or lock_byte(held, file, name)):
            close_if_unused(held, key)
            return False
        held.names.add(name)
        return True


def unlock(file: Path | None, owner: object, name: int) -> None:
    with MUTEX:
        key = str(file or id(owner))
        held = HELD.get(key)
        if held is None:  # in a forked process: the lock is its parent's
            return
        held.names.discard(name)
        if held.file >= 0 and held.names:
            fcntl.lockf(held.file, fcntl.LOCK_UN, 1, name)
        close_if_unused(held, key)


def close_if_unused(held: HeldLocks, key: str) -> None:
    """Close the file once no lock is held. Not before: closing it frees all locks of this process on it."""
    if not held.names:
        if held.file >= 0:
            os.close(held.file)
        del HELD[key]


def lock_byte(held: HeldLocks, file: Path, name: int) -> bool:
    """Lock one byte of the file; False if another process holds it. Where the file system has no locks, succeed."""
    if fcntl is None:
        return True
    if held.file < 0:
        try:
            held.file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:  # no disk space, or no permission
            return True
    try:
        fcntl.lockf(held.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, name)
    except OSError as problem:
        return problem.errno not in TAKEN  # otherwise a file system without locks
    return True


def forget_in_child() -> None:
    """A forked child inherits no locks."""
    global MUTEX
    MUTEX = threading.Lock()
    for held in HELD.values():
        if held.file >= 0:
            os.close(held.file)
    HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_in_child)
