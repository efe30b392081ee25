"""The tables of a ledger and the statements on them. All other tables can be rebuilt from `entries`."""

from collections.abc import Container, Iterable, Iterator, Mapping

from sfumato.errors import InvalidParameter
from sfumato.ledger.amounts import UNITS, Amount
from sfumato.ledger.hash_chain import Entry, require_int
from sfumato.ledger.shares import ANALYST, COMMON, OTHERS, OWNER, PLAN
from sfumato.ledger.store import Transaction

SCHEMA = 2
NAMES = tuple(UNITS)
COLUMNS = ", ".join(f"{n}_limit, {n}_spent" for n in NAMES)
LEAST, PAGE = -(2**63), 1000


def create(transaction: Transaction, whole: str, blob: str) -> None:
    """Create empty tables; `whole` and `blob` are the names of the types for 64-bit integers and bytes.

    The CHECK constraints are a second safeguard: the database itself refuses to overspend an account.
    """
    counters = ", ".join(f"{n}_limit {whole} NOT NULL, {n}_spent {whole} NOT NULL" for n in NAMES)
    constraints = ", ".join(f"CHECK (0 <= {n}_spent AND {n}_spent <= {n}_limit)" for n in NAMES)
    transaction.run(
        f"CREATE TABLE entries (seq {whole} PRIMARY KEY, text TEXT NOT NULL, answer {blob} NOT NULL,"
        " hash TEXT NOT NULL)"
    )
    transaction.run(f"CREATE TABLE accounts (name TEXT PRIMARY KEY, {counters}, {constraints})")
    transaction.run(
        f"CREATE TABLE requests (who TEXT NOT NULL, key TEXT NOT NULL, seq {whole} NOT NULL, PRIMARY KEY (who, key))"
    )
    transaction.run(
        f"CREATE TABLE answers (charge {whole} PRIMARY KEY, seq {whole} NOT NULL, question TEXT NOT NULL,"
        f" version {whole} NOT NULL)"
    )
    transaction.run("CREATE INDEX stored ON answers (question, version)")
    transaction.run(f"CREATE TABLE blocks (charge {whole} PRIMARY KEY, seq {whole} NOT NULL, question TEXT NOT NULL)")
    transaction.run(
        f"CREATE TABLE head (id {whole} PRIMARY KEY CHECK (id = 1), schema {whole} NOT NULL, seq {whole} NOT NULL,"
        f" hash TEXT NOT NULL, version {whole} NOT NULL)"
    )


def head(transaction: Transaction) -> tuple[int, str, int]:
    """(last line, its hash, data version)."""
    ((seq, hash_, version),) = transaction.run("SELECT seq, hash, version FROM head WHERE id = 1")
    return require_int(seq), str(hash_), require_int(version)


def head_and_hash(transaction: Transaction, seq: int) -> tuple[int, str, int, str | None]:
    """The head, and the hash of line `seq` if it exists; one statement, since a round trip to a server is slow."""
    other = "(SELECT entries.hash FROM entries WHERE entries.seq = ?)"
    ((last, hash_, version, present),) = transaction.run(
        f"SELECT seq, hash, version, {other} FROM head WHERE id = 1", seq
    )
    return require_int(last), str(hash_), require_int(version), None if present is None else str(present)


def append(transaction: Transaction, entry: Entry, version: int) -> None:
    """Append a line, and move the head to it."""
    transaction.write("INSERT INTO entries (seq, text, answer, hash) VALUES (?, ?, ?, ?)",
             entry.seq, entry.text, entry.answer, entry.hash)  # fmt: skip
    transaction.write("UPDATE head SET seq = ?, hash = ?, version = ? WHERE id = 1", entry.seq, entry.hash, version)


def entries(transaction: Transaction, start: int = LEAST) -> Iterator[Entry]:
    """All lines from number `start` on, a page at a time."""
    while True:
        rows = transaction.run(
            f"SELECT seq, text, answer, hash FROM entries WHERE seq >= ? ORDER BY seq LIMIT {PAGE}", start
        )
        yield from map(as_entry, rows)
        if len(rows) < PAGE:
            return
        start = require_int(rows[-1][0]) + 1


def entry(transaction: Transaction, seq: int) -> Entry:
    (row,) = transaction.run("SELECT seq, text, answer, hash FROM entries WHERE seq = ?", seq)
    return as_entry(row)


