"""A pool of draws made ahead in blocks of public size, so that the time of a draw does not reveal its value."""

import threading
from dataclasses import dataclass, field

from sfumato.checks import whole
from sfumato.noise.entropy import PROCESS
from sfumato.noise.sampler import Sampler

NUMBER = PROCESS.number
# Draws wait lifted by so much, as integers of one length: CPython keeps those from −5 to 256 at hand, and finds them
# sooner. One of its digits has 30 bits; what a table holds decides, which is public.
LIFT, LONG_LIFT = 1 << 29, 1 << 64


@dataclass(slots=True, eq=False)
class Pool:
    """Draws of a sampler, made `size` at a time.

    How long a block takes depends on the values in it, so call `ready(n)` once n, a public number, is known and before
    data are read: the next n draws are then as quick as each other. A pool is empty in a forked child, in a copy and
    after pickling, so that no draw is handed out twice; draws never return to it. Each block has a key of its own, so
    that of two machines restored from one snapshot only the block at hand is the same.
    """

    sampler: Sampler
    size: int = 4096
    _block: list[int] = field(init=False, repr=False, default_factory=list)
    _number: int = field(init=False, repr=False, default=0)
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)
    _lift: int = field(init=False, repr=False, default=LONG_LIFT)

    def __post_init__(self) -> None:
        self.size = whole("size", self.size, 1, 1 << 24)
        table = self.sampler.table
        if max(map(abs, table.base)) + (1 << table.bits) < LIFT >> 2:
            self._lift = LIFT
        self._number = PROCESS.current()

    def __reduce__(self) -> tuple[type["Pool"], tuple[Sampler, int]]:
        return Pool, (self.sampler, self.size)

    def take(self) -> int:
        """The next draw, an integer of any size."""
        if self._number == NUMBER[0]:  # the same process as when the block was drawn
            try:
                return self._block.pop() - self._lift  # one step, also between threads
            except IndexError:
                pass
        self.ready(1)
        return self.take()

    def about(self, value: int) -> int:
        """value + the next draw, which is never by itself a small integer: Python would be quicker with those."""
        lifted = value - self._lift
        if self._number == NUMBER[0]:
            try:
                return lifted + self._block.pop()
            except IndexError:
                pass
        self.ready(1)
        return self.about(value)

    def reaches(self, bound: int, value: int) -> bool:
        """Is value + the next draw at least this? The sum, which nobody is shown, is no small integer either."""
        if self._number == NUMBER[0]:
            try:
                return value + self._block.pop() >= bound + self._lift
            except IndexError:
                pass
        self.ready(1)
        return self.reaches(bound, value)

    def ready(self, count: int) -> None:
        """Make sure that the next `count` draws wait here, drawing whole blocks."""
        if self._number != PROCESS.current():  # in a forked child, still alone
            self._lock = threading.Lock()  # another thread of the parent may have held it
        with self._lock:
            if self._number != PROCESS.current():
                self._block, self._number = [], PROCESS.current()
            missing = whole("count", count, 0, 1 << 24) - len(self._block)
            if missing > 0:
                self.sampler.source.renew()
                draws, beyond = self.sampler.draw_with_beyond(self.size * -(-missing // self.size))
                fresh = [draw + self._lift for draw in draws.tolist()]
                for place, draw in beyond.items():
                    fresh[place] = draw + self._lift
                fresh.reverse()
                self._block[:0] = fresh  # taken from the end: older draws first
