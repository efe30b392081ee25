"""Threads in which the acts of a service run: a bounded number, and a bounded number of calls that wait for them."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from sfumato.errors import TooManyRequests

P = ParamSpec("P")
T = TypeVar("T")

QUICK = 16  # threads for calls that are no questions


class CallThreads:
    """Questions, which may take long, have threads of their own: everything else must not wait for them."""

    def __init__(self, threads: int, waiting: int) -> None:
        self.most = threads + waiting
        self._long = ThreadPoolExecutor(threads, "sfumato ask")
        self._quick = ThreadPoolExecutor(QUICK, "sfumato call")
        self._open = 0  # calls that run or wait
        self._lock = threading.Lock()

    def submit(self, long: bool, act: Callable[P, T], *args: P.args, **named: P.kwargs) -> "Future[T]":
        """Run this as soon as a thread is free. Raises TooManyRequests if too many wait."""
        with self._lock:
            if self._open >= self.most:
                raise TooManyRequests("the service is busy.\n  do:     try again in a moment", 1.0)
            self._open += 1
        future = (self._long if long else self._quick).submit(partial(act, *args, **named))
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        with self._lock:
            self._open -= 1

    def idle(self) -> bool:
        """Has every call ended?"""
        with self._lock:
            return not self._open

    def close(self) -> None:
        """Forget calls that wait; those under way go on, and nobody waits for them."""
        for threads in (self._long, self._quick):
            threads.shutdown(wait=False, cancel_futures=True)
