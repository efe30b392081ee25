"""One line of a ledger, and the hash chain over its lines.

hash₀ = SHA-256("sfumato ledger"); hashₙ = SHA-256(hashₙ₋₁ ‖ n ‖ SHA-256(textₙ) ‖ SHA-256(answerₙ)). Changing, dropping,
swapping or inserting a line changes every later hash. A chain alone cannot show that its end was cut off; the anchor
does (`anchor.py`).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

START = hashlib.sha256(b"sfumato ledger").hexdigest()
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


@dataclass(frozen=True)
class Entry:
    """Line `seq` as stored: its text (canonical JSON), the answer that belongs to it, and its hash."""

    seq: int
    text: str
    answer: bytes
    hash: str

    @property
    def content(self) -> dict[str, object]:
        parsed: dict[str, object] = json.loads(self.text)
        return parsed


def chain_entry(before: str, seq: int, content: Mapping[str, object], answer: bytes = b"") -> Entry:
    """The line that follows the one with hash `before`."""
    text = CANONICAL.encode(dict(content))
    return Entry(seq, text, answer, chain_hash(before, seq, text, answer))


def chain_hash(before: str, seq: int, text: str, answer: bytes) -> str:
    """The hash of a line, from the hash of the line before and its own content."""
    parts = (bytes.fromhex(before), seq.to_bytes(8), digest(text.encode()), digest(answer))
    return hashlib.sha256(b"".join(parts)).hexdigest()


def question_hash(question: str) -> str:
    """The lookup key of a question: its hash, since its text may be too long for an index."""
    return digest(question.encode()).hex()


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def require_int(value: object) -> int:
    if type(value) is not int:
        raise TypeError("not a whole number")
    return value
