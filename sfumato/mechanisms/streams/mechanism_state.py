"""The state of a mechanism between answers, which cannot be copied."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from sfumato.errors import OneOfAKind
from sfumato.noise.entropy import PROCESS


class Session:
    """Secret noise and the number of answers left. A copy would answer with the same noise, or twice as often.

    So it cannot be copied or pickled, and in a forked child it does not answer. Threads take turns.
    """

    def __init__(self) -> None:
        self._process, self._lock = PROCESS.current(), threading.Lock()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise OneOfAKind(
            f"a {type(self).__name__} cannot be copied or pickled: both would answer, and only one is paid for.\n"
            "  do:     keep it where it is, and send its answers"
        )

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Exclusive use, in the process where the session began."""
        if self._process != PROCESS.current():
            raise OneOfAKind(
                f"this {type(self).__name__} began in another process, where it may go on answering.\n"
                "  found:  a forked child\n  do:     ask the process that began it, or begin and pay for a new one"
            )
        with self._lock:
            yield
