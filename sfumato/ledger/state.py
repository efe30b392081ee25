"""The state of a ledger, rebuilt from its lines, and verification, which compares tables and anchor with it."""

import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable
from sfumato.ledger import tables
from sfumato.ledger.amounts import Amount
from sfumato.ledger.hash_chain import START, Anchor, Entry, NoAnchor, chain_hash, question_hash, require_int
from sfumato.ledger.shares import COMMON, PLAN, Shares
from sfumato.ledger.store import Store, Transaction

T = TypeVar("T")


@dataclass
class State:
    """Accounts, requests, answers and blocks after line `seq`."""

    seq: int = 0
    hash: str = START
    version: int = 1
    accounts: dict[str, tuple[Amount, Amount]] = field(default_factory=dict)
    requests: dict[tuple[str, str], int] = field(default_factory=dict)
    answers: dict[int, tuple[int, str, int]] = field(default_factory=dict)  # charge → (line, question hash, version)
    costs: dict[int, tuple[str, Amount]] = field(default_factory=dict)  # charge → (account, cost)
    reruns: set[int] = field(default_factory=set)  # charges that may not run again
    blocks: dict[int, tuple[int, str]] = field(default_factory=dict)  # charge → (line, question hash)
    drawn: set[int] = field(default_factory=set)  # charges that failed after noise was drawn
    origins: dict[str, str] = field(default_factory=dict)  # plan → the account it was reserved from

    def follow(self, entry: Entry) -> None:
        """Apply the next line. Raises `LedgerDamaged` if it does not follow from the lines before."""
        if entry.seq != self.seq + 1:
            raise damage_error(self.seq + 1, f"the next line is number {entry.seq}")
        if entry.hash != chain_hash(self.hash, entry.seq, entry.text, entry.answer):
            raise damage_error(entry.seq, "its hash does not match its content and the line before")
        try:
            self.apply(entry)
        except (KeyError, TypeError, ValueError, json.JSONDecodeError, InvalidParameter) as problem:
            raise damage_error(entry.seq, "it contradicts the lines before it") from problem
        self.seq, self.hash = entry.seq, entry.hash

    def apply(self, entry: Entry) -> None:
        content = entry.content
        match content["kind"]:
            case "opened" | "renewed":
                self.raise_limit(COMMON, read_amount(content["amount"]))
            case "charged":
                account, cost = str(content["account"]), read_amount(content["cost"])
                limit, spent = self.accounts[account]
                if not cost.within(limit - spent):
                    raise ValueError("overspent")
                self.accounts[account] = limit, spent + cost
                self.costs[entry.seq] = account, cost
                self.requests[require_new(self.requests, (str(content["who"]), str(content["key"])))] = entry.seq
            case "answered":
                charge = require_new(self.answers, require_int(content["charge"]))
                _ = self.costs[charge]
                question = question_hash(str(content["question"]))
                self.answers[charge] = entry.seq, question, require_int(content["version"])
            case "rerun":
                charge = require_new(self.reruns, require_int(content["charge"]))
                _ = self.costs[charge]
                self.reruns.add(charge)
            case "blocked":
                charge = require_int(content["charge"])
                _ = self.costs[charge]
                self.blocks[charge] = entry.seq, question_hash(str(content["question"]))
                if content["drawn"]:
                    self.drawn.add(charge)
            case "unblocked":
                question = question_hash(str(content["question"]))
                freed = {c for c, (_, blocked) in self.blocks.items() if blocked == question}
                if not freed or content["again"] != sorted(freed - self.drawn):
                    raise ValueError("not blocked")
                self.reruns = self.reruns - freed | (freed & self.drawn)
                self.blocks = {c: block for c, block in self.blocks.items() if c not in freed}
            case "moved":
                source, moved = str(content["from"]), read_amount(content["amount"])
                limit, spent = self.accounts[source]
                if not moved.within(limit - spent):
                    raise ValueError("moved more than there was")
                self.accounts[source] = limit - moved, spent
                self.raise_limit(str(content["to"]), moved)
                if str(content["to"]).startswith(PLAN):
                    self.origins.setdefault(str(content["to"]), source)
            case "shares":
                limits = {name: read_amount(units) for name, units in read_mapping(content["limits"]).items()}
                self.share(read_shares(content), limits)
            case "repriced":
                charge, cost = require_int(content["charge"]), read_amount(content["cost"])
                account, before = self.costs[charge]
                limit, spent = self.accounts[account]
                self.accounts[account] = limit, spent - (before - cost)
                self.costs[charge] = account, cost
            case "version":
                self.version = require_int(content["number"])
            case _:
                raise ValueError("unknown kind")

    def raise_limit(self, name: str, more: Amount) -> None:
        limit, spent = self.accounts.get(name, (Amount(), Amount()))
        self.accounts[name] = limit + more, spent

    def share(self, shares: Shares, limits: dict[str, Amount]) -> None:
        """Rename accounts, and give them new limits with the same sum."""
        spent = {shares.rename(name): used for name, (_, used) in self.accounts.items()}
        kept = {name: limit for name, (limit, _) in self.accounts.items() if name.startswith(PLAN)}
        new = {name: (limit, spent.pop(name, Amount())) for name, limit in {**kept, **limits}.items()}
        total = sum((limit for limit, _ in new.values()), Amount())
        distinct = len({shares.rename(name) for name in self.accounts}) == len(self.accounts)
        if spent or not distinct or kept.keys() & limits.keys() or total != self.limit:
            raise ValueError("the shares do not sum to the whole")
        if not all(used.within(limit) for limit, used in new.values()):
            raise ValueError("overspent")
        self.accounts = new
        self.costs = {seq: (shares.rename(name), cost) for seq, (name, cost) in self.costs.items()}

    @property
    def limit(self) -> Amount:
        """The sum of the limits of all accounts."""
        return sum((limit for limit, _ in self.accounts.values()), Amount())

    @property
    def spent(self) -> Amount:
        return sum((spent for _, spent in self.accounts.values()), Amount())


