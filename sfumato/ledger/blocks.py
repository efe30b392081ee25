"""Questions that may not be run: what computes them failed, and failing again would tell more each time."""

from sfumato.errors import InvalidParameter, QuestionBlocked
from sfumato.ledger import tables
from sfumato.ledger.entries import whole
from sfumato.ledger.replay import asked
from sfumato.ledger.store import Transaction

BLOCKED = (  # the same words for everybody, whoever asked first
    "this question is blocked.\n  found:  it was charged, and could not be answered\n"
    "  do:     ask the operator to unblock it; nothing more was charged"
)


def refuse(now: Transaction, question: str) -> None:
    """Raises if a question is blocked."""
    if now.run("SELECT charge FROM blocks WHERE question = ?", asked(question)):
        raise QuestionBlocked(BLOCKED)


def block(now: Transaction, charge: int, question: str, seq: int, drawn: bool) -> bool:
    """Block a question with line `seq`, unless the same was said before."""
    before = now.run("SELECT seq FROM blocks WHERE charge = ?", charge)
    if before and (not drawn or tables.entry(now, whole(before[0][0])).content["drawn"]):
        return False
    now.run("DELETE FROM blocks WHERE charge = ?", charge)
    now.write("INSERT INTO blocks (charge, seq, question) VALUES (?, ?, ?)", charge, seq, asked(question))
    return True


def unblock(now: Transaction, charge: int) -> tuple[str, list[int]]:
    """The question of this charge, and which charges of it may run again."""
    found = now.run("SELECT question FROM blocks WHERE charge = ?", charge) if type(charge) is int else []
    if not found:
        raise InvalidParameter(
            f"only a question that is blocked can be unblocked.\n  found:  charge {charge!r}\n"
            "  do:     look at Ledger.blocked(), or: sfumato ledger blocked"
        )
    rows = now.run("SELECT seq FROM blocks WHERE question = ? ORDER BY charge", found[0][0])
    lines = [tables.entry(now, whole(seq)).content for (seq,) in rows]
    now.run("DELETE FROM blocks WHERE question = ?", found[0][0])
    return str(lines[0]["question"]), [whole(line["charge"]) for line in lines if not line["drawn"]]


def again(now: Transaction, charge: int) -> bool:
    """May this charge be run once more? Once after it was made, and once after each time it was unblocked."""
    if now.run("SELECT seq FROM answers WHERE charge = ?", charge):
        return False
    allowed = True
    for content in (entry.content for entry in tables.entries(now, charge + 1)):
        match content["kind"]:
            case "rerun" | "blocked" if content["charge"] == charge:
                allowed = False
            case "unblocked" if charge in content["again"]:  # type: ignore[operator]
                allowed = True
    return allowed
