"""A progress message on standard error for work that takes longer than two seconds."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds before the message appears


@contextmanager
def show_progress(what: str) -> Iterator[None]:
    """Print what is being done once it takes long, and at the end how long it took; a terminal shows the seconds."""
    started = time.monotonic()
    done = threading.Event()
    printed = threading.Event()

    def print_message() -> None:
        if done.wait(PATIENCE):
            return
        printed.set()
        print(f"… {what} …", end="", file=sys.stderr, flush=True)
        while sys.stderr.isatty() and not done.wait(1.0):
            print(f"\r… {what} … {time.monotonic() - started:.0f} s", end="", file=sys.stderr, flush=True)

    printer = threading.Thread(target=print_message, daemon=True)
    printer.start()
    try:
        yield
    finally:
        done.set()
        printer.join()
        if printed.is_set():
            again = f"\r… {what} …" if sys.stderr.isatty() else ""
            print(f"{again} {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
