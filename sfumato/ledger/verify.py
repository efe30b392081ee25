"""Reading a ledger from its first line to its last, and comparing it with its tables and its anchor."""

from collections.abc import Iterator

from sfumato.errors import InvalidParameter, LedgerUnavailable
from sfumato.ledger import tables
from sfumato.ledger.anchor import Anchor, NoAnchor
from sfumato.ledger.entries import Entry, whole
from sfumato.ledger.replay import State, damaged
from sfumato.ledger.store import Store, Transaction


def verified(store: Store, anchor: Anchor) -> tuple[State, Entry]:
    """The state that the lines say, and the first line; `LedgerDamaged` if anything disagrees."""
    marks = list(anchor.marks())  # before the lines are read: others may be writing
    state = State()
    with store.reading() as now:
        try:
            known(now)
            first = followed(state, now, marks)
            compare(state, now)
        except (TypeError, ValueError, InvalidParameter) as problem:  # what no ledger of ours holds
            raise damaged(state.seq + 1, "the tables hold what was never written there") from problem
    if not marks and state.seq > 1 and not isinstance(anchor, NoAnchor):
        raise damaged(state.seq, "the anchor is empty or gone, so it cannot be said whether there were more")
    return state, first


def known(now: Transaction) -> None:
    ((one, schema),) = now.run("SELECT id, schema FROM head")  # one row, not the first of several
    if one != 1:
        raise ValueError("the row of the head is another")
    if schema != tables.SCHEMA:
        raise LedgerUnavailable(
            f"this ledger was made by another version of sfumato.\n  found:  schema {schema}, not {tables.SCHEMA}\n"
            "  do:     use that version; nothing was changed"
        )


def followed(state: State, now: Transaction, marks: list[tuple[int, str]]) -> Entry:
    """The first line, after all lines were followed and found where the anchor saw them."""
    first: Entry | None = None
    hashes: dict[int, str] = {}
    watched = {seq for seq, _ in marks}
    for entry in tables.entries(now):
        state.follow(entry)
        first = first or entry
        if entry.seq in watched:
            hashes[entry.seq] = entry.hash
    if first is None:
        raise damaged(1, "there are no lines")
    for seq, hash_ in marks:
        if hashes.get(seq) != hash_:
            why = "the anchor has seen it, and this ledger ends before" if seq > state.seq else "the anchor saw another"
            raise damaged(seq, why)
    return first


def compare(state: State, now: Transaction) -> None:
    for name, told, found in (
        ("head", (state.seq, state.hash, state.version), tables.head(now)),
        ("accounts", state.accounts, tables.accounts(now)),
        ("requests", state.requests, dict(requests(now))),
        ("answers", state.answers, dict(answers(now))),
        ("blocks", state.blocks, dict(blocks(now))),
    ):
        if told != found:
            raise damaged(state.seq, f"the table of {name} does not say what the lines say")


def requests(now: Transaction) -> Iterator[tuple[tuple[str, str], int]]:
    for who, key, seq in now.run("SELECT who, key, seq FROM requests"):
        yield (str(who), str(key)), whole(seq)


def answers(now: Transaction) -> Iterator[tuple[int, tuple[int, str, int]]]:
    for charge, seq, question, version in now.run("SELECT charge, seq, question, version FROM answers"):
        yield whole(charge), (whole(seq), str(question), whole(version))


def blocks(now: Transaction) -> Iterator[tuple[int, tuple[int, str]]]:
    for charge, seq, question in now.run("SELECT charge, seq, question FROM blocks"):
        yield whole(charge), (whole(seq), str(question))
