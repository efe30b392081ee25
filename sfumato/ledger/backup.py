"""Backups of a ledger, and restoring one without giving back what was spent since.

A backup is one SQLite file, a ledger in itself: all lines of one moment, and the tables beside them. It ends at its
*head*, the number and hash of its last line. Charges after that moment are missing in it. So a restore compares the
head with the newest mark of the anchor, and with the ledger that is there. If lines are missing, or nothing tells
whether any are, it is refused; or the owner accepts that all that was left at the backup counts as spent.

Soundness: a ledger never spends more than its limits, so whatever the missing lines charged was covered by what was
left at the backup. Spending all of that accounts for every answer that was given, unless the budget was renewed
meanwhile: a renewal is a promise of its own, which the restored ledger does not know of and the owner must repeat.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerError
from sfumato.ledger import tables
from sfumato.ledger.hash_chain import Entry, FileAnchor, NoAnchor, flush_folder
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.location import AnchorPlace, Place, anchor_for, require_unused, store_at
from sfumato.ledger.sqlite import SqliteStore
from sfumato.ledger.state import verify
from sfumato.ledger.store import Store, Transaction

COLUMNS = {
    "entries": "seq, text, answer, hash",
    "accounts": f"name, {tables.COLUMNS}",
    "requests": "who, key, seq",
    "answers": "charge, seq, question, version",
    "blocks": "charge, seq, question",
    "head": "id, schema, seq, hash, version",
}


@dataclass(frozen=True)
class ExtraTable:
    """A table that somebody else keeps in the store of a ledger, and that a backup takes along."""

    name: str
    create: str  # a statement that creates it where it is not there
    columns: str


@dataclass(frozen=True)
class Head:
    """How far a ledger has come."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"line {self.seq}, {self.hash}"


def backup(ledger: Ledger, file: Path, extra: Sequence[ExtraTable] = ()) -> Head:
    """Write all of an open ledger to a new file, in one consistent state; its head."""
    target = SqliteStore(file)
    require_unused(target, NoAnchor())
    with ledger.store.writing() as transaction:
        for one in extra:
            transaction.run(one.create)
    with ledger.store.reading() as source:
        copy(source, target, extra)
    state, _ = verify(target, NoAnchor())
    target.close()  # folds the write-ahead log into the one file
    flush_file(file)
    return Head(state.seq, state.hash)


def restore(
    file: Path, place: Place, *, anchor: AnchorPlace = None, head: str | None = None, forfeit: str | None = None,
    extra: Sequence[ExtraTable] = (),
) -> tuple[Head, int | None]:  # fmt: skip
    """Put a backup in the place of a ledger: its head, and how many lines are missing (None: unknown).

    `head` is the hash of the newest line, if the owner has recorded it elsewhere. `forfeit` is the owner's reason for
    accepting that all that is left counts as spent; without it, a restore that could roll a budget back is refused.
    """
    marks = anchor_for(place, anchor)
    with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=".restore-") as folder:
        work = Path(folder) / "ledger"
        copied = SqliteStore(file)
        if not copied.exists():
            raise InvalidParameter(f"there is no backup.\n  found:  no file {file.name}")
        for one in extra:
            with copied.writing() as transaction:
                transaction.run(one.create)
        with copied.reading() as source:
            copy(source, SqliteStore(work), extra)
        copied.close()
        opened = Ledger.open(work, anchor=NoAnchor())
        lines = opened.history()
        missing = missing_lines(lines, place, list(marks.marks()), head)
        if missing != 0 and forfeit is None:
            found = "no sign of how far the ledger had come" if missing is None else f"{missing} lines fewer"
            raise LedgerDamaged(
                f"this backup would give back what was spent since.\n  found:  {found}\n"
                "  do:     restore a newer backup; state the head that was recorded elsewhere; or accept that all that"
                " was left counts as spent (sfumato ledger restore --count-as-spent)"
            )
        if missing != 0:
            opened.forfeit(f"{'unknown' if missing is None else missing} lines lost; {forfeit}")
        state = opened.verify()
        opened.close()
        move_into_place(work, place, extra)
    if missing != 0 and isinstance(marks, FileAnchor):
        set_aside(marks.path)
    marks.push(state.seq, state.hash)
    return Head(state.seq, state.hash), missing


def missing_lines(lines: list[Entry], place: Place, marks: list[tuple[int, str]], head: str | None) -> int | None:
    """How many lines after the backup are known to have existed; None if nothing tells.

    Raises LedgerDamaged if the marks, or the ledger that is there, are not of the same ledger.
    """
    hashes = {line.seq: line.hash for line in lines}
    last, known = lines[-1].seq, list(marks)
    there = store_at(place)
    try:
        if there.exists():
            with there.reading() as transaction:
                seq, hash_, _ = tables.head(transaction)
                known.append((seq, hash_))
                if seq > last:
                    known.append((last, tables.entry(transaction, last).hash))
    except (LedgerError, TypeError, ValueError):
        pass  # it is damaged: that is why a backup is restored
    finally:
        there.close()
    for seq, hash_ in known:
        if seq <= last and hashes.get(seq) != hash_:
            raise LedgerDamaged(
                f"the backup is of another ledger.\n  found:  another line {seq}\n"
                "  do:     restore a backup of this ledger, or choose another place and anchor"
            )
    if head is not None:
        return 0 if head == hashes[last] and max((seq for seq, _ in known), default=0) <= last else None
    return max(max(seq for seq, _ in known) - last, 0) if known else None


def copy(source: Transaction, target: Store, extra: Sequence[ExtraTable]) -> None:
    """All rows of a ledger, into a store without tables, in one transaction."""
    columns = {**COLUMNS, **{one.name: one.columns for one in extra}}
    with target.writing() as transaction:
        target.create(transaction)
        for one in extra:
            transaction.run(one.create)
        for name, listed in columns.items():
            marks = ", ".join("?" for _ in listed.split(","))
            insert = f"INSERT INTO {name} ({listed}) VALUES ({marks})"
            if name == "entries":
                for line in tables.entries(source):
                    transaction.run(insert, line.seq, line.text, line.answer, line.hash)
                continue
            for row in source.run(f"SELECT {listed} FROM {name}"):
                transaction.run(insert, *row)


def move_into_place(work: Path, place: Place, extra: Sequence[ExtraTable]) -> None:
    """Move a finished file to its place in a single step, so that no other process reads half of it."""
    target = store_at(place)
    if isinstance(target, SqliteStore):
        if target.exists():
            set_aside(target.path)
        for suffix in ("-wal", "-shm"):
            Path(f"{target.path}{suffix}").unlink(missing_ok=True)
        flush_file(work)
        work.replace(target.path)
        flush_folder(target.path.absolute().parent)
        return
    if target.exists():
        raise InvalidParameter(
            "there is a ledger in that schema.\n  found:  its tables\n"
            "  do:     rename the schema, so that it is kept (ALTER SCHEMA … RENAME TO …), and restore again"
        )
    source = SqliteStore(work)
    with source.reading() as transaction:
        copy(transaction, target, extra)
    source.close()


def set_aside(file: Path) -> None:
    """Keep a file under another name."""
    if file.exists():
        taken = (file.with_name(f"{file.name}.before-restore-{n}") for n in range(1, 10_000))
        file.replace(next(name for name in taken if not name.exists()))


def flush_file(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    flush_folder(file.absolute().parent)
