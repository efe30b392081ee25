"""One line of a ledger, the hash chain over its lines, and the anchor of its end.

hash₀ = SHA-256("sfumato ledger"); hashₙ = SHA-256(hashₙ₋₁ ‖ n ‖ SHA-256(textₙ) ‖ SHA-256(answerₙ)). Changing, dropping,
swapping or inserting a line changes every later hash. A chain alone cannot show that its end was cut off. The anchor
does: a second place that records how far the ledger has come.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sfumato.errors import LedgerUnavailable

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


# ---- the anchor -----------------------------------------------------------------------------------------------------


class Anchor(Protocol):
    """Gets (line number, hash) after every commit and before anything is released."""

    def push(self, seq: int, hash_: str) -> None: ...

    def marks(self) -> Iterator[tuple[int, str]]:
        """All marks that were pushed, in any order."""


@dataclass(frozen=True)
class FileAnchor:
    """A file to which each commit appends one line, flushed to the disk. Best kept on another disk or machine.

    Appending needs no lock between processes. A line that a crash cut short is recognised by its length.
    """

    path: Path

    def push(self, seq: int, hash_: str) -> None:
        try:
            new = not self.path.exists()
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                mark = f"\n{seq} {hash_}\n".encode()  # the first newline ends a line that a crash cut short
                if os.write(file, mark) != len(mark):
                    raise OSError("no space for a whole line")
                os.fsync(file)
            finally:
                os.close(file)
            if new:
                flush_folder(self.path.parent)  # otherwise a power cut could lose the new file
        except OSError as problem:
            raise LedgerUnavailable(
                f"the ledger's anchor cannot be written.\n  found:  {self.path.name}: {problem.strerror or problem}\n"
                "  do:     free disk space or give access; nothing was released, and what was charged stays charged"
            ) from problem

    def marks(self) -> Iterator[tuple[int, str]]:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        except OSError as problem:
            raise LedgerUnavailable(
                f"the ledger's anchor cannot be read.\n  found:  {self.path.name}: {problem.strerror}\n"
                "  do:     give access to it; nothing was charged or released"
            ) from problem
        for text in lines:
            number, _, hash_ = text.decode("ascii", "replace").partition(" ")
            if len(hash_) == 64 and number.isdigit():
                yield int(number), hash_


def flush_folder(folder: Path) -> None:
    """Make the names of the files in a folder durable, where the system lets us open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class NoAnchor:
    """No anchor: for ledgers in memory, and for owners who record marks by other means."""

    def push(self, seq: int, hash_: str) -> None:
        pass

    def marks(self) -> Iterator[tuple[int, str]]:
        return iter(())
