"""COPY (SELECT …) TO STDOUT: the rows of an answer as text, CSV or PostgreSQL's binary format."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sfumato.curator.answer import Cell
from sfumato.errors import QueryRefused
from sfumato.server.postgres import messages
from sfumato.server.postgres.types import BINARY_FORMAT, TEXT_FORMAT, Type

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


OPTION = re.compile(
    r"\s*,?\s*(?:(FORMAT|DELIMITER|NULL|ENCODING|QUOTE|ESCAPE)\s+(?:AS\s+)?('(?:[^']|'')*'|\w+)"
    r"|(HEADER)(?:\s+(TRUE|FALSE|ON|OFF|1|0))?\b|(CSV|BINARY|TEXT)\b)",
    re.I,
)
FORMATS = ("text", "csv", "binary")


@dataclass(frozen=True)
class Options:
    """How rows are written."""

    format: str = "text"
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"

    @staticmethod
    def of(words: str) -> "Options":
        """From the words behind STDOUT, in brackets or not. Refuses what would have no effect."""
        words = re.sub(r"^\s*WITH\b\s*", "", words, flags=re.I).strip()
        words = words[1:-1].strip() if words.startswith("(") and words.endswith(")") else words
        said: dict[str, str] = {}
        while words:
            found = OPTION.match(words)
            if found is None:
                raise refused(words)
            name, value, header, switch, format_ = found.groups()
            if name:
                said[name.lower()] = value[1:-1].replace("''", "'") if value.startswith("'") else value.lower()
            elif header:
                said["header"] = (switch or "on").lower()
            else:
                said["format"] = format_.lower()
            words = words[found.end() :].strip()
        return Options.chosen(said)

    @staticmethod
    def chosen(said: Mapping[str, str]) -> "Options":
        chosen = said.get("format", "text")
        usual = {"delimiter": ",", "null": ""} if chosen == "csv" else {"delimiter": "\t", "null": "\\N"}
        delimiter, null = (said.get(name, usual[name]) for name in ("delimiter", "null"))
        fixed = {"quote": '"', "escape": '"', "encoding": "utf8"}
        others = [name for name, value in fixed.items() if said.get(name, value).lower().replace("-", "") != value]
        if chosen not in FORMATS or len(delimiter) != 1 or delimiter in '\r\n"\\' or others:
            raise refused(", ".join(f"{name} {value}" for name, value in said.items()))
        return Options(chosen, said.get("header", "off") in ("on", "true", "1"), delimiter, null)


def refused(words: str) -> QueryRefused:
    return QueryRefused(
        f"this option of COPY is not known here.\n  found:  {words[:100]}\n"
        "  do:     FORMAT text, csv or binary, with HEADER, DELIMITER and NULL"
    )


def copy_messages(columns: list[tuple[str, Type]], rows: Sequence[Sequence[Cell]], options: Options) -> Iterator[bytes]:
    """All messages of a copy."""
    how = BINARY_FORMAT if options.format == "binary" else TEXT_FORMAT
    yield messages.message(b"H", bytes([how]), messages.int16(len(columns)), messages.int16(how) * len(columns))
    cells = [[kind.encode(c, how) for (_, kind), c in zip(columns, row, strict=True)] for row in rows]
    if options.format == "binary":
        before = SIGNATURE  # in one message with the first row, as PostgreSQL sends it
        for row in cells:
            parts = (messages.int32(-1) if c is None else messages.int32(len(c)) + c for c in row)
            yield messages.message(b"d", before, messages.int16(len(row)), *parts)
            before = b""
        yield messages.message(b"d", before, messages.int16(-1))
    else:
        header: list[list[str | None]] = [[name for name, _ in columns]] if options.header else []
        body: list[list[str | None]] = [[None if c is None else c.decode() for c in row] for row in cells]
        write = csv_cell if options.format == "csv" else text_cell
        for texts in [*header, *body]:
            line = options.delimiter.join(write(one, options) for one in texts)
            yield messages.message(b"d", f"{line}\n".encode())
    yield messages.message(b"c")
    yield messages.command_complete(f"COPY {len(rows)}")


def csv_cell(cell: str | None, options: Options) -> str:
    """Quoted where it could be read as something else: a text that looks like NULL, too."""
    if cell is None:
        return options.null
    odd = cell == options.null or any(sign in cell for sign in (options.delimiter, '"', "\r", "\n"))
    return '"' + cell.replace('"', '""') + '"' if odd else cell


def text_cell(cell: str | None, options: Options) -> str:
    if cell is None:
        return options.null
    escaped = cell.translate(ESCAPES)
    return escaped if options.delimiter == "\t" else escaped.replace(options.delimiter, f"\\{options.delimiter}")
