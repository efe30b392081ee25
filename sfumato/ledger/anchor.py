"""A second place that remembers how far the ledger had got, so that its end cannot be cut off unseen."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sfumato.errors import LedgerUnavailable


class Anchor(Protocol):
    """Told (line number, hash) after every commit and before anything is released."""

    def push(self, seq: int, hash_: str) -> None: ...

    def marks(self) -> Iterator[tuple[int, str]]:
        """All that was pushed, in any order."""


@dataclass(frozen=True)
class FileAnchor:
    """A file to which each commit appends one line, flushed to the disk. Best kept on another disk or machine.

    Appending needs no lock between processes, and a line that a crash cut short is recognised by its length.
    """

    path: Path

    def push(self, seq: int, hash_: str) -> None:
        try:
            new = not self.path.exists()
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                mark = f"\n{seq} {hash_}\n".encode()  # the first newline ends a line that was cut short
                if os.write(file, mark) != len(mark):
                    raise OSError("no room for a whole line")
                os.fsync(file)
            finally:
                os.close(file)
            if new:
                flush(self.path.parent)  # else a power cut could take the file with its name
        except OSError as problem:
            raise LedgerUnavailable(
                f"the ledger's anchor cannot be written.\n  found:  {self.path.name}: {problem.strerror or problem}\n"
                "  do:     make room or give access; nothing was released, and what was charged stays charged"
            ) from problem

    def marks(self) -> Iterator[tuple[int, str]]:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        except OSError as problem:
            raise LedgerUnavailable(f"the anchor of the ledger cannot be read: {problem.strerror}") from problem
        for text in lines:
            number, _, hash_ = text.decode("ascii", "replace").partition(" ")
            if len(hash_) == 64 and number.isdigit():
                yield int(number), hash_


def flush(folder: Path) -> None:
    """Make the names in a folder durable, where folders can be opened."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@dataclass(frozen=True)
class NoAnchor:
    """For ledgers in memory, and owners who anchor by other means."""

    def push(self, seq: int, hash_: str) -> None:
        pass

    def marks(self) -> Iterator[tuple[int, str]]:
        return iter(())
