"""Work that can be stopped: by Ctrl-C, and when it takes too long."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
AGAIN = 0.05  # seconds until a request to stop is repeated: it may have come before there was anything to stop


def attended(work: Callable[[], T], stop: Callable[[], None], seconds: float | None = None) -> T:
    """What `work` gives, done in a thread of its own; `stop` ends it early on Ctrl-C, or after that many seconds.

    An engine that handles Ctrl-C itself, in the thread that called it, then waits for its other threads, and nobody has
    told those. So the thread that Python sends Ctrl-C to only waits, and tells the engine.
    """
    found: list[T] = []
    failed: list[BaseException] = []
    unwanted, done = threading.Event(), threading.Event()

    def go() -> None:
        try:
            if not unwanted.is_set():
                found.append(work())
        except BaseException as problem:
            failed.append(problem)
        finally:
            done.set()

    worker = threading.Thread(target=go, name="sfumato engine", daemon=True)
    try:
        worker.start()
        late = not done.wait(seconds)
    except BaseException:  # Ctrl-C
        unwanted.set()
        end(worker, done, stop)
        raise
    if late:
        end(worker, done, stop)
        raise TimeoutError(f"stopped after {seconds:g} s")
    if failed:
        raise failed[0]
    return found[0]


def end(worker: threading.Thread, done: threading.Event, stop: Callable[[], None]) -> None:
    """Ask it to stop until it has."""
    while worker.is_alive() and not done.is_set():
        with suppress(Exception):  # it may just have ended by itself
            stop()
        done.wait(AGAIN)
