"""The guard of a purchase: retries a failed read once, pads the response, and blocks a question that failed.

An error that depends on data is an answer. So whatever goes wrong after the charge ends in one fixed error, at a padded
moment, and the question is blocked: failing again would tell more each time.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

from sfumato.curator.response_padding import Response
from sfumato.errors import AnswerFailed, LedgerError
from sfumato.ledger import Ledger, Receipt

FAILED = "this question could not be answered. It stays charged; ask the operator, who can read why in the log."
log = logging.getLogger("sfumato.curator")  # what an engine says may hold private values
log.addHandler(logging.NullHandler())  # so it goes nowhere unless the operator says where
T = TypeVar("T")


@dataclass
class Guard:
    """Wraps everything between a charge and the moment at which its response is due."""

    ledger: Ledger
    receipt: Receipt
    response: Response
    began: float
    noise_drawn: bool = False  # a failure may then depend on the noise: the charge never runs again

    def __enter__(self) -> "Guard":
        return self

    def retry(self, read: Callable[[], T]) -> T:
        """Read data, with one retry: nobody saw the first result, and no noise was drawn."""
        try:
            found = read()
        except Exception:
            log.exception("charge %d: first run failed", self.receipt.seq)
            self.ledger.rerun(self.receipt)
            found = read()
        self.noise_drawn = True  # from here on it may be
        return found

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
