"""Charges, the answers stored under them, and the questions that they block: the transactions of one question.

The first answer stored under a charge is the answer. It is found again by its charge, or by question and data version.
A question on which the engine failed twice is blocked, since each further failure could reveal more about the data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato import checks
from sfumato.errors import InvalidParameter, KeyReused, LedgerUnavailable, PolicyError, QuestionBlocked
from sfumato.ledger import tables
from sfumato.ledger.accounts import budget_exceeded
from sfumato.ledger.amounts import Amount
from sfumato.ledger.budgets import Promise
from sfumato.ledger.hash_chain import Entry, question_hash, require_int
from sfumato.ledger.journal import NextLine
from sfumato.ledger.shares import OWNER
from sfumato.ledger.state import read_amount
from sfumato.ledger.store import Transaction
from sfumato.loss.base import PrivacyLoss

LONGEST_QUESTION = 1 << 20  # characters
LONGEST_ASKED = 2000


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
    """A question with the person who asks it, the description of its loss, and an idempotency key."""

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
    expected: str | None, asked: str = "",
) -> Receipt:  # fmt: skip
    """The receipt of the same request if it was charged before; otherwise take the first price that the account covers.

    A stored answer is returned even if the question is blocked by now.
    """
    known = find_receipt(line.transaction, request)
    if known is not None and known.answer is not None:
        return known
    refuse_blocked(line.transaction, request.question)
    if known is not None:
        return known
    account = tables.account_for(line.transaction, request.who, plan)
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
    if asked:
        content["asked"] = asked if len(asked) <= LONGEST_ASKED else f"{asked[:LONGEST_ASKED]}…"
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
            "this idempotency key was used for another question.\n  found:  the same key, another question or price\n"
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
    """The content of the charge under this key."""
    seq = charge_under(transaction, who, key)
    return None if seq is None else tables.entry(transaction, seq).content


# ---- stored answers -------------------------------------------------------------------------------------------------


NEWEST = 32  # stored answers to one question that are considered
PRESENT = "version = (SELECT version FROM head WHERE id = 1)"  # of the data


def answer_to_charge(transaction: Transaction, charge: int) -> bytes | None:
    rows = transaction.run("SELECT seq FROM answers WHERE charge = ?", charge)
    return tables.entry(transaction, require_int(rows[0][0])).answer if rows else None


def first_answer(transaction: Transaction, question: str) -> bytes | None:
    """The first answer to a question about the present data version."""
    rows = transaction.run(
        f"SELECT seq FROM answers WHERE question = ? AND {PRESENT} ORDER BY seq",
        question_hash(question),
    )  # fmt: skip
    return tables.entry(transaction, require_int(rows[0][0])).answer if rows else None


def newest_answers(transaction: Transaction, question: str) -> list[tuple[Entry, Entry]]:
    """(charge, answer) of the newest answers to a question about the present data version, the newest first."""
    rows = transaction.run(
        f"SELECT charge, seq FROM answers WHERE question = ? AND {PRESENT} ORDER BY seq DESC LIMIT {NEWEST}",
        question_hash(question),
    )  # fmt: skip
    return [
        (tables.entry(transaction, require_int(charge)), tables.entry(transaction, require_int(seq)))
        for charge, seq in rows
    ]


def store_answer(line: NextLine, charge: int, answer: bytes) -> bytes:
    """Store the answer to a charge, unless there is one already; the answer that counts."""
    stored = answer_to_charge(line.transaction, charge)
    if stored is not None:
        return stored
    charged = tables.entry(line.transaction, charge).content
    question, version = str(charged["question"]), charged["version"]
    line.transaction.write(
        "INSERT INTO answers (charge, seq, question, version) VALUES (?, ?, ?, ?)",
        charge, line.seq, question_hash(question), version,
    )  # fmt: skip
    line.write({"kind": "answered", "charge": charge, "question": question, "version": version}, answer)
    return answer


# ---- blocked questions ----------------------------------------------------------------------------------------------


BLOCKED = (  # the same text for everybody, whoever asked first
    "this question is blocked.\n  found:  it was charged, and could not be answered\n"
    "  do:     ask the operator to unblock it; nothing more was charged"
)


def refuse_blocked(transaction: Transaction, question: str) -> None:
    """Raises if a question is blocked."""
    if transaction.run("SELECT charge FROM blocks WHERE question = ?", question_hash(question)):
        raise QuestionBlocked(BLOCKED)


def block(line: NextLine, charge: int, question: str, drawn: bool) -> None:
    """Block a question because of this charge, unless the same is recorded already."""
    transaction = line.transaction
    rows = transaction.run("SELECT seq FROM blocks WHERE charge = ?", charge)
    if rows and (not drawn or tables.entry(transaction, require_int(rows[0][0])).content["drawn"]):
        return
    transaction.run("DELETE FROM blocks WHERE charge = ?", charge)
    transaction.write(
        "INSERT INTO blocks (charge, seq, question) VALUES (?, ?, ?)", charge, line.seq, question_hash(question)
    )
    line.write({"kind": "blocked", "charge": charge, "question": question, "drawn": drawn})


def unblock(line: NextLine, charge: int, why: str) -> None:
    """Unblock the question of this charge. Charges that failed before noise was drawn may run again."""
    transaction = line.transaction
    blocked = transaction.run("SELECT question FROM blocks WHERE charge = ?", charge) if type(charge) is int else []
    if not blocked:
        raise InvalidParameter(
            f"only a blocked question can be unblocked.\n  found:  charge {charge!r}\n"
            "  do:     look at Ledger.blocked(), or: sfumato ledger blocked"
        )
    rows = transaction.run("SELECT seq FROM blocks WHERE question = ? ORDER BY charge", blocked[0][0])
    blocks = [tables.entry(transaction, require_int(seq)).content for (seq,) in rows]
    transaction.run("DELETE FROM blocks WHERE question = ?", blocked[0][0])
    again = [require_int(content["charge"]) for content in blocks if not content["drawn"]]
    line.write({"kind": "unblocked", "question": str(blocks[0]["question"]), "again": again, "why": why})


def blocked_entries(transaction: Transaction) -> list[Entry]:
    """The lines that block a question now."""
    rows = transaction.run("SELECT seq FROM blocks ORDER BY seq")
    return [tables.entry(transaction, require_int(seq)) for (seq,) in rows]


def may_rerun(transaction: Transaction, charge: int) -> bool:
    """May this charge run once more? Once after it was made, and once after each time it was unblocked."""
    if transaction.run("SELECT seq FROM answers WHERE charge = ?", charge):
        return False
    allowed = True
    for content in (entry.content for entry in tables.entries(transaction, charge + 1)):
        match content["kind"]:
            case "rerun" | "blocked" if content["charge"] == charge:
                allowed = False
            case "unblocked" if charge in content["again"]:  # type: ignore[operator]
                allowed = True
    return allowed
