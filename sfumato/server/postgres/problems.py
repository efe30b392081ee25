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
HINT = "ask one SELECT with keys and aggregates of the tables in sfumato.catalogue"
WRAPPED = re.compile(r"\s*(?:EXPLAIN\s+PRIVACY\s+|COPY\s*\(|DECLARE\b.*?\bFOR\s+)", re.I | re.S)
OF_ALL = ("this is not SQL", "ask exactly one SELECT", "COPY works", "the plan of an engine")  # not about one word
NAMED = re.compile(r"'([^'\n]+)'|\b(\w+)(?=\()|\b([A-Z]{3,})\b")  # what an error is about


class NoSuchName(QueryRefused):
    """A name of a statement, a cursor or a savepoint that is not known, with its SQLSTATE."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


class TransactionFailed(QueryRefused):
    """A command in a transaction after an error in it."""


def error_response(
    code: str, words: str, detail: str = "", hint: str = "", severity: str = "ERROR", at: int = 0
) -> bytes:  # fmt: skip
    return messages.report(b"E", severity, code, words, detail, hint, at)


def position(words: str, text: str) -> int:
    """The character of a text that an error is about, counted from 1; 0 if it does not say."""
    inside = WRAPPED.match(text)
    start = inside.end() if inside else 0
    found = re.search(r"at(?: |:\s+)line (\d+), column (\d+)", words)
    if found is not None:
        line, column = int(found[1]), int(found[2])
        return start + sum(len(one) + 1 for one in text[start:].split("\n")[: line - 1]) + column
    if words.startswith(OF_ALL):
        return start + len(text[start:]) - len(text[start:].lstrip()) + 1
    named = NAMED.search(words)
    if named is None:
        return 0
    name = re.escape(next(filter(None, named.groups())))
    places = re.finditer(rf"'(?:[^']|'')*'|--[^\n]*|(?<!\w)(?P<name>{name})(?!\w)", text[start:], re.I)
    return next((start + place.start() + 1 for place in places if place["name"]), 0)


def problem_response(problem: SfumatoError, severity: str = "ERROR", text: str = "") -> bytes:
    """What was wrong, found and to do, as message, detail and hint; and where, if it says so."""
    parts: dict[str, list[str]] = {"": []}
    at = ""
    for line in str(problem).splitlines():
        label, _, rest = line.strip().partition(":")
        if line.startswith("  ") and label in ("at", "found", "do"):
            at, line = label, rest
        parts.setdefault(at, []).append(line.strip())
    words, detail, hint = (" ".join(parts.get(name, ())) for name in ("", "found", "do"))
    code = code_of(problem, words)
    if code in ("42501", "42601") and not hint:
        hint = HINT
    place = position(str(problem), text) if code.startswith("42") else 0
    return error_response(code, words, detail, hint, severity, place)


def code_of(problem: SfumatoError, words: str) -> str:
    """Its SQLSTATE."""
    if isinstance(problem, NoSuchName):
        return problem.code
    if isinstance(problem, TransactionFailed):
        return "25P02"
    if isinstance(problem, QueryRefused) and words.startswith("this is not SQL"):
        return "42601"
    return next((code for kind, code in CODES if isinstance(problem, kind)), "XX000")
