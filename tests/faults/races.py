"""Races: many concurrent charges to one budget, and many with one idempotency key."""

import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Ledger
from sfumato.ledger.amounts import UNITS
from sfumato.ledger.shares import COMMON
from sfumato.loss.base import PrivacyLoss


def race(
    opened: Callable[[], Ledger], step: PrivacyLoss, *, processes: int, threads: int, seconds: float = 240.0
) -> list[int]:
    """Everyone charges `step` until the budget is used up; the line numbers of all charges that succeeded.

    Each of the forked processes opens the ledger for itself, and its threads share that.
    """
    pipes = []
    for number in range(processes):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(reading)
                found = run(opened(), step, f"process {number}", threads, seconds)
                with os.fdopen(writing, "w") as out:
                    out.write(" ".join(map(str, found)))
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(writing)
        pipes.append((child, reading))
    seqs: list[int] = []
    for child, reading in pipes:
        with os.fdopen(reading) as told:
            seqs += map(int, told.read().split())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return seqs


def run(ledger: Ledger, step: PrivacyLoss, name: str, threads: int, seconds: float = 240.0) -> list[int]:
    """The same in one process."""
    end = time.monotonic() + seconds

    def one(number: int) -> list[int]:
        seqs = []
        while time.monotonic() < end:
            try:
                seqs.append(ledger.charge(step, question="q", who=f"{name}, thread {number}").seq)
            except BudgetExceeded:
                break
        return seqs

    with ThreadPoolExecutor(threads) as pool:
        return [seq for part in pool.map(one, range(threads)) for seq in part]


def exactly_spent(ledger: Ledger, step: PrivacyLoss, done: Sequence[int]) -> None:
    """As many charges succeeded as the budget holds, each recorded once, and not one more."""
    state = ledger.verify()
    (price,) = ledger.prices(step)
    limit, spent = state.accounts[COMMON]
    (name,) = [n for n, units in zip(UNITS, price, strict=True) if units]
    fits = getattr(limit, name) // getattr(price, name)
    assert sorted(done) == sorted(state.costs)
    assert len(done) == fits
    assert getattr(spent, name) == fits * getattr(price, name) <= getattr(limit, name)


def storm(ledgers: Sequence[Ledger], loss: PrivacyLoss, times: int) -> list[bytes]:
    """The same key many times in parallel. Who is first draws and keeps; the others wait for the answer."""
    together = threading.Barrier(times)

    def one(number: int) -> bytes:
        ledger = ledgers[number % len(ledgers)]
        together.wait()
        for _ in range(600):
            receipt = ledger.charge(loss, question="q", key="the same")
            if receipt.first:
                return ledger.keep(receipt, os.urandom(16))
            if receipt.answer is not None:
                return receipt.answer
            time.sleep(0.02)
        raise AssertionError("never answered")

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(one, range(times)))
