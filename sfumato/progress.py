"""A progress message on standard error for work that takes longer than two seconds."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import ParamSpec, TypeVar

PATIENCE = 2.0  # seconds before the message appears
P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Task:
    """Work under way, and its message once there is one."""

    what: str | None = None  # None if a message is under way
    message: ExitStack = field(default_factory=ExitStack)


CURRENT: ContextVar[Task | None] = ContextVar("task", default=None)


def with_progress(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that is nearly always quick: a message is prepared only when `may_take_long` is called inside it.

    A message takes a thread, which would take as long as a quick answer does.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            if CURRENT.get() is not None:
                return function(*args, **kwargs)
            task = Task(what)
            token = CURRENT.set(task)
            try:
                with task.message:
                    return function(*args, **kwargs)
            finally:
                CURRENT.reset(token)

        return run

    return decorate


def may_take_long() -> None:
    """Say that the work under way may take long: from now on, a message appears after two seconds."""
    task = CURRENT.get()
    if task is not None and task.what is not None:
        what, task.what = task.what, None
        task.message.enter_context(show_progress(what))


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
    token = CURRENT.set(Task())  # one message at a time
    try:
        yield
    finally:
        CURRENT.reset(token)
        done.set()
        printer.join()
        if printed.is_set():
            again = f"\r… {what} …" if sys.stderr.isatty() else ""
            print(f"{again} {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
