"""Errors of the PostgreSQL door: codes (SQLSTATE), hints and positions for the errors of sfumato."""

import re

from sfumato.errors import (
    BudgetExceeded,
    EngineUnavailable,
    InvalidParameter,
    LedgerUnavailable,
    NotAuthenticated,
    QueryRefused,
    QuestionBlocked,
    SfumatoError,
    TooManyRequests,
)
from sfumato.server.postgres import messages
from sfumato.server.postgres.messages import ProtocolError

CODES: tuple[tuple[type[BaseException], str], ...] = (
    (BudgetExceeded, "53400"), (QuestionBlocked, "55000"), (InvalidParameter, "22023"), (QueryRefused, "42501"),
    (EngineUnavailable, "58000"), (LedgerUnavailable, "57P03"),
    (TooManyRequests, "53300"), (NotAuthenticated, "28000"), (ProtocolError, "08P01"),
)  # fmt: skip


class TransactionFailed(QueryRefused):
    """A command in a transaction after an error in it."""


def error_response(
    code: str, words: str, detail: str = "", hint: str = "", severity: str = "ERROR", at: int = 0
) -> bytes:  # fmt: skip
    return messages.report(b"E", severity, code, words, detail, hint, at)


def position(words: str, text: str) -> int:
    """The character of a text that an error is about, counted from 1; 0 if it does not say."""
    found = re.search(r"at line (\d+), column (\d+)", words)
    if found is None:
        return 0
    line, column = int(found[1]), int(found[2])
    return sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column


def problem_response(problem: SfumatoError, severity: str = "ERROR", text: str = "") -> bytes:
    """What was wrong, found and to do, as message, detail and hint; and where, if it says so."""
    parts: dict[str, list[str]] = {"": []}
    at = ""
    for line in str(problem).splitlines():
        label, _, rest = line.strip().partition(":")
        if line.startswith("  ") and label in ("found", "do"):
            at, line = label, rest
        parts.setdefault(at, []).append(line.strip())
    words, detail, hint = (" ".join(parts.get(name, ())) for name in ("", "found", "do"))
    code = "25P02" if isinstance(problem, TransactionFailed) else next(
        (code for kind, code in CODES if isinstance(problem, kind)), "XX000"
    )  # fmt: skip
    if code == "42501" and words.startswith("this is not SQL"):
        code = "42601"
    return error_response(code, words, detail, hint, severity, position(words, text))
