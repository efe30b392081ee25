"""Stored answers: found again by charge, or by question and data version. The first answer stored is the answer."""

from sfumato.ledger import tables
from sfumato.ledger.hash_chain import Entry, question_hash, require_int
from sfumato.ledger.journal import NextLine
from sfumato.ledger.store import Transaction

NEWEST = 32  # stored answers to one question that are considered


def answer_to_charge(transaction: Transaction, charge: int) -> bytes | None:
    rows = transaction.run("SELECT seq FROM answers WHERE charge = ?", charge)
    return tables.entry(transaction, require_int(rows[0][0])).answer if rows else None


def first_answer(transaction: Transaction, question: str) -> bytes | None:
    """The first answer to a question about the present data version."""
    rows = transaction.run(
        "SELECT seq FROM answers WHERE question = ? AND version = ? ORDER BY seq",
        question_hash(question), tables.head(transaction)[2],
    )  # fmt: skip
    return tables.entry(transaction, require_int(rows[0][0])).answer if rows else None


def newest_answers(transaction: Transaction, question: str) -> list[tuple[Entry, Entry]]:
    """(charge, answer) of the newest answers to a question about the present data version, the newest first."""
    rows = transaction.run(
        f"SELECT charge, seq FROM answers WHERE question = ? AND version = ? ORDER BY seq DESC LIMIT {NEWEST}",
        question_hash(question), tables.head(transaction)[2],
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
