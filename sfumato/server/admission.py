"""How much one person may ask of a service at a time: public numbers, so that a refusal tells nothing about data."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sfumato.errors import TooManyRequests

REMEMBERED = 10_000  # people, or sources of failed attempts
SLOWEST = 5.0  # seconds that a failed attempt waits at most
LONG = 4096  # characters of a text that count as one more call
FIRST = 0.05  # seconds that the first failed attempt waits


@dataclass
class Bucket:
    """A token bucket: `left` calls now, and more with time; and how many run."""

    left: float
    seen: float
    running: int = 0


@dataclass(eq=False)
class Admission:
    """At most `concurrent` calls of one person at a time, and `rate` a second, of which `burst` may come at once.

    A long text counts as several calls, since reading it takes as long as several.
    """

    concurrent: int = 16
    rate: float = 50.0
    burst: int = 100
    now: Callable[[], float] = field(default=time.monotonic, repr=False)
    _buckets: OrderedDict[str, Bucket] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @contextmanager
    def enter(self, who: str, text: str = "") -> Iterator[None]:
        """Around one call about this text. Raises TooManyRequests, with how long to wait."""
        bucket = self._take(who, min(self.burst, 1 + len(text) // LONG))
        try:
            yield
        finally:
            with self._lock:
                bucket.running -= 1

    def _take(self, who: str, calls: int) -> Bucket:
        with self._lock:
            now = self.now()
            bucket = self._buckets.setdefault(who, Bucket(self.burst, now))
            self._buckets.move_to_end(who)
            bucket.left = min(self.burst, bucket.left + (now - bucket.seen) * self.rate)
            bucket.seen = now
            if bucket.running >= self.concurrent:
                raise refusal(f"{self.concurrent} calls at a time", 1.0)
            if bucket.left < calls:
                raise refusal(f"{self.rate:g} calls a second", (calls - bucket.left) / self.rate)
            bucket.left, bucket.running = bucket.left - calls, bucket.running + 1
            if len(self._buckets) > REMEMBERED and not next(iter(self._buckets.values())).running:
                self._buckets.popitem(last=False)
            return bucket


@dataclass(eq=False)
class FailedAttempts:
    """Failed attempts to log in, by source: each waits twice as long as the one before. A right token never waits."""

    now: Callable[[], float] = field(default=time.monotonic, repr=False)
    _failed: OrderedDict[str, tuple[int, float]] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def delay(self, source: str) -> float:
        """Count one more failure, and tell how many seconds its reply must wait. A quiet minute is forgiven."""
        with self._lock:
            now = self.now()
            count, last = self._failed.get(source, (0, now))
            count = 1 if now - last > 60 else count + 1
            self._failed[source] = count, now
            self._failed.move_to_end(source)
            if len(self._failed) > REMEMBERED:
                self._failed.popitem(last=False)
            return float(min(SLOWEST, FIRST * 2 ** min(count - 1, 20)))


def refusal(limit: str, after: float) -> TooManyRequests:
    return TooManyRequests(
        f"too many requests.\n  found:  more than {limit}\n  do:     wait a moment; nothing was charged", after
    )
