"""Response padding: answers and failures leave at public moments, so timing reveals next to nothing."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """Time, and waiting for it to pass; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Response:
    """Answers, and failures, leave 1, 2, 4, 8, … quanta after they were charged for; without a quantum, at once.

    An observer of work between q and 1,000·q seconds sees one of eleven moments. Multiples of q would be a thousand.
    """

    quantum: float = 0.0
    clock: Clock = Clock()

    def due(self, taken: float) -> float:
        """The least q·2^k, k ≥ 0, that is not less than the time taken."""
        if not self.quantum:
            return taken
        due = math.ldexp(self.quantum, max(0, math.frexp(taken / self.quantum)[1] - 1))
        return due if due >= taken else 2 * due

    def wait(self, since: float) -> None:
        """Wait until the response to work that began then is due. Sleep may end early, so the clock is read again."""
        due = since + self.due(self.clock.now() - since) if self.quantum else 0.0
        while (left := due - self.clock.now()) > 0 and self.quantum:
            self.clock.sleep(left)
