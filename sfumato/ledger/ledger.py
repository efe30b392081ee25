"""A privacy budget that survives crashes, races and clever people.

Charge durably, then look at data; store durably, then answer. Nothing is refunded that data could have decided.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from sfumato.errors import (
    AlreadyRun,
    CommitUnknown,
    InvalidParameter,
    KeyReused,
    LedgerUnavailable,
    PolicyError,
)
from sfumato.ledger import blocks, tables
from sfumato.ledger.amounts import Amount
from sfumato.ledger.anchor import Anchor, FileAnchor, NoAnchor
from sfumato.ledger.budget_description import described, promised
from sfumato.ledger.budgets import Promise
from sfumato.ledger.entries import Entry, digest, line, whole
from sfumato.ledger.meter import Meter, Odometer
from sfumato.ledger.refusal_text import too_much
from sfumato.ledger.replay import State, amount, asked, damaged, replayed, shared
from sfumato.ledger.request_names import random_name, request, text
from sfumato.ledger.shares import ANALYST, FORMER, OTHERS, OWNER, PLAN, REST, Shares, payer
from sfumato.ledger.sqlite import MEMORY, SqliteStore
from sfumato.ledger.store import Store, Transaction
from sfumato.ledger.verify import verified
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.describe import from_json

T = TypeVar("T")
NEWEST = 32
SHORTEST, LONGEST = 0.001, 0.05  # seconds between two looks whether it is our turn


@dataclass(frozen=True)
class Receipt:
    """A charge that is durable. `answer` holds what was answered to it, if that was stored already.

    Who holds a `first` receipt may run the question. Another caller with the same key gets a receipt that is not: he
    waits for the answer, or, if the first one is known to have died, asks for a `rerun`.
    """

    seq: int
    who: str
    key: str
    question: str
    cost: Amount
    account: str
    version: int
    answer: bytes | None = field(default=None, repr=False)
    first: bool = True


@dataclass(frozen=True, eq=False)
class Ledger:
    """The account book of one data set. Make one with `create`, come back to it with `open`."""

    store: Store
    anchor: Anchor
    promise: Promise
    clock: Callable[[], float] = field(default=time.time, repr=False)
    probe: Callable[[str], None] = field(default=lambda point: None, repr=False)  # told where it is: for fault tests
    seen: list[tuple[int, str]] = field(default_factory=list, repr=False)  # the newest line that this object knows of

    # ---- opening ----------------------------------------------------------------------------------------------------

    @staticmethod
    def create(
        place: str | os.PathLike[str] | Store,
        promise: Promise,
        *,
        anchor: str | os.PathLike[str] | Anchor | None = None,
        clock: Callable[[], float] = time.time,
    ) -> "Ledger":
        """A new ledger with this budget, at a place where there is none. Without a place of its own the anchor is a
        file beside it; put it on another disk or machine if you can."""
        if not isinstance(promise, Promise):
            raise InvalidParameter(
                f"a ledger keeps a budget.\n  found:  a {type(promise).__name__}\n"
                "  do:     give sf.Budget(epsilon=1.0, delta=1e-6)"
            )
        store, second = at(place), beside(place, anchor)
        if isinstance(store, SqliteStore) and store.path != MEMORY and store.path.exists():
            raise LedgerUnavailable(
                f"there is a file already.\n  found:  {store.path.name}\n"
                "  do:     open it with Ledger.open, or choose another name: ledgers are never written over"
            )
        if next(second.marks(), None):
            raise LedgerUnavailable(
                "the anchor belongs to a ledger already.\n  found:  marks in it\n"
                "  do:     open that ledger, or give the new one an anchor of its own"
            )
        made = Ledger(store, second, promise, clock)
        first = {"kind": "opened", "time": clock(), "ledger": random_name(), "budget": described(promise)}
        with store.writing() as now:
            store.create(now)
            entry = line(State().hash, 1, {**first, "amount": list(promise.amount)})
            now.run("INSERT INTO head (id, schema, seq, hash, version) VALUES (1, ?, 0, '', 1)", tables.SCHEMA)
            tables.grow(now, REST, promise.amount)
            tables.append(now, entry, 1)
        second.push(entry.seq, entry.hash)
        made.seen.append((entry.seq, entry.hash))
        return made

    @staticmethod
    def open(
        place: str | os.PathLike[str] | Store,
        *,
        anchor: str | os.PathLike[str] | Anchor | None = None,
        clock: Callable[[], float] = time.time,
        probe: Callable[[str], None] | None = None,
    ) -> "Ledger":
        """The ledger at this place, after all of it has been verified."""
        store, second = at(place), beside(place, anchor)
        if isinstance(store, SqliteStore) and not store.path.exists():
            raise LedgerUnavailable(
                f"there is no ledger.\n  found:  no file {store.path.name}\n  do:     make one with Ledger.create"
            )
        state, first = verified(store, second)
        found = Ledger(store, second, promised(first.content["budget"]), clock, probe or (lambda point: None))
        second.push(state.seq, state.hash)  # a crash may have come between a commit and its mark
        found.seen.append((state.seq, state.hash))
        return found

    # ---- what is asked of it ----------------------------------------------------------------------------------------

    def charge(
        self, loss: PrivacyLoss, *, question: str, who: str = OWNER, key: str | None = None, plan: str | None = None,
        account: str | None = None,
    ) -> Receipt:  # fmt: skip
        """Take the price of `loss` from the account of `who`, or of a plan; durable when this returns.

        The same key by the same person is charged once, however often it is sent: the receipt then comes with the
        stored answer, if there is one. If the connection breaks while committing, it is looked up whether it got
        through. Who knows which account must pay says so (`account`): it is refused if another one would.
        """
        prices = self.prices(loss)
        made = request(loss, question, who, random_name() if key is None else key)
        self.probe("charge: asked")
        return settled(lambda: self._charged(made, prices, plan, account))

    def _charged(
        self, request: dict[str, str], prices: tuple[Amount, ...], plan: str | None, expected: str | None
    ) -> Receipt:
        with self._line("charge") as (now, seq, version, write):
            found = self._known(now, request)
            if found is not None and found.answer is not None:
                return found
            blocks.refuse(now, request["question"])
            if found is not None:
                return found
            account = self._account(now, request["who"], plan)
            if expected not in (None, account):
                raise PolicyError(
                    "this ledger does not hold the shares of the policy that is asked under.\n"
                    f"  found:  no account {expected!r}: they were never set, or another policy was opened since\n"
                    "  do:     open the curator again with Curator.open; nothing was charged"
                )
            cost = next((price for price in prices if tables.spend(now, account, price)), None)
            if cost is None:
                limit, spent = tables.accounts(now)[account]
                raise too_much(self.promise, prices[-1], limit - spent, account)
            self.probe("charge: spent")
            now.write("INSERT INTO requests (who, key, seq) VALUES (?, ?, ?)", request["who"], request["key"], seq)
            write({"kind": "charged", **request, "account": account, "cost": list(cost), "version": version})
        return Receipt(seq, request["who"], request["key"], request["question"], cost, account, version)

    def recall(self, question: str) -> bytes | None:
        """The stored answer to the same question about the same data version: free."""
        with self.store.reading() as now:
            _, _, version = tables.head(now)
            rows = now.run(
                "SELECT seq FROM answers WHERE question = ? AND version = ? ORDER BY seq", asked(question), version
            )
            return tables.entry(now, whole(rows[0][0])).answer if rows else None

    def known(self, loss: PrivacyLoss, *, question: str, who: str, key: str) -> Receipt | None:
        """The receipt of this request, if it was charged before: a look, which charges nothing."""
        made = request(loss, question, who, key)
        with self.store.reading() as now:
            return self._known(now, made)

    def answers(self, question: str) -> list[tuple[PrivacyLoss, bytes]]:
        """Stored answers to a question about the same data version, the newest first, each with its loss: free.

        For who asks with other noise: any of them that is at least as exact will do. The newest few are enough, as
        nobody pays for less than there is.
        """
        with self.store.reading() as now:
            _, _, version = tables.head(now)
            rows = now.run(
                f"SELECT charge, seq FROM answers WHERE question = ? AND version = ? ORDER BY seq DESC LIMIT {NEWEST}",
                asked(question), version,
            )  # fmt: skip
            lines = [(tables.entry(now, whole(charge)), tables.entry(now, whole(seq))) for charge, seq in rows]
        return [(from_json(str(charge.content["loss"])), answer.answer) for charge, answer in lines]

    @contextmanager
    def turn(self, question: str, seconds: float, sleep: Callable[[float], None] = time.sleep) -> Iterator[None]:
        """Alone with a question, after whoever asks the same has done: what he stored can then be recalled.

        Ends with the process that holds it, however that ends. Refused after about `seconds` of waiting.
        """
        name = int.from_bytes(digest(question.encode())[:7])
        waited, pause = 0.0, SHORTEST
        while not self.store.take_turn(name):
            if waited >= seconds:
                raise LedgerUnavailable(
                    "the same question is being answered for somebody else.\n  found:  no answer in time\n"
                    "  do:     ask again later; nothing more was charged"
                )
            sleep(pause)
            waited, pause = waited + pause, min(2 * pause, LONGEST)
        try:
            yield
        finally:
            self.store.end_turn(name)

    def keep(self, receipt: Receipt, answer: bytes) -> bytes:
        """Store the answer to a charge; only what this returns may be sent. The first answer stored is the answer."""
        if not isinstance(answer, bytes):
            raise InvalidParameter(f"an answer is stored as bytes.\n  found:  a {type(answer).__name__}")
        return settled(lambda: self._kept(receipt, answer))

    def _kept(self, receipt: Receipt, answer: bytes) -> bytes:
        with self._line("answer") as (now, seq, _, write):
            stored = now.run("SELECT seq FROM answers WHERE charge = ?", receipt.seq)
            if stored:
                return tables.entry(now, whole(stored[0][0])).answer
            charge = tables.entry(now, receipt.seq).content
            question, version = str(charge["question"]), charge["version"]
            now.write("INSERT INTO answers (charge, seq, question, version) VALUES (?, ?, ?, ?)",
                      receipt.seq, seq, asked(question), version)  # fmt: skip
            write({"kind": "answered", "charge": receipt.seq, "question": question, "version": version}, answer)
        return answer

    def rerun(self, receipt: Receipt) -> None:
        """Permission to run a charged question once more, whose answer was never stored.

        Sound only if what went wrong cannot depend on the noise that was drawn: a crash, not a refusal to encode.
        """
        with self._line("rerun") as (now, _, _, write):
            blocks.refuse(now, receipt.question)
            if not blocks.again(now, receipt.seq):
                raise AlreadyRun(
                    f"this question was answered, or run again, already.\n  found:  charge {receipt.seq}\n"
                    "  do:     charge again to ask again"
                )
            write({"kind": "rerun", "charge": receipt.seq})

    def block(self, receipt: Receipt, *, drawn: bool) -> None:
        """Let nobody run this question, at any price, until the owner unblocks it: what computes it failed twice.

        `drawn`: did it fail when noise was drawn already? Its charge then never runs again: whether it fails might
        depend on that noise, and only what does not may be tried anew.
        """
        settled(lambda: self._blocked(receipt, drawn))

    def _blocked(self, receipt: Receipt, drawn: bool) -> None:
        with self._line("block") as (now, seq, _, write):
            if blocks.block(now, receipt.seq, receipt.question, seq, drawn):
                write({"kind": "blocked", "charge": receipt.seq, "question": receipt.question, "drawn": drawn})

    # ---- the owner's acts -------------------------------------------------------------------------------------------

    def share(self, named: Mapping[str, float], others: float | bool = False) -> bool:
        """Set everybody's share of the whole budget, as one act: name → share; 0 is nothing. Was anything changed?

        `others` is for all who are not named, together: a share, False (nothing), or True (they draw on what is set
        aside for nobody, as the owner does). A share that is lowered returns what is not spent; who is no longer named
        is one of the others. Refused, with nothing changed, if it does not fit what was spent.
        """
        shares = Shares(named, others)
        with self.store.reading() as now:
            if self._shared(now, shares) is None:
                return False
        with self._line("share") as (now, _, _, write):
            limits = self._shared(now, shares)
            if limits is None:
                return False
            state = replayed(tables.entries(now))
            state.share(shares, limits)
            tables.put(now, state.accounts)
            listed = {name: list(units) for name, units in limits.items()}
            write({"kind": "shares", "shares": dict(shares.named), "others": shares.others, "limits": listed})
        return True

    def _shared(self, now: Transaction, shares: Shares) -> dict[str, Amount] | None:
        """The limits that shares lead to; None if these shares and limits hold already."""
        accounts = tables.accounts(now)
        plans = [name for name in accounts if name.startswith(PLAN)]
        limits = shares.limits(accounts, {plan: origin(now, plan) or REST for plan in plans})
        there = {name: limit for name, (limit, _) in accounts.items() if name not in plans}
        return limits if limits != there or repr(latest_shares(now)) != repr(shares) else None

    def cap(self, who: str, share: Amount | Promise) -> None:
        """Set a part of the budget aside for one analyst, who then sees that part only."""
        own = f"{ANALYST}{text('who', who)}"
        if f"{FORMER}{own}" in self.accounts():
            raise InvalidParameter(
                f"{who} had a share of this ledger, which the policy has withdrawn.\n  found:  no share of that name\n"
                "  do:     name them in the policy again, or give all shares anew: Ledger.share"
            )
        self._move(REST, own, share, "cap")

    def reserve(self, plan: str, share: Amount | Promise | PrivacyLoss, who: str | None = None) -> None:
        """Set a part aside for planned work: `charge(…, plan=plan)` draws on it, `release` returns what is left."""
        enough = self.prices(share)[-1] if isinstance(share, PrivacyLoss) else share
        name = f"{PLAN}{text('plan', plan)}"
        with self.store.reading() as now:
            source, before = REST if who is None else self._account(now, who, None), origin(now, name)
        if before not in (None, source):
            raise InvalidParameter(
                f"this plan was reserved from another account.\n  found:  {before or 'the common account'}\n"
                "  do:     choose another name for the plan"
            )
        self._move(source, name, enough, "reserve")

    def release(self, plan: str) -> None:
        """Return what a plan has not spent. What its questions cost stays spent, whatever they returned."""
        name = f"{PLAN}{text('plan', plan)}"
        with self._line("move") as (now, _, _, write):
            limit, spent = self._existing(now, name)
            source = origin(now, name) or REST
            back = source if source in tables.accounts(now) else REST  # whose share it was may have none any more
            self._moved(now, write, name, back, limit - spent, "release")

    def renew(self, promise: Promise, why: str) -> None:
        """A further budget, on top of what there was. People in the data throughout face the union of both.

        Shares are parts of all that there is, so they grow with it: an act of its own, done again when a curator is
        opened should this one be cut short.
        """
        if type(promise) is not type(self.promise) or promise.relation is not self.promise.relation:
            raise InvalidParameter(
                f"a ledger is renewed with a budget of its own kind.\n  found:  {type(promise).__name__} for a "
                f"{type(self.promise).__name__}\n  do:     give one about the same neighbours and of the same kind"
            )
        why = text("why", why)
        with self._line("renew") as (now, _, _, write):
            tables.grow(now, REST, promise.amount)
            write({"kind": "renewed", "budget": described(promise), "amount": list(promise.amount), "why": why})
        if (shares := self.shares()) is not None:
            self.share(shares.named, shares.others)

    def new_version(self, why: str) -> int:
        """The data have changed: stored answers no longer serve. A number that the owner raises, never the data."""
        with self._line("version") as (_, _, version, write):
            write({"kind": "version", "number": version + 1, "why": text("why", why)}, version=version + 1)
        return version + 1

    def unblock(self, charge: int, why: str) -> None:
        """What failed was mended: the question of this charge may be asked again, by everybody.

        Whoever was charged may have it run once more with the same key.
        """
        why = text("why", why)
        with self._line("unblock") as (now, _, _, write):
            question, again = blocks.unblock(now, charge)
            write({"kind": "unblocked", "question": question, "again": again, "why": why})

    def blocked(self) -> list[Entry]:
        """The lines that block a question now."""
        with self.store.reading() as now:
            return [tables.entry(now, whole(seq)) for (seq,) in now.run("SELECT seq FROM blocks ORDER BY seq")]

    def reprice(self, seq: int, loss: PrivacyLoss) -> Amount:
        """Charge an entry anew, with a price that is lower in every counter; otherwise nothing changes."""
        price = self.prices(loss)[-1]
        with self._line("reprice") as (now, _, _, write):
            state = replayed(tables.entries(now))
            if seq not in state.costs:
                raise InvalidParameter(f"only a charge can be priced anew.\n  found:  line {seq!r}")
            account, before = state.costs[seq]
            stored = tables.entry(now, seq).content["loss"]
            if loss.to_json() != stored or not price.within(before) or price == before:
                return before
            tables.give_back(now, account, before - price)
            write({"kind": "repriced", "charge": seq, "cost": list(price)})
        return price

    # ---- looking ----------------------------------------------------------------------------------------------------

    def verify(self) -> State:
        """Read all lines again, follow their chain, and compare with the tables and the anchor."""
        return verified(self.store, self.anchor)[0]

    def accounts(self) -> dict[str, tuple[Amount, Amount]]:
        """name → (limit, spent); "" is what nobody has set aside."""
        with self.store.reading() as now:
            return tables.accounts(now)

    def shares(self) -> Shares | None:
        """The shares that were set last, if any were."""
        with self.store.reading() as now:
            return latest_shares(now)

    def account(self, who: str = OWNER) -> tuple[str, Amount, Amount]:
        """The account that pays for this person: its name, limit and spent."""
        accounts = self.accounts()
        name = payer(accounts, who)
        return name, *accounts[name]

    def meter(self) -> Meter:
        """Spent so far: a reading, not a guarantee."""
        return Meter(self.promise, sum((spent for _, spent in self.accounts().values()), Amount()))

    def odometer(self) -> Odometer:
        """The ladder of this ledger's levels, fixed when it was opened: `odometer().reading(spent)` always holds."""
        with self.store.reading() as now:
            return Odometer(self.promise, amount(tables.entry(now, 1).content["amount"]))

    def history(self) -> list[Entry]:
        with self.store.reading() as now:
            return list(tables.entries(now))

    def prices(self, loss: PrivacyLoss) -> tuple[Amount, ...]:
        """What this loss may be charged, in order of preference."""
        return _prices(self.promise, self.promise.checked(loss))

    def close(self) -> None:
        self.store.close()

    # ---- inside -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _line(self, name: str) -> Iterator[tuple[Transaction, int, int, Callable[..., None]]]:
        """A transaction that writes at most one line; the anchor is told before this is left."""
        self.probe(f"{name}: waiting")
        with self.store.writing() as now:
            known, mark = self.seen[0] if self.seen else (0, None)
            seq, hash_, version, there = tables.head_and(now, known)
            self.probe(f"{name}: locked")
            if there != mark:
                raise damaged(known, "it was there, and is gone: an old copy was put back under our feet")
            latest = [(seq, hash_)]

            def write(content: dict[str, object], answer: bytes = b"", version: int = version) -> None:
                entry = line(hash_, seq + 1, {**content, "time": self.clock()}, answer)
                tables.append(now, entry, version)
                latest.append((entry.seq, entry.hash))
                self.probe(f"{name}: written")

            yield now, seq + 1, version, write
            self.probe(f"{name}: committing")
        self.probe(f"{name}: committed")
        self.anchor.push(*latest[-1])
        self.seen[:] = latest[-1:]
        self.probe(f"{name}: anchored")

    def _known(self, now: Transaction, request: dict[str, str]) -> Receipt | None:
        """The receipt of the same request, if it was charged before."""
        rows = now.run("SELECT seq FROM requests WHERE who = ? AND key = ?", request["who"], request["key"])
        if not rows:
            return None
        seq = whole(rows[0][0])
        charge = tables.entry(now, seq).content
        if charge["question"] != request["question"] or charge["loss"] != request["loss"]:
            raise KeyReused(
                "this request key was used for another question.\n  found:  the same key, another question or price\n"
                "  do:     use a new key for a new question"
            )
        stored = now.run("SELECT seq FROM answers WHERE charge = ?", seq)
        answer = tables.entry(now, whole(stored[0][0])).answer if stored else None
        return Receipt(
            seq, request["who"], request["key"], request["question"], amount(charge["cost"]), str(charge["account"]),
            whole(charge["version"]), answer, first=False,
        )  # fmt: skip

    def _account(self, now: Transaction, who: str, plan: str | None) -> str:
        """Whose account pays: the plan's, or that of who asks (`payer`)."""
        if plan is not None:
            self._existing(now, f"{PLAN}{plan}")
            return f"{PLAN}{plan}"
        found = now.run("SELECT name FROM accounts WHERE name = ? OR name = ?", f"{ANALYST}{who}", OTHERS)
        return payer({str(name) for (name,) in found}, who)

    def _existing(self, now: Transaction, name: str) -> tuple[Amount, Amount]:
        found = tables.accounts(now).get(name)
        if found is None:
            raise InvalidParameter(f"there is no such account.\n  found:  no {name}\n  do:     reserve it first")
        return found

    def _move(self, source: str, to: str, share: Amount | Promise, why: str) -> None:
        with self._line("move") as (now, _, _, write):
            self._moved(now, write, source, to, share.amount if isinstance(share, Promise) else share, why)

    def _moved(
        self, now: Transaction, write: Callable[..., None], source: str, to: str, share: Amount, why: str
    ) -> None:
        if not tables.shrink(now, source, share):
            limit, spent = self._existing(now, source)
            raise too_much(self.promise, share, limit - spent, source)
        tables.grow(now, to, share)
        write({"kind": "moved", "from": source, "to": to, "amount": list(share), "why": why})


