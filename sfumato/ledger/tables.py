"""The tables of a ledger, and the few statements that touch them. All but `entries` can be made anew from `entries`."""

from collections.abc import Iterable, Mapping

from sfumato.ledger.amounts import UNITS, Amount
from sfumato.ledger.entries import Entry
from sfumato.ledger.store import Transaction

SCHEMA = 1
NAMES = tuple(UNITS)
COLUMNS = ", ".join(f"{n}_limit, {n}_spent" for n in NAMES)


def create(at: Transaction, types: Mapping[str, str]) -> None:
    """Empty tables. The checks are a second fence: an account can never be overspent."""
    whole, blob = types["whole"], types["bytes"]
    counters = ", ".join(f"{n}_limit {whole} NOT NULL, {n}_spent {whole} NOT NULL" for n in NAMES)
    fences = ", ".join(f"CHECK (0 <= {n}_spent AND {n}_spent <= {n}_limit)" for n in NAMES)
    at.run(
        f"CREATE TABLE entries (seq {whole} PRIMARY KEY, text TEXT NOT NULL, answer {blob} NOT NULL,"
        " hash TEXT NOT NULL)"
    )
    at.run(f"CREATE TABLE accounts (name TEXT PRIMARY KEY, {counters}, {fences})")
    at.run(
        f"CREATE TABLE requests (who TEXT NOT NULL, key TEXT NOT NULL, seq {whole} NOT NULL, PRIMARY KEY (who, key))"
    )
    at.run(
        f"CREATE TABLE answers (charge {whole} PRIMARY KEY, seq {whole} NOT NULL, question TEXT NOT NULL,"
        f" version {whole} NOT NULL)"
    )
    at.run("CREATE INDEX stored ON answers (question, version)")
    at.run(
        f"CREATE TABLE head (id {whole} PRIMARY KEY CHECK (id = 1), schema {whole} NOT NULL, seq {whole} NOT NULL,"
        f" hash TEXT NOT NULL, version {whole} NOT NULL)"
    )


def head(at: Transaction) -> tuple[int, str, int]:
    """(last line, its hash, data version)."""
    ((seq, hash_, version),) = at.run("SELECT seq, hash, version FROM head WHERE id = 1")
    return int(str(seq)), str(hash_), int(str(version))


def append(at: Transaction, entry: Entry, version: int) -> None:
    """One more line, and the head moved to it."""
    at.run("INSERT INTO entries (seq, text, answer, hash) VALUES (?, ?, ?, ?)", *_stored(entry))
    at.run("UPDATE head SET seq = ?, hash = ?, version = ? WHERE id = 1", entry.seq, entry.hash, version)


def _stored(entry: Entry) -> tuple[object, ...]:
    return entry.seq, entry.text, entry.answer, entry.hash


def entries(at: Transaction, after: int = 0) -> list[Entry]:
    rows = at.run("SELECT seq, text, answer, hash FROM entries WHERE seq > ? ORDER BY seq", after)
    return [as_entry(row) for row in rows]


def entry(at: Transaction, seq: int) -> Entry:
    (row,) = at.run("SELECT seq, text, answer, hash FROM entries WHERE seq = ?", seq)
    return as_entry(row)


def as_entry(row: Iterable[object]) -> Entry:
    seq, text, answer, hash_ = row
    return Entry(int(str(seq)), str(text), bytes(answer), str(hash_))  # type: ignore[call-overload]


# ---- accounts -------------------------------------------------------------------------------------------------------


def accounts(at: Transaction) -> dict[str, tuple[Amount, Amount]]:
    """name → (limit, spent)."""
    found = {}
    for name, *numbers in at.run(f"SELECT name, {COLUMNS} FROM accounts ORDER BY name"):
        whole = [int(str(x)) for x in numbers]
        found[str(name)] = Amount(*whole[::2]), Amount(*whole[1::2])
    return found


def spend(at: Transaction, account: str, cost: Amount) -> bool:
    """Take `cost` from an account if it holds that much, all counters in one statement.

    `cost <= limit − spent`, never `spent + cost <= limit`: a sum could leave 64 bits.
    """
    changes = ", ".join(f"{n}_spent = {n}_spent + ?" for n in NAMES)
    enough = " AND ".join(f"? <= {n}_limit - {n}_spent" for n in NAMES)
    return at.changed(f"UPDATE accounts SET {changes} WHERE name = ? AND {enough}", *cost, account, *cost) == 1


def give_back(at: Transaction, account: str, difference: Amount) -> None:
    """Lower what was spent: re-pricing."""
    changes = ", ".join(f"{n}_spent = {n}_spent - ?" for n in NAMES)
    at.run(f"UPDATE accounts SET {changes} WHERE name = ?", *difference, account)


def shrink(at: Transaction, account: str, amount: Amount) -> bool:
    """Lower the limit of an account by what it has not spent."""
    changes = ", ".join(f"{n}_limit = {n}_limit - ?" for n in NAMES)
    enough = " AND ".join(f"? <= {n}_limit - {n}_spent" for n in NAMES)
    return at.changed(f"UPDATE accounts SET {changes} WHERE name = ? AND {enough}", *amount, account, *amount) == 1


def grow(at: Transaction, account: str, amount: Amount) -> None:
    """Raise the limit of an account, which may be new."""
    if not at.run("SELECT name FROM accounts WHERE name = ?", account):
        marks = ", ".join("?" for _ in range(1 + 2 * len(NAMES)))
        at.run(f"INSERT INTO accounts (name, {COLUMNS}) VALUES ({marks})", account, *[0] * (2 * len(NAMES)))
    changes = ", ".join(f"{n}_limit = {n}_limit + ?" for n in NAMES)
    at.run(f"UPDATE accounts SET {changes} WHERE name = ?", *amount, account)
