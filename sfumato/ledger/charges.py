"""Charging a request: what a request is, the receipt of a charge, and the transaction that pays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sfumato import checks
from sfumato.errors import CommitUnknown, KeyReused, LedgerUnavailable, PolicyError
from sfumato.ledger import blocks, tables
from sfumato.ledger.accounts import account_for, budget_exceeded
from sfumato.ledger.amounts import Amount
from sfumato.ledger.answers import answer_to_charge
from sfumato.ledger.budgets import Promise
from sfumato.ledger.hash_chain import require_int
from sfumato.ledger.journal import NextLine
from sfumato.ledger.shares import OWNER
from sfumato.ledger.state import read_amount
from sfumato.ledger.store import Transaction
from sfumato.loss.base import PrivacyLoss

T = TypeVar("T")
LONGEST_QUESTION = 1 << 20  # characters


@dataclass(frozen=True)
class Receipt:
    """A durable charge. `answer` is the stored answer to it, if there is one already.

    The holder of a `first` receipt may run the question. Another caller with the same idempotency key gets a receipt
    that is not `first`: it waits for the answer or, if the first holder is known to have crashed, asks for a `rerun`.
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


@dataclass(frozen=True)
class Request:
    """Who asks what, at which loss (its description), under which idempotency key."""

    who: str
    key: str
    question: str
    loss: str

    @staticmethod
    def of(loss: PrivacyLoss, question: str, who: str, key: str) -> "Request":
        return Request(
            checks.text("who", who),
            checks.text("key", key),
            checks.text("question", question, LONGEST_QUESTION),
            loss.to_json(),
        )


def charge(
    line: NextLine, request: Request, promise: Promise, prices: tuple[Amount, ...], plan: str | None,
    expected: str | None,
) -> Receipt:  # fmt: skip
    """The receipt of the same request if it was charged before; otherwise take the first price that the account covers.

    A stored answer is returned even if the question is blocked by now.
    """
    known = find_receipt(line.transaction, request)
    if known is not None and known.answer is not None:
        return known
    blocks.refuse_blocked(line.transaction, request.question)
    if known is not None:
        return known
    account = account_for(line.transaction, request.who, plan)
    if expected not in (None, account):
        raise PolicyError(
            "this ledger does not hold the shares of the policy that is in use.\n"
            f"  found:  no account {expected!r}: the shares were never set, or another policy was opened since\n"
            "  do:     open the curator again with Curator.open; nothing was charged"
        )
    cost = next((price for price in prices if tables.spend(line.transaction, account, price)), None)
    if cost is None:
        limit, spent = tables.accounts(line.transaction)[account]
        raise budget_exceeded(promise, prices[-1], limit - spent, account)
    line.probe("charge: spent")
    line.transaction.write(
        "INSERT INTO requests (who, key, seq) VALUES (?, ?, ?)", request.who, request.key, line.seq
    )  # fmt: skip
    content = {**vars(request), "account": account, "cost": list(cost), "version": line.version}
    line.write({"kind": "charged", **content})
    return Receipt(line.seq, request.who, request.key, request.question, cost, account, line.version)


def spend_rest(line: NextLine, promise: Promise, account: str, rest: Amount, why: str) -> None:
    """Charge all that an account has left, for no question that is known."""
    if not tables.spend(line.transaction, account, rest):
        raise LedgerUnavailable("the account has changed meanwhile.\n  do:     try again; nobody else may charge it")
    request = Request.of(promise.loss_of(rest), why, OWNER, f"forfeit {line.seq}")
    line.transaction.write(
        "INSERT INTO requests (who, key, seq) VALUES (?, ?, ?)", request.who, request.key, line.seq
    )  # fmt: skip
    content = {**vars(request), "account": account, "cost": list(rest), "version": line.version}
    line.write({"kind": "charged", **content})


def find_receipt(transaction: Transaction, request: Request) -> Receipt | None:
    """The receipt of the same request, if it was charged before. Raises if its key was used for another question."""
    seq = charge_under(transaction, request.who, request.key)
    if seq is None:
        return None
    charged: Mapping[str, object] = tables.entry(transaction, seq).content
    if charged["question"] != request.question or charged["loss"] != request.loss:
        raise KeyReused(
            "this request key was used for another question.\n  found:  the same key, another question or price\n"
            "  do:     use a new key for a new question"
        )
    return Receipt(
        seq, request.who, request.key, request.question, read_amount(charged["cost"]), str(charged["account"]),
        require_int(charged["version"]), answer_to_charge(transaction, seq), first=False,
    )  # fmt: skip


def charge_under(transaction: Transaction, who: str, key: str) -> int | None:
    """The number of the charge under this key."""
    rows = transaction.run("SELECT seq FROM requests WHERE who = ? AND key = ?", who, key)
    return require_int(rows[0][0]) if rows else None


def charged_under(transaction: Transaction, who: str, key: str) -> Mapping[str, object] | None:
    """What was charged under this key."""
    seq = charge_under(transaction, who, key)
    return None if seq is None else tables.entry(transaction, seq).content


def retry_if_unknown(act: Callable[[], T]) -> T:
    """Do something idempotent. If it is unknown whether it was committed, do it again: that finds out."""
    try:
        return act()
    except CommitUnknown as unknown:
        try:
            return act()
        except LedgerUnavailable:
            raise unknown from None