def as_entry(row: Iterable[object]) -> Entry:
    seq, text, answer, hash_ = row
    if not isinstance(text, str) or not isinstance(answer, bytes) or not isinstance(hash_, str):
        raise TypeError("a line has a text, an answer in bytes and a hash")
    return Entry(require_int(seq), text, answer, hash_)


# ---- accounts -------------------------------------------------------------------------------------------------------

ENOUGH = " AND ".join(f"? <= {n}_limit - {n}_spent" for n in NAMES)
SPEND = f"UPDATE accounts SET {', '.join(f'{n}_spent = {n}_spent + ?' for n in NAMES)} WHERE name = ? AND {ENOUGH}"
LOWER = f"UPDATE accounts SET {', '.join(f'{n}_limit = {n}_limit - ?' for n in NAMES)} WHERE name = ? AND {ENOUGH}"


def accounts(transaction: Transaction) -> dict[str, tuple[Amount, Amount]]:
    """name → (limit, spent)."""
    accounts = {}
    for name, *numbers in transaction.run(f"SELECT name, {COLUMNS} FROM accounts ORDER BY name"):
        counts = [require_int(x) for x in numbers]
        accounts[str(name)] = Amount(*counts[::2]), Amount(*counts[1::2])
    return accounts


def account_for(transaction: Transaction, who: str, plan: str | None) -> str:
    """The account that pays: the plan's if one is given, otherwise that of the person who asks."""
    if plan is not None:
        require_account(transaction, f"{PLAN}{plan}")
        return f"{PLAN}{plan}"
    rows = transaction.run("SELECT name FROM accounts WHERE name = ? OR name = ?", f"{ANALYST}{who}", OTHERS)
    return paying_account({str(name) for (name,) in rows}, who)


def paying_account(accounts: Container[str], who: str) -> str:
    """The account that pays for a person's questions: their own, that of all others, or the common one."""
    if f"{ANALYST}{who}" in accounts:
        return f"{ANALYST}{who}"
    return OTHERS if OTHERS in accounts and who != OWNER else COMMON


def require_account(transaction: Transaction, name: str) -> tuple[Amount, Amount]:
    """(limit, spent) of an account that must exist."""
    account = accounts(transaction).get(name)
    if account is None:
        raise InvalidParameter(f"there is no such account.\n  found:  no {name}\n  do:     reserve it first")
    return account


def spend(transaction: Transaction, account: str, cost: Amount) -> bool:
    """Spend `cost` from an account if every counter covers it, in one statement.

    The test is `cost <= limit − spent`, never `spent + cost <= limit`: the sum could overflow 64 bits.
    """
    return transaction.update(SPEND, *cost, account, *cost) == 1


def lower_spent(transaction: Transaction, account: str, difference: Amount) -> None:
    """Lower what an account has spent: only for re-pricing."""
    changes = ", ".join(f"{n}_spent = {n}_spent - ?" for n in NAMES)
    transaction.run(f"UPDATE accounts SET {changes} WHERE name = ?", *difference, account)


def lower_limit(transaction: Transaction, account: str, amount: Amount) -> bool:
    """Lower the limit of an account if that much of it is unspent."""
    return transaction.update(LOWER, *amount, account, *amount) == 1


def raise_limit(transaction: Transaction, account: str, amount: Amount) -> None:
    """Raise the limit of an account, which may be new. Raises `InvalidParameter` if the total leaves 64 bits."""
    sum((limit for limit, _ in accounts(transaction).values()), amount)  # Amount checks that the sum fits
    if not transaction.run("SELECT name FROM accounts WHERE name = ?", account):
        marks = ", ".join("?" for _ in range(1 + 2 * len(NAMES)))
        transaction.run(f"INSERT INTO accounts (name, {COLUMNS}) VALUES ({marks})", account, *[0] * (2 * len(NAMES)))
    changes = ", ".join(f"{n}_limit = {n}_limit + ?" for n in NAMES)
    transaction.run(f"UPDATE accounts SET {changes} WHERE name = ?", *amount, account)


def replace_accounts(transaction: Transaction, accounts: Mapping[str, tuple[Amount, Amount]]) -> None:
    """Replace all accounts by these."""
    transaction.run("DELETE FROM accounts")
    marks = ", ".join("?" for _ in range(1 + 2 * len(NAMES)))
    for name, (limit, spent) in accounts.items():
        numbers = [units for pair in zip(limit, spent, strict=True) for units in pair]
        transaction.run(f"INSERT INTO accounts (name, {COLUMNS}) VALUES ({marks})", name, *numbers)
