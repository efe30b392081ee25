"""Say what is going on when it takes longer than two seconds, so that nobody wonders."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds


@contextmanager
def patience(what: str) -> Iterator[None]:
    """A line on the error output once it takes long, and how long it took."""
    started = time.monotonic()
    said = threading.Event()

    def speak() -> None:
        said.set()
        print(f"… {what} …", end="", file=sys.stderr, flush=True)

    timer = threading.Timer(PATIENCE, speak)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if said.is_set():
            print(f" {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
