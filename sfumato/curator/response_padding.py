"""When an answer leaves: at a moment that tells next to nothing about how long it took to make."""

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

    Each doubling is one more thing to see: of work between q and 1,000·q seconds an onlooker learns one of eleven
    moments. Multiples of q would be a thousand.
    """

    quantum: float = 0.0
    clock: Clock = Clock()

    def due(self, taken: float) -> float:
        """The least q·2^k, k ≥ 0, that is not less than what it took."""
        if not self.quantum:
            return taken
        due = math.ldexp(self.quantum, max(0, math.frexp(taken / self.quantum)[1] - 1))
        return due if due >= taken else 2 * due

    def wait(self, since: float) -> None:
        """Until a response to what began then is due. Sleeping may end early, so it is looked again."""
        due = since + self.due(self.clock.now() - since) if self.quantum else 0.0
        while (left := due - self.clock.now()) > 0 and self.quantum:
            self.clock.sleep(left)
