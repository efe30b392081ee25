"""The audit log: every act of every person, one line each, appended and hash-chained; never changed.

A line is `HASH TEXT`, the text canonical JSON: who, when, which question, ε, δ, and the hash of the answer. It holds
released and public values only. A line that a crash cut short ends the file; the next start moves on behind it.
"""

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.errors import LedgerDamaged, LedgerUnavailable
from sfumato.ledger.hash_chain import START, Entry, chain_entry, chain_hash
from sfumato.server.acts import request_id

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

REMEMBERED = 100_000  # requests whose line is found by their id
CUT = b"\n"


@dataclass(eq=False)
class AuditLog:
    """An open audit log; one process writes it."""

    path: Path
    clock: Callable[[], float] = field(default=time.time, repr=False)
    seq: int = field(default=0, init=False)
    hash: str = field(default=START, init=False)
    _file: int = field(default=-1, init=False, repr=False)
    _places: OrderedDict[str, tuple[int, int]] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @staticmethod
    def open(path: Path, clock: Callable[[], float] = time.time) -> "AuditLog":
        """Read what is there, check its chain, and go on behind it."""
        log = AuditLog(path, clock)
        try:
            log._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            if fcntl is not None:
                fcntl.flock(log._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            if log._file >= 0:
                os.close(log._file)
            raise LedgerUnavailable(
                f"the audit log cannot be opened.\n  found:  {path.name}: {problem.strerror}\n"
                "  do:     stop the other service that writes it, or give access to it"
            ) from problem
        try:
            for place, entry in log.read():
                log._follow(entry, place)
            log._end_cut_line()
        except BaseException:
            log.close()
            raise
        return log

    def append(self, content: Mapping[str, object], durable: bool = False) -> None:
        """Append one line; `durable` waits until it is on the disk."""
        with self._lock:
            entry = chain_entry(self.hash, self.seq + 1, {**content, "time": self.clock()})
            line = f"{entry.hash} {entry.text}\n".encode()
            place = os.lseek(self._file, 0, os.SEEK_END)
            if os.write(self._file, line) != len(line):
                os.write(self._file, CUT)
                raise LedgerUnavailable("the audit log cannot be written.\n  do:     free disk space")
            self._remember(entry, (place, len(line)))
            self.seq, self.hash = entry.seq, entry.hash
        if durable:
            os.fsync(self._file)

    def request(self, id_: str) -> Mapping[str, object] | None:
        """The line of the request with this id, if it is among the last ones."""
        with self._lock:
            place = self._places.get(id_)
            if place is None:
                return None
            line = os.pread(self._file, place[1], place[0])
        return parse(line, 0).content

    def asked(self, data: str, line: Entry) -> str | None:
        """The text with which somebody asked for a charge here; None for other lines, and for steps of a question."""
        content = line.content
        if content["kind"] != "charged":
            return None
        request = self.request(request_id(data, str(content["who"]), str(content["key"])))
        return None if request is None else str(request["question"])

    def asked_texts(self, data: str, lines: Iterable[Entry]) -> dict[int, str]:
        """The same for many lines, by their numbers."""
        return {line.seq: text for line in lines if (text := self.asked(data, line)) is not None}

    def lines(self, after: int = 0, limit: int = 1000) -> list[Entry]:
        """Lines from number after + 1 on."""
        found = (entry for _, entry in self.read() if entry.seq > after)
        return [entry for entry, _ in zip(found, range(limit), strict=False)]

    def verify(self) -> int:
        """Follow the chain from its first line to its last; their number. Raises LedgerDamaged."""
        last = 0
        for _, entry in self.read():
            last = entry.seq
        return last

    def read(self) -> Iterator[tuple[tuple[int, int], Entry]]:
        """Each whole line with its place, after checking that it follows from the one before."""
        seq, hash_, place = 0, START, 0
        with open(self.path, "rb") as file:
            for line in file:
                here, place = (place, len(line)), place + len(line)
                if not is_whole(line):
                    continue  # cut short by a crash
                entry = parse(line, seq + 1)
                if entry.hash != chain_hash(hash_, entry.seq, entry.text, b""):
                    raise LedgerDamaged(
                        f"the audit log was changed.\n  found:  line {entry.seq} does not follow from the one before\n"
                        "  do:     keep the file for the auditor, and start with a new one"
                    )
                yield here, entry
                seq, hash_ = entry.seq, entry.hash

    def _follow(self, entry: Entry, place: tuple[int, int]) -> None:
        self._remember(entry, place)
        self.seq, self.hash = entry.seq, entry.hash

    def _remember(self, entry: Entry, place: tuple[int, int]) -> None:
        if '"act":"ask"' in entry.text and (id_ := entry.content.get("id")):
            self._places[str(id_)] = place
            if len(self._places) > REMEMBERED:
                self._places.popitem(last=False)

    def _end_cut_line(self) -> None:
        size = os.lseek(self._file, 0, os.SEEK_END)
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, CUT)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def is_whole(line: bytes) -> bool:
    """Was this line written to its end? JSON that is cut is not JSON."""
    try:
        json.loads(line[65:])
    except ValueError:
        return False
    return line.endswith(b"\n") and line.find(b" ") == 64


def parse(line: bytes, seq: int) -> Entry:
    hash_, _, text = line.rstrip(b"\n").decode("utf-8", "replace").partition(" ")
    return Entry(seq, text, b"", hash_)
