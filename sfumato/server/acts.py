"""What the audit log holds of one act, and how a request is named."""

import hashlib
import json
import math
import secrets
from dataclasses import dataclass

from sfumato.curator.answer import Answer


@dataclass(eq=False)
class Act:
    """What is recorded of one act, when it ends."""

    content: dict[str, object]
    durable: bool = False


def note_answer(act: Act, answer: Answer) -> None:
    """What the audit log holds of an answer: its price, and a hash of what was released."""
    released = json.dumps([answer.columns, answer.rows], default=str, ensure_ascii=False)
    hash_ = hashlib.sha256(released.encode("utf-8", "surrogatepass")).hexdigest()
    paid = {"epsilon": answer.epsilon, "delta": answer.delta, "charged": answer.charged, "answer": hash_}
    act.content |= paid
    act.durable = answer.charged


def new_key() -> str:
    """An idempotency key that nobody else has."""
    return secrets.token_hex(16)


def request_id(data: str, who: str, key: str) -> str:
    """The public name of a request: the same for the same key of the same person."""
    return hashlib.sha256(json.dumps([data, who, key]).encode()).hexdigest()[:32]


def clean_text(value: object) -> object:
    """A value that any file can hold: no broken text, and numbers that JSON does not have as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
