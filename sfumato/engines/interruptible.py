"""Work that can be interrupted: by Ctrl-C, and by a time limit."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
RETRY = 0.05  # seconds until a request to stop is repeated: the first may have come before the work began


def run_interruptible(work: Callable[[], T], stop: Callable[[], None], seconds: float | None = None) -> T:
    """The result of `work`, run in a thread of its own; `stop` ends it early on Ctrl-C or after `seconds`.

    An engine that handles Ctrl-C in the thread that called it waits for its other threads, which do not know of it. So
    the main thread, which gets Ctrl-C, only waits, and tells the engine to stop.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    cancelled, done = threading.Event(), threading.Event()

    def go() -> None:
        try:
            if not cancelled.is_set():
                results.append(work())
        except BaseException as problem:
            errors.append(problem)
        finally:
            done.set()

    worker = threading.Thread(target=go, name="sfumato engine", daemon=True)
    try:
        worker.start()
        late = not done.wait(seconds)
    except BaseException:  # Ctrl-C
        cancelled.set()
        stop_worker(worker, done, stop)
        raise
    if late:
        stop_worker(worker, done, stop)
        raise TimeoutError(f"stopped after {seconds:g} s")
    if errors:
        raise errors[0]
    return results[0]


def stop_worker(worker: threading.Thread, done: threading.Event, stop: Callable[[], None]) -> None:
    """Ask the work to stop until it has ended."""
    while worker.is_alive() and not done.is_set():
        with suppress(Exception):  # the work may have just ended by itself
            stop()
        done.wait(RETRY)
