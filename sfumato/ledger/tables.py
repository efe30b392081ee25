"""The tables of a ledger, and the few statements that touch them. All but `entries` can be made anew from `entries`."""

from collections.abc import Iterable, Iterator, Mapping

from sfumato.ledger.amounts import UNITS, Amount
from sfumato.ledger.entries import Entry, whole
from sfumato.ledger.store import Transaction

SCHEMA = 2
NAMES = tuple(UNITS)
COLUMNS = ", ".join(f"{n}_limit, {n}_spent" for n in NAMES)
LEAST, PAGE = -(2**63), 1000


def create(at: Transaction, whole: str, blob: str) -> None:
    """Empty tables, given what whole numbers and bytes are called here.

    The checks are a second fence: an account can never be overspent.
    """
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
    at.run(f"CREATE TABLE blocks (charge {whole} PRIMARY KEY, seq {whole} NOT NULL, question TEXT NOT NULL)")
    at.run(
        f"CREATE TABLE head (id {whole} PRIMARY KEY CHECK (id = 1), schema {whole} NOT NULL, seq {whole} NOT NULL,"
        f" hash TEXT NOT NULL, version {whole} NOT NULL)"
    )


def head(at: Transaction) -> tuple[int, str, int]:
    """(last line, its hash, data version)."""
    ((seq, hash_, version),) = at.run("SELECT seq, hash, version FROM head WHERE id = 1")
    return whole(seq), str(hash_), whole(version)


def head_and(at: Transaction, seq: int) -> tuple[int, str, int, str | None]:
    """The head, and the hash of another line, if it is there."""
    other = "(SELECT entries.hash FROM entries WHERE entries.seq = ?)"
    ((last, hash_, version, found),) = at.run(f"SELECT seq, hash, version, {other} FROM head WHERE id = 1", seq)
    return whole(last), str(hash_), whole(version), None if found is None else str(found)


def append(at: Transaction, entry: Entry, version: int) -> None:
    """One more line, and the head moved to it."""
    at.write("INSERT INTO entries (seq, text, answer, hash) VALUES (?, ?, ?, ?)", *_stored(entry))
    at.write("UPDATE head SET seq = ?, hash = ?, version = ? WHERE id = 1", entry.seq, entry.hash, version)


def _stored(entry: Entry) -> tuple[object, ...]:
    return entry.seq, entry.text, entry.answer, entry.hash


def entries(at: Transaction, start: int = LEAST) -> Iterator[Entry]:
    """All lines from number `start` on, a page at a time."""
    while True:
        rows = at.run(f"SELECT seq, text, answer, hash FROM entries WHERE seq >= ? ORDER BY seq LIMIT {PAGE}", start)
        yield from map(as_entry, rows)
        if len(rows) < PAGE:
            return
        start = whole(rows[-1][0]) + 1


def entry(at: Transaction, seq: int) -> Entry:
    (row,) = at.run("SELECT seq, text, answer, hash FROM entries WHERE seq = ?", seq)
    return as_entry(row)


def as_entry(row: Iterable[object]) -> Entry:
    seq, text, answer, hash_ = row
    if not isinstance(text, str) or not isinstance(answer, bytes) or not isinstance(hash_, str):
        raise TypeError("a line is a text, bytes and a hash")
    return Entry(whole(seq), text, answer, hash_)


# ---- accounts -------------------------------------------------------------------------------------------------------

ENOUGH = " AND ".join(f"? <= {n}_limit - {n}_spent" for n in NAMES)
SPEND = f"UPDATE accounts SET {', '.join(f'{n}_spent = {n}_spent + ?' for n in NAMES)} WHERE name = ? AND {ENOUGH}"
SHRINK = f"UPDATE accounts SET {', '.join(f'{n}_limit = {n}_limit - ?' for n in NAMES)} WHERE name = ? AND {ENOUGH}"


def accounts(at: Transaction) -> dict[str, tuple[Amount, Amount]]:
    """name → (limit, spent)."""
    found = {}
    for name, *numbers in at.run(f"SELECT name, {COLUMNS} FROM accounts ORDER BY name"):
        counts = [whole(x) for x in numbers]
        found[str(name)] = Amount(*counts[::2]), Amount(*counts[1::2])
    return found


def spend(at: Transaction, account: str, cost: Amount) -> bool:
    """Take `cost` from an account if it holds that much, all counters in one statement.

    `cost <= limit − spent`, never `spent + cost <= limit`: a sum could leave 64 bits.
    """
    return at.changed(SPEND, *cost, account, *cost) == 1


def give_back(at: Transaction, account: str, difference: Amount) -> None:
    """Lower what was spent: re-pricing."""
    changes = ", ".join(f"{n}_spent = {n}_spent - ?" for n in NAMES)
    at.run(f"UPDATE accounts SET {changes} WHERE name = ?", *difference, account)


def shrink(at: Transaction, account: str, amount: Amount) -> bool:
    """Lower the limit of an account by what it has not spent."""
    return at.changed(SHRINK, *amount, account, *amount) == 1


def grow(at: Transaction, account: str, amount: Amount) -> None:
    """Raise the limit of an account, which may be new. Raises `InvalidParameter` where 64 bits do not hold them all."""
    sum((limit for limit, _ in accounts(at).values()), amount)
    if not at.run("SELECT name FROM accounts WHERE name = ?", account):
        marks = ", ".join("?" for _ in range(1 + 2 * len(NAMES)))
        at.run(f"INSERT INTO accounts (name, {COLUMNS}) VALUES ({marks})", account, *[0] * (2 * len(NAMES)))
    changes = ", ".join(f"{n}_limit = {n}_limit + ?" for n in NAMES)
    at.run(f"UPDATE accounts SET {changes} WHERE name = ?", *amount, account)


def put(at: Transaction, accounts: Mapping[str, tuple[Amount, Amount]]) -> None:
    """These accounts, instead of those that there were."""
    at.run("DELETE FROM accounts")
    marks = ", ".join("?" for _ in range(1 + 2 * len(NAMES)))
    for name, (limit, spent) in accounts.items():
        numbers = [units for pair in zip(limit, spent, strict=True) for units in pair]
        at.run(f"INSERT INTO accounts (name, {COLUMNS}) VALUES ({marks})", name, *numbers)
