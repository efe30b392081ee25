"""Logs of a service: one JSON object a line, without private values.

What engines say may hold private values. It goes to the private log, if the configuration names one, and nowhere else.
"""

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import TextIO

log = logging.getLogger("sfumato.server")
log.addHandler(logging.NullHandler())


class JsonLines(logging.Formatter):
    """A record as one JSON object; of an exception only its class and where it was raised."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        content: dict[str, object] = {"time": f"{moment}Z", "level": record.levelname.lower()}
        content["event"] = record.getMessage()
        content |= getattr(record, "details", {})
        if record.exc_info and record.exc_info[1] is not None:
            content |= describe(record.exc_info[1])
        return json.dumps(content, ensure_ascii=True, default=str)


def describe(error: BaseException) -> dict[str, object]:
    """The class of an error and where it was raised, without what it says, which may hold private values."""
    places = traceback.extract_tb(error.__traceback__)[-4:]
    return {"error": type(error).__name__, "where": [f"{Path(f.filename).name}:{f.lineno}" for f in places]}


def unforeseen(problem: BaseException, **details: object) -> None:
    """Log an error that should not occur: where it did, and not what it says."""
    log.error("failed", extra={"details": {**details, **describe(problem)}})


def event(what: str, level: int = logging.INFO, **details: object) -> None:
    """Log an event with its details: names, ids, codes; never a value of a row."""
    log.log(level, what, extra={"details": details})


def configure(private: Path | None, stream: TextIO | None = None) -> None:
    """Public events to standard error; what engines say to the private log alone."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        other = logging.getLogger(name)
        other.handlers[:] = [handler]
        other.propagate = False
        other.setLevel(logging.WARNING)
    if private is not None:
        private.touch(mode=0o600, exist_ok=True)
        secret = logging.FileHandler(private, encoding="utf-8", delay=True)
        secret.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
        for name in ("sfumato.curator", "sfumato.engines"):
            logging.getLogger(name).addHandler(secret)
