"""Verification: read a ledger from its first line to its last, and compare it with its tables and its anchor."""

from collections.abc import Iterator

from sfumato.errors import InvalidParameter, LedgerUnavailable
from sfumato.ledger import tables
from sfumato.ledger.anchor import Anchor, NoAnchor
from sfumato.ledger.hash_chain import Entry, require_int
from sfumato.ledger.state import State, damage_error
from sfumato.ledger.store import Store, Transaction


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
