"""A person's answer: randomised once, stored, and sent again as it is if sending fails."""

import json
import os
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
