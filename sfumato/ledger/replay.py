"""The state of a ledger, made anew from its lines: what verification compares the tables with."""

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from sfumato.errors import InvalidParameter, LedgerDamaged
from sfumato.ledger.amounts import Amount
from sfumato.ledger.entries import START, Entry, chained, digest, whole
from sfumato.ledger.shares import PLAN, REST, Shares

T = TypeVar("T")


@dataclass
class State:
    """What the lines up to `seq` say."""

    seq: int = 0
    hash: str = START
    version: int = 1
    accounts: dict[str, tuple[Amount, Amount]] = field(default_factory=dict)
    requests: dict[tuple[str, str], int] = field(default_factory=dict)
    answers: dict[int, tuple[int, str, int]] = field(default_factory=dict)  # charge → (line, asked(question), version)
    costs: dict[int, tuple[str, Amount]] = field(default_factory=dict)  # charge → (account, cost)
    reruns: set[int] = field(default_factory=set)  # charges that may not run again
    blocks: dict[int, tuple[int, str]] = field(default_factory=dict)  # charge → (line, asked(question))
    spoilt: set[int] = field(default_factory=set)  # charges that failed when noise was drawn already
    origins: dict[str, str] = field(default_factory=dict)  # plan → the account that it was reserved from

    def follow(self, entry: Entry) -> None:
        """One line more. Raises `LedgerDamaged` where the line does not follow."""
        if entry.seq != self.seq + 1:
            raise damaged(self.seq + 1, f"the next line is number {entry.seq}")
        if entry.hash != chained(self.hash, entry.seq, entry.text, entry.answer):
            raise damaged(entry.seq, "its hash does not fit its content and the line before")
        try:
            self.apply(entry)
        except (KeyError, TypeError, ValueError, json.JSONDecodeError, InvalidParameter) as problem:
            raise damaged(entry.seq, "it makes no sense after the lines before") from problem
        self.seq, self.hash = entry.seq, entry.hash

    def apply(self, entry: Entry) -> None:
        content = entry.content
        match content["kind"]:
            case "opened" | "renewed":
                self.grow(REST, amount(content["amount"]))
            case "charged":
                account, cost = str(content["account"]), amount(content["cost"])
                limit, spent = self.accounts[account]
                if not cost.within(limit - spent):
                    raise ValueError("overspent")
                self.accounts[account] = limit, spent + cost
                self.costs[entry.seq] = account, cost
                self.requests[once(self.requests, (str(content["who"]), str(content["key"])))] = entry.seq
            case "answered":
                charge = once(self.answers, whole(content["charge"]))
                _ = self.costs[charge]
                self.answers[charge] = entry.seq, asked(str(content["question"])), whole(content["version"])
            case "rerun":
                charge = once(self.reruns, whole(content["charge"]))
                _ = self.costs[charge]
                self.reruns.add(charge)
            case "blocked":
                charge = whole(content["charge"])
                _ = self.costs[charge]
                self.blocks[charge] = entry.seq, asked(str(content["question"]))
                if content["drawn"]:
                    self.spoilt.add(charge)
            case "unblocked":
                question = asked(str(content["question"]))
                freed = {c for c, (_, blocked) in self.blocks.items() if blocked == question}
                if not freed or content["again"] != sorted(freed - self.spoilt):
                    raise ValueError("not blocked")
                self.reruns = self.reruns - freed | (freed & self.spoilt)
                self.blocks = {c: block for c, block in self.blocks.items() if c not in freed}
            case "moved":
                source, moved = str(content["from"]), amount(content["amount"])
                limit, spent = self.accounts[source]
                if not moved.within(limit - spent):
                    raise ValueError("moved more than there was")
                self.accounts[source] = limit - moved, spent
                self.grow(str(content["to"]), moved)
                if str(content["to"]).startswith(PLAN):
                    self.origins.setdefault(str(content["to"]), source)
            case "shares":
                self.share(shared(content), {name: amount(units) for name, units in mapping(content["limits"]).items()})
            case "repriced":
                charge, cost = whole(content["charge"]), amount(content["cost"])
                account, before = self.costs[charge]
                limit, spent = self.accounts[account]
                self.accounts[account] = limit, spent - (before - cost)
                self.costs[charge] = account, cost
            case "version":
                self.version = whole(content["number"])
            case _:
                raise ValueError("unknown kind")

    def grow(self, name: str, more: Amount) -> None:
        limit, spent = self.accounts.get(name, (Amount(), Amount()))
        self.accounts[name] = limit + more, spent

    def share(self, shares: Shares, limits: dict[str, Amount]) -> None:
        """Accounts under new names, and with new limits that sum to what there was."""
        spent = {shares.renamed(name): used for name, (_, used) in self.accounts.items()}
        kept = {name: limit for name, (limit, _) in self.accounts.items() if name.startswith(PLAN)}
        new = {name: (limit, spent.pop(name, Amount())) for name, limit in {**kept, **limits}.items()}
        whole = sum((limit for limit, _ in new.values()), Amount())
        known = len({shares.renamed(name) for name in self.accounts}) == len(self.accounts)
        if spent or not known or kept.keys() & limits.keys() or whole != self.limit:
            raise ValueError("shares that are not parts of the whole")
        if not all(used.within(limit) for limit, used in new.values()):
            raise ValueError("overspent")
        self.accounts = new
        self.costs = {seq: (shares.renamed(name), cost) for seq, (name, cost) in self.costs.items()}

    @property
    def limit(self) -> Amount:
        """All accounts together."""
        return sum((limit for limit, _ in self.accounts.values()), Amount())

    @property
    def spent(self) -> Amount:
        return sum((spent for _, spent in self.accounts.values()), Amount())


def replayed(entries: Iterable[Entry]) -> State:
    state = State()
    for entry in entries:
        state.follow(entry)
    return state


def asked(question: str) -> str:
    """How a question is looked up: its hash, since a text may be too long for an index."""
    return digest(question.encode()).hex()


def once(known: Container[T], new: T) -> T:
    if new in known:
        raise ValueError("twice")
    return new


def shared(content: dict[str, object]) -> Shares:
    """The shares that a line sets."""
    others = content["others"]
    if not isinstance(others, bool | float | int):
        raise TypeError("not a share")
    return Shares(mapping(content["shares"]), others)  # type: ignore[arg-type]  # it checks what it is given


def mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("not a table")
    return value


def amount(value: object) -> Amount:
    if not isinstance(value, list):
        raise TypeError("not an amount")
    return Amount(*value)


def damaged(seq: int, why: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"this ledger is not what it was.\n  found:  line {seq}: {why}\n"
        "  do:     restore the newest copy that verifies; do not answer from this one"
    )
