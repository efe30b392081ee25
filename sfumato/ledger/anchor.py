"""The anchor: a second place that records how far the ledger has come, so that cutting off its end is noticed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sfumato.errors import LedgerUnavailable


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
