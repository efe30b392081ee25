"""How a budget was spent: ε after each charge, and what an attacker can do now and after the whole budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sfumato.ledger import Amount, Ledger
from sfumato.ledger.hash_chain import Entry
from sfumato.ledger.state import read_amount
from sfumato.loss.base import PrivacyLoss

ALARMS = tuple(i / 40 for i in range(41))  # false alarm rates at which a curve is drawn
POINTS = 400  # charges drawn at most; those between are added up


@dataclass(frozen=True)
class Spending:
    """The course of some charges, and the trade-off curves of the ledger: all public to whoever sees the charges."""

    times: tuple[float, ...]  # seconds since 1970
    epsilons: tuple[float, ...]  # ε at the budget's δ of all charges up to each time: a reading
    charges: int
    alarms: tuple[float, ...]  # false alarm rates
    found_now: tuple[float, ...]  # the largest share of participants that is found at each, by all answers so far …
    found_whole: tuple[float, ...]  # … and by those of the whole budget


def spending_of(ledger: Ledger, lines: Sequence[Entry]) -> Spending:
    """The charges among these lines. Charges that were priced again later count as they were charged."""
    promise, total = ledger.promise, Amount()
    charges = [content for line in lines if (content := line.content).get("kind") == "charged"]
    every = -(-len(charges) // POINTS) or 1
    times, epsilons = [], []
    for number, content in enumerate(charges, 1):
        total += read_amount(content["cost"])
        if number % every == 0 or number == len(charges):
            times.append(float(str(content["time"])))
            epsilons.append(promise.epsilon_of(total, promise.delta))
    now, whole = found_by(ledger.meter().loss), found_by(promise.loss())
    return Spending(tuple(times), tuple(epsilons), len(charges), ALARMS, now, whole)


@lru_cache(maxsize=256)  # losses are immutable, and a page asks for those of the same ledger again and again
def found_by(loss: PrivacyLoss) -> tuple[float, ...]:
    """The largest share of participants that an attacker finds at each false alarm rate. Never too small."""
    return tuple(1 - loss.trade_off(alarm).lower for alarm in ALARMS)
