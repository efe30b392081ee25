"""The audit log: every act of every person, one line each, appended and hash-chained; never changed.

A line is `HASH TEXT`, the text canonical JSON: who, when, which question, ε, δ, and the hash of the answer. It holds
released and public values only. A line that a crash cut short ends the file; the next start moves on behind it.

A full file becomes `service.audit.000001`, and so on. The first line of the next one says after which line of which
hash it goes on, so that a start reads the newest file only, and one chain runs through all of them. Files that are kept
elsewhere may be moved away, the oldest first.
"""

import json
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from sfumato.errors import LedgerDamaged, LedgerUnavailable
from sfumato.ledger.hash_chain import START, Entry, chain_entry, chain_hash
from sfumato.server.acts import request_id
from sfumato.server.logs import event

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

REMEMBERED = 100_000  # requests whose line is found by their id
FULL = 16 << 20  # bytes of a file, after which there is a new one
MARK = 1000  # lines between two that are found without reading those before
CONTINUED = "continued"
CUT = b"\n"


@dataclass(frozen=True)
class Mark:
    """A line from which reading can begin: its place in a file, and the number and hash of the line before."""

    place: int = 0
    seq: int = 0
    hash: str = START


@dataclass(eq=False)
class AuditLog:
    """An open audit log; one process writes it."""

    path: Path
    clock: Callable[[], float] = field(default=time.time, repr=False)
    seq: int = field(default=0, init=False)
    hash: str = field(default=START, init=False)
    _file: int = field(default=-1, init=False, repr=False)
    _number: int = field(default=1, init=False, repr=False)  # of the file that is written
    _marks: list[Mark] = field(default_factory=list, init=False, repr=False)  # in it
    _places: OrderedDict[str, tuple[int, int, int]] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @staticmethod
    def open(path: Path, clock: Callable[[], float] = time.time) -> "AuditLog":
        """Read the newest file, check its chain, and go on behind it."""
        log = AuditLog(path, clock)
        try:
            log._file = locked(path)
            log._undo_link()
            log._number = max(log._numbers(), default=0) + 1
            for place, entry in log._read(path, Mark()):
                log._follow(entry, place)
            log._end_cut_line()
        except BaseException:
            log.close()
            raise
        return log

    def append(self, content: Mapping[str, object], durable: bool = False) -> None:
        """Append one line; `durable` waits until it is on the disk."""
        with self._lock:
            self._write({**content, "time": self.clock()})
            if os.lseek(self._file, 0, os.SEEK_END) > FULL:
                self._begin_file()
            written = os.dup(self._file) if durable else -1
        if durable:
            try:
                os.fsync(written)
            finally:
                os.close(written)

    def _write(self, content: Mapping[str, object]) -> None:
        entry = chain_entry(self.hash, self.seq + 1, content)
        line = f"{entry.hash} {entry.text}\n".encode()
        place = os.lseek(self._file, 0, os.SEEK_END)
        if os.write(self._file, line) != len(line):
            os.write(self._file, CUT)
            raise LedgerUnavailable("the audit log cannot be written.\n  do:     free disk space")
        self._follow(entry, (place, len(line)))

    def _begin_file(self) -> None:
        """Leave the full file under its number, and go on in a new one: there is a file of our name all the time."""
        old, new = self._full_name(self._number), self.path.with_name(f"{self.path.name}.new")
        before = self._file, self._marks, self.seq, self.hash
        said = {"act": CONTINUED, "file": old.name, "after": self.seq, "hash": self.hash, "time": self.clock()}
        try:
            new.unlink(missing_ok=True)
            os.fsync(self._file)
            self._file, self._marks = locked(new), []
            self._write(said)
            os.fsync(self._file)
            os.link(self.path, old)
            new.replace(self.path)
        except (OSError, LedgerUnavailable) as problem:  # the next line tries again
            if self._file != before[0]:
                os.close(self._file)
            self._file, self._marks, self.seq, self.hash = before
            self._undo_link()
            event("the audit log stays in one file", logging.WARNING, found=type(problem).__name__)
        else:
            os.close(before[0])
            self._number += 1

    def _undo_link(self) -> None:
        """A second name of the file that is written, left where a new one was begun and did not take its place."""
        for number in self._numbers()[-1:]:
            if self._full_name(number).samefile(self.path):
                self._full_name(number).unlink()

    def _full_name(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number:06d}")

    def request(self, id_: str) -> Mapping[str, object] | None:
        """The line of the request with this id, if it is among the last ones."""
        with self._lock:
            number, place, size = self._places.get(id_, (0, 0, 0))
            if not number:
                return None
            if number == self._number:
                return parse(os.pread(self._file, size, place), 0).content
        try:
            with open(self._file_of(number), "rb") as file:
                file.seek(place)
                return parse(file.read(size), 0).content
        except FileNotFoundError:  # moved away
            return None

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
        return list(islice((entry for _, entry in self.read(after) if entry.seq > after), limit))

    def verify(self) -> int:
        """Follow the chain from its first line to its last; their number. Raises LedgerDamaged."""
        last = 0
        for _, entry in self.read():
            last = entry.seq
        return last

    def read(self, after: int = 0) -> Iterator[tuple[tuple[int, int], Entry]]:
        """Each whole line with its place, after checking that it follows from the one before; from the start of a file,
        or from a mark, that is not behind the line of this number."""
        with self._lock:
            newest, marks = self._number, list(self._marks)
        mark = next((one for one in reversed(marks) if one.seq <= after), None)
        if mark is not None:
            yield from self._read(self.path, mark)
            return
        files = [self._file_of(number) for number in [*self._numbers(), newest]]
        begins = [first_of(file) for file in files]
        first = max((place for place, begin in enumerate(begins) if begin <= after), default=0)
        end: Mark | None = None
        for file in files[first:]:
            for place, entry in self._read(file, Mark(), end):
                yield place, entry
                end = Mark(0, entry.seq, entry.hash)

    def _read(self, path: Path, start: Mark, before: Mark | None = None) -> Iterator[tuple[tuple[int, int], Entry]]:
        """The lines of one file from a mark on. `before` is the end of the file before it, if that was read."""
        seq, hash_, place = start.seq, start.hash, start.place
        with open(path, "rb") as file:
            file.seek(place)
            for line in file:
                here, place = (place, len(line)), place + len(line)
                if not is_whole(line):
                    continue  # cut short by a crash
                if not here[0] and (said := parse(line, 0).content).get("act") == CONTINUED:
                    seq, hash_ = int(str(said["after"])), str(said["hash"])
                if before is not None and here[0] == 0 and (seq, hash_) != (before.seq, before.hash):
                    raise damaged(before.seq + 1)
                entry = parse(line, seq + 1)
                if entry.hash != chain_hash(hash_, entry.seq, entry.text, b""):
                    raise damaged(entry.seq)
                yield here, entry
                seq, hash_ = entry.seq, entry.hash

    def _file_of(self, number: int) -> Path:
        return self.path if number == self._number else self._full_name(number)

    def _numbers(self) -> list[int]:
        """The numbers of files that are full."""
        names = (one.name.removeprefix(f"{self.path.name}.") for one in self.path.parent.glob(f"{self.path.name}.*"))
        return sorted(int(name) for name in names if len(name) == 6 and name.isdecimal())

    def _follow(self, entry: Entry, place: tuple[int, int]) -> None:
        if not self._marks or entry.seq % MARK == 0:
            self._marks.append(Mark(place[0], entry.seq - 1, self.hash))
        self._remember(entry, place)
        self.seq, self.hash = entry.seq, entry.hash

    def _remember(self, entry: Entry, place: tuple[int, int]) -> None:
        if '"act":"ask"' in entry.text and (id_ := entry.content.get("id")):
            self._places[str(id_)] = (self._number, *place)
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


def locked(path: Path) -> int:
    """A file of our own, to append to. Raises LedgerUnavailable."""
    file = -1
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        if file >= 0:
            os.close(file)
        raise LedgerUnavailable(
            f"the audit log cannot be opened.\n  found:  {path.name}: {problem.strerror}\n"
            "  do:     stop the other service that writes it, or give access to it"
        ) from problem
    return file


def first_of(path: Path) -> int:
    """The number of the line before the first one of a file."""
    with open(path, "rb") as file:
        line = file.readline()
    said = parse(line, 0).content if is_whole(line) else {}
    return int(str(said["after"])) if said.get("act") == CONTINUED else 0


def damaged(line: int) -> LedgerDamaged:
    return LedgerDamaged(
        f"the audit log was changed.\n  found:  line {line} does not follow from the one before\n"
        "  do:     keep the file for the auditor, and start with a new one"
    )


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
