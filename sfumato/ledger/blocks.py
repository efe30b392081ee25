"""Blocked questions: the engine failed on them twice. Each further failure could reveal more about the data."""

from sfumato.errors import InvalidParameter, QuestionBlocked
from sfumato.ledger import tables
from sfumato.ledger.hash_chain import Entry, question_hash, require_int
from sfumato.ledger.journal import NextLine
from sfumato.ledger.store import Transaction

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
