"""Reports of a survey: written once by a person, and read line by line by the server.

An answer is randomised once, stored, and sent again as it is if sending fails. Every line that is read is accepted or
counted as malformed, duplicate or of another design; none raises.
"""

import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.errors import InvalidParameter
from sfumato.local.survey.design import Design
from sfumato.noise.entropy import SYSTEM, Source

SAFE = 2**53


def report_text(design: Design, report: int) -> int | str:
    """A report as JSON holds it: a number, or hexadecimal digits of fixed length where numbers are not exact."""
    bound = design.randomizer.report_bound
    return report if bound <= SAFE else f"{report:0{((bound - 1).bit_length() + 3) // 4}x}"


def respond(design: Design, answer: str, source: Source = SYSTEM) -> str:
    """One line of JSON: the design's hash, a random identifier, and the randomised answer.

    A fresh draw each time: two reports of one person cost twice. Use `respond_once` where sending may fail.
    """
    oracle = design.randomizer.with_source(source)
    report = oracle.answer(design.index(answer), oracle.below)
    found = {"design": design.hash, "id": f"{source.bits(128):032x}", "report": report_text(design, report)}
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def respond_once(design: Design, answer: str, place: Path, source: Source = SYSTEM) -> str:
    """The stored line of an earlier response to this design, or a new one, which is stored first.

    A retry with a fresh draw would cost ε again and let the server average; so the stored line is sent, whatever the
    answer is now. The file is as secret as the answer, up to ε; others cannot read it.
    """
    if place.exists():
        line = place.read_text(encoding="utf-8").strip()
        try:
            stored = json.loads(line)
        except ValueError:
            stored = None
        if not isinstance(stored, dict) or stored.get("design") != design.hash:
            raise InvalidParameter(
                "the stored response is damaged, or belongs to another survey.\n  found:  another design's hash\n"
                "  do:     name another file for this survey; do not delete a response that may have been sent"
            )
        return line
    line = respond(design, answer, source)
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
    return line


MOST_LENGTH = 1 << 16  # characters of a line
IDENTIFIER = re.compile(r"[0-9a-f]{32}")
HEXADECIMAL = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True)
class Tallied:
    """Accepted reports, and how many lines were not."""

    reports: tuple[int, ...] = field(repr=False)
    malformed: int
    duplicate: int
    other_design: int


def read_reports(design: Design, lines: Iterable[str | bytes]) -> Tallied:
    """All lines of a file, in any order. What is accepted depends on the form of a report, never on its value.

    Empty lines count for nothing, and a byte-order mark at the beginning is left out.

    Two lines with one identifier are one person's retry: the first counts. Shuffled lines have no identifiers, and then
    equal lines are different people's.
    """
    found: list[int] = []
    seen: set[str] = set()
    malformed = duplicate = other = 0
    for at, line in enumerate(lines):
        text = without_mark(line) if at == 0 else line
        if not text.strip():
            continue
        parsed = parse_line(text)
        if parsed is None:
            malformed += 1
        elif parsed["design"] != design.hash:
            other += 1
        elif (report := read_report(design, parsed["report"])) is None:
            malformed += 1
        elif (name := parsed.get("id")) is not None and name in seen:
            duplicate += 1
        else:
            if isinstance(name, str):
                seen.add(name)
            found.append(report)
    return Tallied(tuple(found), malformed, duplicate, other)


def without_mark(line: str | bytes) -> str | bytes:
    """A file's first line without the mark that some editors put there."""
    return line.removeprefix(BOM_UTF8) if isinstance(line, bytes) else line.removeprefix("\ufeff")


def parse_line(line: str | bytes) -> dict[str, object] | None:
    """The object of a line with exactly our keys, or None."""
    if len(line) > MOST_LENGTH:
        return None
    try:
        text = line.decode() if isinstance(line, bytes) else line
        found = json.loads(text, object_pairs_hook=without_repeats, parse_constant=refuse, parse_float=refuse)
    except (ValueError, RecursionError, TypeError, OverflowError):
        return None
    if not isinstance(found, dict) or not {"design", "report"} <= set(found) <= {"design", "report", "id"}:
        return None
    name = found.get("id")
    if "id" in found and not (isinstance(name, str) and IDENTIFIER.fullmatch(name)):
        return None
    return found if isinstance(found["design"], str) else None


def without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys differ; two readers could take different ones of equal keys."""
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def refuse(text: str) -> None:
    """Floats, NaN and infinities have no place in a report."""
    raise ValueError("no whole number")


def read_report(design: Design, value: object) -> int | None:
    """The report as an integer if a client can have sent it in this form, else None."""
    oracle = design.randomizer
    if oracle.report_bound > SAFE:
        width = ((oracle.report_bound - 1).bit_length() + 3) // 4
        if not (isinstance(value, str) and len(value) == width and HEXADECIMAL.fullmatch(value)):
            return None
        value = int(value, 16)
    return value if type(value) is int and oracle.is_report(value) else None
