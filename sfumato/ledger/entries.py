"""One line of a ledger, and the chain that holds the lines together.

hash₀ = SHA-256("sfumato ledger"); hashₙ = SHA-256(hashₙ₋₁ ‖ n ‖ SHA-256(textₙ) ‖ SHA-256(answerₙ)): who changes, drops,
swaps or inserts a line changes every hash after it. What a chain alone cannot show, that its end was cut off, an anchor
does.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

START = hashlib.sha256(b"sfumato ledger").hexdigest()
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


@dataclass(frozen=True)
class Entry:
    """Line `seq`, as stored: its text (canonical JSON), the answer that belongs to it, its hash."""

    seq: int
    text: str
    answer: bytes
    hash: str

    @property
    def content(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.text)
        return found


def line(before: str, seq: int, content: Mapping[str, object], answer: bytes = b"") -> Entry:
    """The next line after the hash `before`."""
    text = CANONICAL.encode(dict(content))
    return Entry(seq, text, answer, chained(before, seq, text, answer))


def chained(before: str, seq: int, text: str, answer: bytes) -> str:
    """The hash of a line."""
    parts = (bytes.fromhex(before), seq.to_bytes(8), digest(text.encode()), digest(answer))
    return hashlib.sha256(b"".join(parts)).hexdigest()


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError("not a whole number")
    return value
