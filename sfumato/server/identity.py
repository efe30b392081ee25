"""Who may ask: tokens, as rows beside the ledger of each data set, so that people and shares are kept in one store.

A token is `sf_ID_SECRET`. The ID is public; the secret has 256 random bits, so a plain SHA-256 of it is safe at rest.
The same rows hold what SCRAM-SHA-256 needs (RFC 5802, RFC 7677), with the token as the password. A token says who
somebody is and what they may do; how much they may spend is the policy's, and an act in the ledger.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from sfumato.errors import InvalidParameter, NotAuthenticated
from sfumato.ledger.backup import ExtraTable
from sfumato.ledger.shares import OWNER
from sfumato.ledger.store import Row, Store
from sfumato.sql.policy import confusable_form

PREFIX = "sf"
ITERATIONS = 4096  # the least that RFC 7677 allows: a secret of 256 bits gains nothing from more
DAYS, LONGEST_DAYS = 90, 3650
DAY = 86_400
COLUMNS = "id, who, role, hash, stored_key, server_key, created, expires, revoked"
TABLES = (
    ExtraTable(
        "tokens",
        "CREATE TABLE IF NOT EXISTS tokens (id TEXT PRIMARY KEY, who TEXT NOT NULL, role TEXT NOT NULL,"
        " hash TEXT NOT NULL, stored_key TEXT NOT NULL, server_key TEXT NOT NULL, created BIGINT NOT NULL,"
        " expires BIGINT NOT NULL, revoked BIGINT NOT NULL)",
        COLUMNS,
    ),
    ExtraTable(
        "token_salt",
        "CREATE TABLE IF NOT EXISTS token_salt (id BIGINT PRIMARY KEY CHECK (id = 1), secret TEXT NOT NULL)",
        "id, secret",
    ),
)
WRONG = "this token is not valid here.\n  do:     check it, or ask the owner for a new one: sfumato token new"


class Role(StrEnum):
    """What a token lets its holder do."""

    OWNER = "owner"  # everything
    STEWARD = "steward"  # asks, tries out policies, and gives tokens to analysts and auditors
    ANALYST = "analyst"  # asks
    AUDITOR = "auditor"  # reads the ledger and the audit log; does not ask


@dataclass(frozen=True)
class Token:
    """A token without its secret."""

    id: str
    who: str
    role: Role
    created: int  # seconds since 1970
    expires: int
    revoked: int = 0  # 0: it is not
    hash: bytes = field(default=b"", repr=False)
    stored_key: bytes = field(default=b"", repr=False)
    server_key: bytes = field(default=b"", repr=False)

    def valid(self, now: float) -> bool:
        return not self.revoked and now < self.expires


@dataclass(frozen=True)
class Challenge:
    """What a server sends first in SCRAM: the same for people who exist and for those who do not."""

    salt: bytes
    iterations: int = ITERATIONS


@dataclass(frozen=True, eq=False)
class Identity:
    """The tokens of one data set, in the store of its ledger."""

    store: Store
    clock: Callable[[], float] = field(default=time.time, repr=False)

    @staticmethod
    def open(store: Store, clock: Callable[[], float] = time.time) -> "Identity":
        """Create the tables where there are none."""
        with store.writing() as transaction:
            for table in TABLES:
                transaction.run(table.create)
            if not transaction.run("SELECT id FROM token_salt"):
                transaction.run("INSERT INTO token_salt (id, secret) VALUES (1, ?)", secrets.token_hex(32))
        return Identity(store, clock)

    # ---- giving and taking --------------------------------------------------------------------------------------

    def new(self, who: str, role: Role, days: float = DAYS, *, text: str | None = None) -> str:
        """A new token; its text is told once and never stored. `text` gives one that another data set knows already."""
        require_name(who, role)
        if not 0 < days <= LONGEST_DAYS:
            raise InvalidParameter(
                f"a token must expire.\n  found:  {days:g} days\n  do:     give at most {LONGEST_DAYS}"
            )
        made = text or f"{PREFIX}_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"
        id_, secret = split_token(made)
        stored, server = scram_keys(made, self.challenge(who))
        now = int(self.clock())
        with self.store.writing() as transaction:
            for (other,) in transaction.run("SELECT DISTINCT who FROM tokens"):
                if other != who and confusable_form(str(other)) == confusable_form(who):
                    raise InvalidParameter(
                        f"somebody else's name looks the same.\n  found:  {other!r}\n  do:     write it the same way"
                    )
            transaction.run(
                f"INSERT INTO tokens ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
                id_, who, role.value, digest(secret).hex(), stored.hex(), server.hex(), now, now + int(days * DAY),
            )  # fmt: skip
        return made

    def revoke(self, id_: str) -> bool:
        """End a token at once; False if there is none of this ID that still lasts."""
        with self.store.writing() as transaction:
            sql = "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked = 0"
            return transaction.update(sql, max(1, int(self.clock())), id_) == 1

    def list(self) -> list[Token]:
        """All tokens that were ever given, the oldest first."""
        with self.store.reading() as transaction:
            return [read_row(row) for row in transaction.run(f"SELECT {COLUMNS} FROM tokens ORDER BY created, id")]

    # ---- who is this? -------------------------------------------------------------------------------------------

    def authenticate(self, text: str) -> Token:
        """The token with this text. Raises NotAuthenticated, without a reason."""
        try:
            id_, secret = split_token(text)
        except InvalidParameter:
            raise NotAuthenticated(WRONG) from None
        found = self.find(id_)
        known = found.hash if found else bytes(32)
        if not hmac.compare_digest(digest(secret), known) or found is None or not found.valid(self.clock()):
            raise NotAuthenticated(WRONG)
        return found

    def find(self, id_: str) -> Token | None:
        """The token of this ID, valid or not."""
        with self.store.reading() as transaction:
            rows = transaction.run(f"SELECT {COLUMNS} FROM tokens WHERE id = ?", id_)
        return read_row(rows[0]) if rows else None

    def newest(self, who: str) -> Token | None:
        """The newest valid token of this name: for people whose identity somebody else has verified."""
        with self.store.reading() as transaction:
            sql = f"SELECT {COLUMNS} FROM tokens WHERE who = ? AND revoked = 0 ORDER BY created DESC, id"
            found = map(read_row, transaction.run(sql, who))
        return next((token for token in found if token.valid(self.clock())), None)

    def challenge(self, who: str) -> Challenge:
        """One salt for all tokens of a name, so that any of them can be the password."""
        with self.store.reading() as transaction:
            ((secret,),) = transaction.run("SELECT secret FROM token_salt WHERE id = 1")
        salt = hmac.digest(bytes.fromhex(str(secret)), who.encode("utf-8", "surrogatepass"), "sha256")[:16]
        return Challenge(salt)

    def prove(self, who: str, message: bytes, proof: bytes) -> tuple[Token, bytes]:
        """The token whose holder made this SCRAM proof of the authentication message, and the server's signature."""
        with self.store.reading() as transaction:
            rows = transaction.run(f"SELECT {COLUMNS} FROM tokens WHERE who = ? AND revoked = 0", who)
        match: Token | None = None
        for token in map(read_row, rows):
            signature = hmac.digest(token.stored_key, message, "sha256")
            client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=False))
            if hmac.compare_digest(digest(client_key), token.stored_key) and token.valid(self.clock()):
                match = token
        if match is None or len(proof) != 32:
            raise NotAuthenticated(WRONG)
        return match, hmac.digest(match.server_key, message, "sha256")


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def scram_keys(password: str, challenge: Challenge) -> tuple[bytes, bytes]:
    """(StoredKey, ServerKey) of RFC 5802, section 3."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), challenge.salt, challenge.iterations)
    return digest(hmac.digest(salted, b"Client Key", "sha256")), hmac.digest(salted, b"Server Key", "sha256")


def split_token(text: str) -> tuple[str, bytes]:
    """(ID, secret) of the text of a token."""
    parts = text.strip().split("_", 2)
    if len(parts) != 3 or parts[0] != PREFIX or len(parts[1]) != 8 or len(parts[2]) < 43 or not text.isascii():
        raise InvalidParameter(
            "this is no token.\n  found:  another form\n"
            f"  do:     give the whole text that `sfumato token new` printed: {PREFIX}_…_…"
        )
    return parts[1], parts[2].encode()


def require_name(who: str, role: Role) -> None:
    """Names are those of policies; the owner's name is the owner's."""
    if not 0 < len(who) <= 200 or who != who.strip() or not who.isprintable():
        raise InvalidParameter(
            f"nobody is called {who!r}.\n  do:     give 1 to 200 printed characters, without spaces around them"
        )
    if confusable_form(who) == OWNER and (who != OWNER or role is not Role.OWNER):
        raise InvalidParameter(
            f"the name {OWNER!r} is the owner's.\n  found:  {who!r} with the role {role.value}\n"
            "  do:     choose another name, or --role owner"
        )


def read_row(row: Row) -> Token:
    id_, who, role, hash_, stored, server, created, expires, revoked = row
    return Token(
        str(id_), str(who), Role(str(role)), int(str(created)), int(str(expires)), int(str(revoked)),
        *(bytes.fromhex(str(part)) for part in (hash_, stored, server)),
    )  # fmt: skip
