"""The journal of a ledger: each transaction appends at most one hash-chained line, and marks it in the anchor."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sfumato.errors import LedgerUnavailable
from sfumato.ledger import tables
from sfumato.ledger.budgets import Promise, describe_budget
from sfumato.ledger.hash_chain import START, Anchor, Entry, chain_entry
from sfumato.ledger.shares import COMMON
from sfumato.ledger.state import damage_error
from sfumato.ledger.store import Store, Transaction

Probe = Callable[[str], None]  # called at named points: fault tests kill the process there
Mark = tuple[int, str]  # number and hash of a line


def ignore(point: str) -> None:
    """The probe that does nothing: for ledgers and curators that are not under test."""


@dataclass(frozen=True)
class NextLine:
    """The line that a transaction may append. If nothing is written, the journal stays as it is."""

    transaction: Transaction
    act: str
    seq: int  # its number
    before: str  # the hash of the line before
    version: int  # of the data
    clock: Callable[[], float]
    probe: Probe
    written: list[Entry] = field(default_factory=list)

    def write(self, content: Mapping[str, object], answer: bytes = b"", version: int | None = None) -> None:
        """Append the line; `version` is the new data version, if this line changes it."""
        entry = chain_entry(self.before, self.seq, {**content, "time": self.clock()}, answer)
        tables.append(self.transaction, entry, self.version if version is None else version)
        self.written.append(entry)
        self.probe(f"{self.act}: written")


@dataclass(frozen=True)
class Journal:
    """The lines of one ledger, as one process sees them. `seen` holds the newest line that it knows of."""

    store: Store
    anchor: Anchor
    clock: Callable[[], float]
    probe: Probe
    seen: list[Mark]

    def start(self, promise: Promise) -> None:
        """Create the tables, and write the first line: the budget."""
        first = {"kind": "opened", "time": self.clock(), "ledger": random_name(), "budget": describe_budget(promise)}
        with self.store.writing() as transaction:
            self.store.create(transaction)
            entry = chain_entry(START, 1, {**first, "amount": list(promise.amount)})
            transaction.run("INSERT INTO head (id, schema, seq, hash, version) VALUES (1, ?, 0, '', 1)", tables.SCHEMA)
            tables.raise_limit(transaction, COMMON, promise.amount)
            tables.append(transaction, entry, 1)
        self.mark(entry.seq, entry.hash)

    def mark(self, seq: int, hash_: str) -> None:
        """Record in the anchor, and then here, that the journal has come this far."""
        self.anchor.push(seq, hash_)
        self.seen[:] = [(seq, hash_)]

    @contextmanager
    def append(self, act: str) -> Iterator[NextLine]:
        """A transaction that writes at most one line. It is committed and anchored when this block ends."""
        self.probe(f"{act}: waiting")
        with self.store.writing() as transaction:
            known, mark = self.seen[0] if self.seen else (0, None)
            seq, hash_, version, present = tables.head_and_hash(transaction, known)
            self.probe(f"{act}: locked")
            if present != mark:
                raise damage_error(known, "this process has seen it, and now it is missing: an old copy was put back")
            line = NextLine(transaction, act, seq + 1, hash_, version, self.clock, self.probe)
            yield line
            self.probe(f"{act}: committing")
        self.probe(f"{act}: committed")
        self.mark(*((line.written[-1].seq, line.written[-1].hash) if line.written else (seq, hash_)))
        self.probe(f"{act}: anchored")


def random_name() -> str:
    """A unique name: 128 random bits."""
    try:
        return secrets.token_hex(16)
    except (OSError, NotImplementedError) as problem:
        raise LedgerUnavailable(
            f"the operating system gives no random numbers.\n  found:  {type(problem).__name__}\n"
            "  do:     repair its random number generator; nothing was charged"
        ) from problem
