"""How a budget was spent: ε after each charge, and what an attacker can do now and after the whole budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from sfumato.ledger import Amount, Ledger
from sfumato.ledger.amounts import share_left
from sfumato.ledger.hash_chain import Entry
from sfumato.ledger.state import read_amount
from sfumato.loss.base import PrivacyLoss

ALARMS = tuple(i / 40 for i in range(41))  # false alarm rates at which a curve is drawn
POINTS = 400  # charges drawn at most; those between are added up
LISTED = 12  # people, and questions


@dataclass(frozen=True)
class Spending:
    """The course of some charges, and the trade-off curves of the ledger: all public to whoever sees the charges."""

    times: tuple[float, ...]  # seconds since 1970
    epsilons: tuple[float, ...]  # ε at the budget's δ of all charges up to each time: a reading
    charges: int
    alarms: tuple[float, ...]  # false alarm rates
    found_now: tuple[float, ...]  # the largest share of participants that is found at each, by all answers so far …
    found_whole: tuple[float, ...]  # … and by those of the whole budget
    by_person: tuple["Spender", ...] = ()  # the largest first
    by_question: tuple["Spender", ...] = ()
    right_now: float = 0.5  # how often the best guess whether somebody took part is right, by all answers so far …
    right_whole: float = 0.5  # … and by those of the whole budget


@dataclass(frozen=True)
class Spender:
    """What the charges of one person, or for one question, come to."""

    name: str
    charges: int
    epsilon: float  # a reading


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
    people, questions = (spenders(ledger, charges, name) for name in ("who", "question"))
    meter, budget = ledger.meter().loss, promise.loss()
    now, whole = found_by(meter), found_by(budget)
    return Spending(tuple(times), tuple(epsilons), len(charges), ALARMS, now, whole, people, questions,
                    right_by(meter), right_by(budget))  # fmt: skip


def spenders(ledger: Ledger, charges: Sequence[Mapping[str, object]], name: str) -> tuple[Spender, ...]:
    """These charges added up by one of their fields: the largest sums."""
    sums: dict[str, tuple[int, Amount]] = {}
    for content in charges:
        key = str(content.get(name, ""))
        count, total = sums.get(key, (0, Amount()))
        sums[key] = count + 1, total + read_amount(content["cost"])
    promise = ledger.promise
    largest = sorted(sums.items(), key=lambda one: max(one[1][1]), reverse=True)[:LISTED]
    found = [Spender(key, count, promise.epsilon_of(total, promise.delta)) for key, (count, total) in largest]
    return tuple(sorted(found, key=lambda one: one.epsilon, reverse=True))


@lru_cache(maxsize=256)  # losses are immutable, and a page asks for those of the same ledger again and again
def found_by(loss: PrivacyLoss) -> tuple[float, ...]:
    """The largest share of participants that an attacker finds at each false alarm rate. Never too small."""
    return tuple(1 - loss.trade_off(alarm).lower for alarm in ALARMS)


@lru_cache(maxsize=256)
def right_by(loss: PrivacyLoss) -> float:
    """How often the best guess is right when half of the candidates took part. Never too small."""
    return (1 + loss.delta(0.0).upper) / 2


def shares_left(ledger: Ledger, shares: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """The share of each person, and how much of it is left."""
    accounts = {who: ledger.account(who)[1:] for who in shares}
    return {who: (shares[who], share_left(*account)) for who, account in accounts.items()}


def own_lines(ledger: Ledger, who: str, start: int, most: int | None) -> list[Entry]:
    """At most so many lines about this person, of those from number `start` on."""
    return list(islice((line for line in ledger.history(start, None) if line.content.get("who") == who), most))
