"""SCRAM-SHA-256 (RFC 5802, RFC 7677), the words of the server: a client proves a token without sending it.

What is proved is decided by `Identity.prove`; here messages are taken apart and put together.
"""

import base64
import binascii
import secrets
from dataclasses import dataclass, field

from sfumato.server.postgres.messages import ProtocolError

NAME = "SCRAM-SHA-256"


@dataclass
class Exchange:
    """One try to log in."""

    salt: bytes
    iterations: int
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    header: str = ""
    client_first: str = ""
    server_first: str = ""

    def challenge(self, first: bytes) -> bytes:
        """The reply to the client's first message, `n,,n=user,r=nonce`."""
        words = text_of(first).split(",", 2)
        if len(words) != 3 or words[0] not in ("n", "y") or words[1]:
            raise ProtocolError("this login needs SCRAM-SHA-256 without channel binding")
        self.header, self.client_first = f"{words[0]},,", words[2]
        client = fields_of(self.client_first).get("r", "")
        if not client:
            raise ProtocolError("a login without a nonce")
        self.server_first = f"r={client}{self.nonce},s={base64.b64encode(self.salt).decode()},i={self.iterations}"
        return self.server_first.encode()

    def proof(self, final: bytes) -> tuple[bytes, bytes]:
        """The message that is signed and the client's proof, from `c=…,r=nonce,p=proof`. A reply to another challenge
        gives a proof that proves nothing."""
        words = text_of(final)
        fields = fields_of(words)
        try:
            proof = base64.b64decode(fields.get("p", ""), validate=True)
        except (binascii.Error, ValueError):
            proof = b""
        same = fields.get("r") == fields_of(self.server_first)["r"]
        if not same or fields.get("c") != base64.b64encode(self.header.encode()).decode():
            proof = b""
        return ",".join([self.client_first, self.server_first, words.rpartition(",p=")[0]]).encode(), proof


def signed(signature: bytes) -> bytes:
    """The server's last message."""
    return b"v=" + base64.b64encode(signature)


def text_of(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ProtocolError("a login that is no text") from None


def fields_of(words: str) -> dict[str, str]:
    """`r=…,s=…` by letters."""
    return {part[0]: part[2:] for part in words.split(",") if part[1:2] == "="}
