"""COPY (SELECT …) TO STDOUT: the rows of an answer as text, CSV or PostgreSQL's binary format."""

import csv
import io
from collections.abc import Iterator, Sequence

from sfumato.curator.answer import Cell
from sfumato.server.postgres import messages
from sfumato.server.postgres.types import BINARY_FORMAT, TEXT_FORMAT, Type

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy_messages(columns: list[tuple[str, Type]], rows: Sequence[Sequence[Cell]], options: str) -> Iterator[bytes]:
    """All messages of a copy; `options` are the words behind STDOUT, in capitals."""
    binary = "BINARY" in options
    how = BINARY_FORMAT if binary else TEXT_FORMAT
    yield messages.message(b"H", bytes([how]), messages.int16(len(columns)), messages.int16(how) * len(columns))
    cells = [[kind.encode(c, how) for (_, kind), c in zip(columns, row, strict=True)] for row in rows]
    if binary:
        before = SIGNATURE  # in one message with the first row, as PostgreSQL sends it
        for row in cells:
            parts = (messages.int32(-1) if c is None else messages.int32(len(c)) + c for c in row)
            yield messages.message(b"d", before, messages.int16(len(row)), *parts)
            before = b""
        yield messages.message(b"d", before, messages.int16(-1))
    else:
        header: list[list[str | None]] = [[name for name, _ in columns]] if "HEADER" in options else []
        body: list[list[str | None]] = [[None if c is None else c.decode() for c in row] for row in cells]
        for texts in [*header, *body]:
            yield messages.message(b"d", (csv_line(texts) if "CSV" in options else text_line(texts)).encode())
    yield messages.message(b"c")
    yield messages.command_complete(f"COPY {len(rows)}")


def csv_line(cells: Sequence[str | None]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow("" if c is None else c for c in cells)
    return out.getvalue()


def text_line(cells: Sequence[str | None]) -> str:
    return "\t".join("\\N" if c is None else c.translate(ESCAPES) for c in cells) + "\n"
