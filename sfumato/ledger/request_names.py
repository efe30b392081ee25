"""What a request to a ledger is made of: texts of a decent length, and names that nobody else has."""

import secrets

from sfumato.errors import InvalidParameter, LedgerUnavailable
from sfumato.loss.base import PrivacyLoss


def request(loss: PrivacyLoss, question: str, who: str, key: str) -> dict[str, str]:
    return {
        "who": text("who", who),
        "key": text("key", key),
        "question": text("question", question, 1 << 20),
        "loss": loss.to_json(),
    }


def random_name() -> str:
    try:
        return secrets.token_hex(16)
    except (OSError, NotImplementedError) as problem:
        raise LedgerUnavailable(
            f"there is no randomness to be had.\n  found:  {type(problem).__name__}\n"
            "  do:     see to the operating system's generator; nothing was charged"
        ) from problem


def text(name: str, value: object, most: int = 200) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= most or "\0" in value or not encodable(value):
        found = f"{len(value)} characters" if isinstance(value, str) else f"a {type(value).__name__}"
        raise InvalidParameter(f"{name} must be a text.\n  found:  {found}\n  do:     give 1 to {most:,} characters")
    return value


def encodable(value: str) -> bool:
    """Without halves of characters, which no encoding takes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
