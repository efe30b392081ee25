"""The guard of a purchase: pads the response, and blocks a question that failed after its charge.

An error that depends on data is an answer. So whatever goes wrong after the charge ends in one fixed error, at a padded
moment, and the question is blocked: failing again would tell more each time. Answers and failures leave at public
moments (response padding), so timing reveals next to nothing.
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from types import TracebackType

from sfumato.errors import AnswerFailed, LedgerError
from sfumato.ledger import Ledger, Receipt


@dataclass(frozen=True)
class Clock:
    """Time, and waiting for it to pass; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    today: Callable[[], date] = lambda: datetime.now(UTC).date()


@dataclass(frozen=True)
class ResponsePadding:
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


FAILED = "this question could not be answered. It stays charged; ask the operator, who can read why in the log."
log = logging.getLogger("sfumato.curator")  # what an engine says may hold private values
log.addHandler(logging.NullHandler())  # so it goes nowhere unless the operator says where


@dataclass
class Guard:
    """Wraps everything between a charge and the moment at which its response is due."""

    ledger: Ledger
    receipt: Receipt
    response: ResponsePadding
    began: float
    noise_drawn: bool = False  # a failure may then depend on the noise: the charge never runs again

    def __enter__(self) -> "Guard":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is not None and not isinstance(problem, Exception):
            return  # Ctrl-C: nothing is blocked, and the charge stays
        if problem is not None:
            log.error("charge %d failed", self.receipt.seq, exc_info=problem)
        self.response.wait(self.began)
        if problem is not None:
            self.block()
            raise AnswerFailed(FAILED) from None

    def block(self) -> None:
        try:
            self.ledger.block(self.receipt, drawn=self.noise_drawn)
        except LedgerError:
            log.exception("charge %d failed, and could not be blocked", self.receipt.seq)