@lru_cache(maxsize=4096)
def _prices(promise: Promise, loss: PrivacyLoss) -> tuple[Amount, ...]:
    """Prices depend on descriptions alone, so each is worked out once."""
    return promise.prices(loss)


def origin(now: Transaction, account: str) -> str | None:
    """Where the units of an account came from, if there is one."""
    moves = (e.content for e in tables.entries(now))
    return next((str(m["from"]) for m in moves if m["kind"] == "moved" and m["to"] == account), None)


def latest_shares(now: Transaction) -> Shares | None:
    """The shares that were set last. (In the text of a question quotes are escaped: it is not taken for this.)"""
    rows = now.run("SELECT seq FROM entries WHERE text LIKE ? ORDER BY seq DESC LIMIT 1", '%"kind":"shares"%')
    return shared(tables.entry(now, whole(rows[0][0])).content) if rows else None


def settled(act: Callable[[], T]) -> T:
    """Do what may be done twice; if it cannot be said whether it was committed, do it again to find out."""
    try:
        return act()
    except CommitUnknown as unknown:
        try:
            return act()
        except LedgerUnavailable:
            raise unknown from None


def at(place: str | os.PathLike[str] | Store) -> Store:
    return SqliteStore(Path(place)) if isinstance(place, str | os.PathLike) else place


def beside(place: str | os.PathLike[str] | Store, anchor: str | os.PathLike[str] | Anchor | None) -> Anchor:
    if anchor is not None:
        return FileAnchor(Path(anchor)) if isinstance(anchor, str | os.PathLike) else anchor
    if isinstance(place, str | os.PathLike) and Path(place) != MEMORY:
        return FileAnchor(Path(f"{os.fspath(place)}.anchor"))
    return NoAnchor()
