"""Say what is going on when it takes longer than two seconds, so that nobody wonders."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds


@contextmanager
def patience(what: str) -> Iterator[None]:
    """A line on the error output once it takes long, and how long it took; on a terminal the seconds are counted."""
    started = time.monotonic()
    done = threading.Event()
    said = threading.Event()

    def speak() -> None:
        if done.wait(PATIENCE):
            return
        said.set()
        print(f"… {what} …", end="", file=sys.stderr, flush=True)
        while sys.stderr.isatty() and not done.wait(1.0):
            print(f"\r… {what} … {time.monotonic() - started:.0f} s", end="", file=sys.stderr, flush=True)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        done.set()
        speaker.join()
        if said.is_set():
            again = f"\r… {what} …" if sys.stderr.isatty() else ""
            print(f"{again} {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
