"""Damage to a ledger: changed bits, rows, files. Each change is made to a copy, and must be detected."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import sfumato as sf
from sfumato.errors import LedgerDamaged, LedgerUnavailable
from sfumato.ledger import Amount, Budget, Ledger
from sfumato.ledger.hash_chain import Entry, NoAnchor, chain_hash
from sfumato.ledger.sqlite import SqliteStore, SqliteTransaction, translate_errors
from sfumato.ledger.state import State, verify
from sfumato.ledger.store import Transaction

TABLES = {
    "entries": ("seq", "text", "answer", "hash"),
    "accounts": ("name", *(f"{n}_{what}" for n in ("gauss", "pure", "rho", "leak") for what in ("limit", "spent"))),
    "requests": ("who", "key", "seq"),
    "answers": ("charge", "seq", "question", "version"),
    "blocks": ("charge", "seq", "question"),
    "head": ("id", "schema", "seq", "hash", "version"),
}
Change = tuple[str, tuple[object, ...]]  # a statement and its values


def of_lines(place: Path, lines: int) -> Ledger:
    """A ledger of so many lines, of every kind that there is."""
    ledger = Ledger.create(place, Budget(1.0, 1e-6, pure=0.1), clock=lambda: 1.7e9)
    ledger.cap("bob", Amount(gauss=10**12, leak=10**6))
    ledger.reserve("plan", Amount(gauss=10**12))
    ledger.renew(Budget(0.5, 1e-7), "May")
    ledger.new_version("June")
    receipt = ledger.charge(sf.loss.GaussianLoss(0.001), question="again", key="again")
    ledger.rerun(receipt)
    ledger.block(receipt, drawn=False)
    ledger.unblock(receipt.seq, "mended")
    ledger.rerun(receipt)
    ledger.block(receipt, drawn=False)
    losses = (sf.loss.GaussianLoss(0.001), sf.loss.PureLoss(0.001), sf.loss.GaussianLoss(0.002))
    number = 0
    while (missing := lines - ledger.verify().seq) > 0:
        who, plan = (("ann", None), ("bob", None), ("ann", "plan"))[number % 3]
        receipt = ledger.charge(losses[number % 3], question=f"q{number}", who=who, key=f"k{number}", plan=plan)
        if missing > 1 and number % 4:
            ledger.keep(receipt, number.to_bytes(4))
        number += 1
    return ledger


@dataclass(frozen=True)
class Copy:
    """A copy in memory, which looks at itself in whatever state it is."""

    connection: sqlite3.Connection

    @staticmethod
    def of(place: Path) -> "Copy":
        source, made = sqlite3.connect(place), sqlite3.connect(":memory:", isolation_level=None)
        source.backup(made)
        source.close()
        made.execute("PRAGMA ignore_check_constraints=ON")  # he who flips bits does not ask the database
        return Copy(made)

    def create(self, at: Transaction) -> None:
        raise NotImplementedError

    writing = create

    @contextmanager
    def reading(self) -> Iterator[SqliteTransaction]:
        with translate_errors(Path("copy")):
            yield SqliteTransaction(self.connection)

    def close(self) -> None:
        self.connection.close()

    def noticed(self, *changes: Change) -> bool:
        """Is this seen? A change that the database itself does not take (two rows with one key) counts as seen."""
        self.connection.execute("BEGIN")
        try:
            for sql, values in changes:
                assert self.connection.execute(sql, values).rowcount == 1, sql
            verify(self, NoAnchor())  # type: ignore[arg-type]
        except (LedgerDamaged, LedgerUnavailable, sqlite3.IntegrityError):
            return True
        finally:
            self.connection.execute("ROLLBACK")
        return False


# ---- bits and rows --------------------------------------------------------------------------------------------------


def flips(copy: Copy) -> Iterator[Change]:
    """Every bit of every value of every row."""
    for table, columns in TABLES.items():
        for row in copy.connection.execute(f"SELECT rowid, {', '.join(columns)} FROM {table}").fetchall():
            for column, value in zip(columns, row[1:], strict=True):
                for mark, changed in flipped(value):
                    yield f"UPDATE {table} SET {column} = {mark} WHERE rowid = ?", (changed, row[0])


def flipped(value: object) -> Iterator[tuple[str, object]]:
    """Each single bit changed, and how to write the result."""
    if isinstance(value, int):
        for bit in range(64):
            found = value ^ (1 << bit) if bit < 63 else value - 2**63 if value >= 0 else value + 2**63
            yield "?", found
        return
    data = value.encode() if isinstance(value, str) else value
    assert isinstance(data, bytes)
    mark = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            yield mark, bytes(changed)


def row_changes(copy: Copy) -> Iterator[list[Change]]:
    """Rows removed, swapped and appended."""
    for table in TABLES:
        for (row,) in copy.connection.execute(f"SELECT rowid FROM {table}").fetchall():
            yield [(f"DELETE FROM {table} WHERE rowid = ?", (row,))]
    lines = [Entry(*row) for row in copy.connection.execute("SELECT seq, text, answer, hash FROM entries ORDER BY seq")]
    write = "UPDATE entries SET text = ?, answer = ?, hash = ? WHERE seq = ?"
    number = "UPDATE entries SET seq = ? WHERE seq = ?"
    for one, two in pairwise(lines):
        yield [
            (write, (one.text, one.answer, one.hash, two.seq)),
            (write, (two.text, two.answer, two.hash, one.seq)),
        ]
        yield [(number, (-1, one.seq)), (number, (one.seq, two.seq)), (number, (two.seq, -1))]
    last = lines[-1]
    insert = "INSERT INTO entries (seq, text, answer, hash) VALUES (?, ?, ?, ?)"
    for seq in (last.seq + 1, 0, -1, -(2**63), 2**63 - 1):
        yield [(insert, (seq, last.text, last.answer, last.hash))]
    yield [(insert, (last.seq + 1, last.text, b"", chain_hash(last.hash, last.seq + 1, last.text, b"")))]  # it fits
    yield [("INSERT INTO accounts SELECT 'analyst eve', " + ", ".join(["1"] * 8), ())]
    yield [("INSERT INTO accounts SELECT NULL, " + ", ".join(["1"] * 8), ())]
    yield [("INSERT INTO requests VALUES ('ann', 'new', 3)", ())]
    yield [("INSERT INTO answers VALUES (3, 3, 'x', 1)", ())]
    yield [("INSERT INTO head VALUES (2, 1, 1, 'x', 1)", ())]


# ---- files ----------------------------------------------------------------------------------------------------------


def refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except (LedgerDamaged, LedgerUnavailable):
        return True
    return False


def opened(place: Path, anchor: Path) -> State:
    """The state of a ledger file, verified and closed again."""
    ledger = Ledger.open(place, anchor=anchor)
    try:
        return ledger.verify()
    finally:
        ledger.close()


def copied(source: Path, target: Path) -> Path:
    for end in ("", "-wal", "-shm"):
        Path(f"{target}{end}").unlink(missing_ok=True)
    shutil.copyfile(source, target)
    return target


def cut_wal(source: Path, target: Path, size: int) -> None:
    """What is left if only the first `size` bytes of the log reached the disk."""
    copied(source, target)
    with open(f"{source}-wal", "rb") as log:
        Path(f"{target}-wal").write_bytes(log.read(size))


def unanchored(place: Path) -> State:
    """The state of a ledger file without its anchor."""
    store = SqliteStore(place)
    try:
        return verify(store, NoAnchor())[0]
    finally:
        store.close()