def replay_entries(entries: Iterable[Entry]) -> State:
    state = State()
    for entry in entries:
        state.follow(entry)
    return state


def require_new(known: Container[T], new: T) -> T:
    if new in known:
        raise ValueError("twice")
    return new


def read_shares(content: dict[str, object]) -> Shares:
    """The shares that a line of kind "shares" sets."""
    others = content["others"]
    if not isinstance(others, bool | float | int):
        raise TypeError("not a share")
    return Shares(read_mapping(content["shares"]), others)  # type: ignore[arg-type]  # Shares checks its values


def read_mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("not a table")
    return value


def read_amount(value: object) -> Amount:
    if not isinstance(value, list):
        raise TypeError("not an amount")
    return Amount(*value)


def damage_error(seq: int, why: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"this ledger was changed, or is an old copy.\n  found:  line {seq}: {why}\n"
        "  do:     restore the newest copy that verifies; do not answer from this one"
    )


# ---- verification ---------------------------------------------------------------------------------------------------


def verify(store: Store, anchor: Anchor) -> tuple[State, Entry]:
    """The state after all lines, and the first line. Raises `LedgerDamaged` if anything disagrees."""
    marks = list(anchor.marks())  # read before the lines: another process may append meanwhile
    state = State()
    with store.reading() as transaction:
        try:
            require_schema(transaction)
            first = replay_lines(state, transaction, marks)
            compare_tables(state, transaction)
        except (TypeError, ValueError, InvalidParameter) as problem:  # values of types that are never stored
            raise damage_error(state.seq + 1, "the tables hold values that no ledger writes") from problem
    if not marks and state.seq > 1 and not isinstance(anchor, NoAnchor):
        raise damage_error(state.seq, "the anchor is empty or missing, so later lines may have been cut off")
    return state, first


def require_schema(transaction: Transaction) -> None:
    ((row, schema),) = transaction.run("SELECT id, schema FROM head")  # exactly one row, not the first of several
    if row != 1:
        raise ValueError("the head has another row")
    if schema != tables.SCHEMA:
        raise LedgerUnavailable(
            f"another version of sfumato made this ledger.\n  found:  schema {schema}, not {tables.SCHEMA}\n"
            "  do:     use that version; nothing was changed"
        )


def replay_lines(state: State, transaction: Transaction, marks: list[tuple[int, str]]) -> Entry:
    """Apply all lines to `state`, and compare them with the marks of the anchor; the first line."""
    first: Entry | None = None
    hashes: dict[int, str] = {}
    watched = {seq for seq, _ in marks}
    for entry in tables.entries(transaction):
        state.follow(entry)
        first = first or entry
        if entry.seq in watched:
            hashes[entry.seq] = entry.hash
    if first is None:
        raise damage_error(1, "there are no lines")
    for seq, hash_ in marks:
        if hashes.get(seq) != hash_:
            why = "the anchor has it, but the ledger ends before" if seq > state.seq else "the anchor has another hash"
            raise damage_error(seq, why)
    return first


def compare_tables(state: State, transaction: Transaction) -> None:
    for name, replayed, stored in (
        ("head", (state.seq, state.hash, state.version), tables.head(transaction)),
        ("accounts", state.accounts, tables.accounts(transaction)),
        ("requests", state.requests, dict(requests(transaction))),
        ("answers", state.answers, dict(answers(transaction))),
        ("blocks", state.blocks, dict(blocks(transaction))),
    ):
        if replayed != stored:
            raise damage_error(state.seq, f"the table of {name} disagrees with the lines")


def requests(transaction: Transaction) -> Iterator[tuple[tuple[str, str], int]]:
    for who, key, seq in transaction.run("SELECT who, key, seq FROM requests"):
        yield (str(who), str(key)), require_int(seq)


def answers(transaction: Transaction) -> Iterator[tuple[int, tuple[int, str, int]]]:
    for charge, seq, question, version in transaction.run("SELECT charge, seq, question, version FROM answers"):
        yield require_int(charge), (require_int(seq), str(question), require_int(version))


def blocks(transaction: Transaction) -> Iterator[tuple[int, tuple[int, str]]]:
    for charge, seq, question in transaction.run("SELECT charge, seq, question FROM blocks"):
        yield require_int(charge), (require_int(seq), str(question))
