"""CSV files, read line by line: the content of a line changes the row of that line and no other.

A line ends at a line feed, even inside quotes, and is parsed alone, so an unclosed quote ends with its line. No line
raises; docs/engines.md has the rule for every kind of malformed line. A reader that follows quotes across line feeds
would let one person's quote swallow other people's lines.
"""

import csv
import gzip
import json
import logging
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

import duckdb

from sfumato.errors import PolicyError

BLOCK = 1 << 20  # bytes read at a time
LONGEST = 1 << 21  # bytes of the longest line that is read; at least BLOCK
BOM = b"\xef\xbb\xbf"
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}

log = logging.getLogger("sfumato.engines")


@dataclass(frozen=True)
class SplitLine:
    """The fields of one line, and the defects of its quotes."""

    fields: list[str]
    unclosed: bool = False  # the line ends inside quotes
    text_after_quote: bool = False  # "Al" Smith


@dataclass
class LineCounts:
    """The number of malformed lines of a CSV file, by kind. For the owner only: exact numbers about private data."""

    lines: int = 0  # after the header
    unclosed: int = 0
    text_after_quote: int = 0
    carriage_return: int = 0  # inside a line
    not_utf8: int = 0
    short: int = 0
    empty: int = 0
    wide: int = 0
    long: int = 0

    @property
    def left_out(self) -> int:
        return self.empty + self.wide + self.long

    def descriptions(self) -> dict[str, int]:
        """Description → number of lines. Empty lines are not listed: nothing is lost with them."""
        return {
            "end inside quotes: the field is cut there, and the next line is a row of its own": self.unclosed,
            "have text after a closing quote: it is added to the field": self.text_after_quote,
            "have a carriage return inside: it stays in the field": self.carriage_return,
            "are not UTF-8: U+FFFD replaces bytes that cannot be decoded": self.not_utf8,
            "have too few fields: the missing ones are NULL": self.short,
            "have too many fields: they are left out": self.wide,
            f"have more than {LONGEST} bytes: they are left out": self.long,
        }


def column_names(file: Path, separator: str = ",") -> list[str]:
    """The column names in the first line. The owner wrote it, so a malformed one is refused with a reason."""
    with open_file(file) as stream:
        return read_header(stream, file.name, separator)


def likely_separator(file: Path, separator: str) -> str:
    """For a draft: another sign, if the first line is one name by this separator and several names by that sign."""
    with open_file(file) as stream:
        text = stream.readline(LONGEST + 1).decode("utf-8", "replace")
    if len(split_line(text, separator).fields) > 1:
        return separator
    return next((sign for sign in SEPARATORS if sign in text), separator)


def load_csv(connection: duckdb.DuckDBPyConnection, table: str, file: Path, separator: str = ",") -> None:
    """Create a table of text columns with one row for each line that is not left out. `table` is quoted already."""
    with open_file(file) as stream:
        names = read_header(stream, file.name, separator)
        columns = ", ".join('"' + name.replace('"', '""') + '" VARCHAR' for name in names)
        connection.execute(f"BEGIN; CREATE TABLE {table} ({columns})")
        insert = insert_statement(table, len(names))
        counts = LineCounts()
        for block in blocks_of_lines(stream, counts):
            load_block(connection, insert, block.decode(errors="replace"), counts, separator)
        connection.execute("COMMIT")
    if len(names) == 1:
        counts.empty = 0  # such a line is a row whose only field is empty
    (rows,) = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchall()
    counts.wide = counts.lines - counts.left_out - int(rows[0])
    if counts.wide or counts.long or counts.unclosed or counts.text_after_quote:
        log.warning(
            "%s: %d of %d lines left out; %d end inside quotes, %d have text after a closing quote. "
            "For the owner: sfumato data check",
            file.name, counts.left_out, counts.lines, counts.unclosed, counts.text_after_quote,
        )  # fmt: skip


def check_csv(file: Path, separator: str = ",") -> LineCounts:
    """Count the malformed lines by the rules of `load_csv`. For the owner only: the numbers are exact."""
    counts = LineCounts()
    with open_file(file) as stream:
        width = len(read_header(stream, file.name, separator))
        for block in blocks_of_lines(stream, counts):
            for line in block.split(b"\n"):
                count_line(line, width, counts, separator)
    return counts


def count_line(line: bytes, width: int, counts: LineCounts, separator: str = ",") -> None:
    text = line.decode(errors="replace").rstrip("\r")
    split = split_line(text, separator)
    counts.lines += 1
    counts.unclosed += split.unclosed
    counts.text_after_quote += split.text_after_quote
    counts.carriage_return += "\r" in text
    counts.not_utf8 += not is_utf8(line)
    counts.empty += width > 1 and split.fields == [""]
    counts.short += width > len(split.fields) and split.fields != [""]
    counts.wide += any(split.fields[width:])


def is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def open_file(file: Path) -> BinaryIO:
    try:
        return cast(BinaryIO, gzip.open(file)) if file.suffix.lower() == ".gz" else file.open("rb")
    except OSError as problem:
        raise PolicyError(
            f"a CSV file cannot be read.\n  found:  {file.name}: {problem.strerror}\n"
            "  do:     check its name and permissions"
        ) from problem


def read_header(stream: BinaryIO, file: str, separator: str = ",") -> list[str]:
    """The column names in the first line; leaves the stream at the second line."""
    try:
        read = stream.readline(LONGEST + 1)
    except (OSError, EOFError, zlib.error):
        raise bad_header(f"{file}: no gzip, or a damaged one", "compress it again") from None
    line = read.removeprefix(BOM).removesuffix(b"\n").rstrip(b"\r")
    if len(read) > LONGEST:
        raise bad_header(f"{file}: a first line of more than {LONGEST} bytes", "end lines with a line feed")
    if not is_utf8(line) or b"\0" in line:
        raise bad_header(f"{file}: a first line that is not UTF-8", "save the file as UTF-8")
    text = line.decode()
    if "\r" in text:
        raise bad_header(f"{file}: a carriage return inside the first line", "end lines with a line feed")
    split = split_line(text, separator)
    names = split.fields
    if split.unclosed or split.text_after_quote:
        raise bad_header(
            f"{file}: a first line with a quote that is not closed, or not at the end of its field",
            "write the column names on one line, in quotes if they contain commas",
        )
    if names == [""]:
        raise bad_header(f"{file}: an empty first line", "write the column names there, with commas between them")
    if "" in names:
        raise bad_header(f"{file}: column {names.index('') + 1} has no name", "give each column a name")
    if len({name.lower() for name in names}) < len(names):
        raise bad_header(f"{file}: a name that appears twice", "give each column its own name")
    other = next((sign for sign in SEPARATORS if len(names) == 1 and sign in text and sign != separator), None)
    if other:
        raise bad_header(
            f"{file}: one name, with {SEPARATORS[other]} in it",
            f"state delimiter = {json.dumps(other)} for its table in the policy, write it with commas between fields",
        )
    return names


def bad_header(found: str, do: str) -> PolicyError:
    return PolicyError(
        f"the first line of a CSV file must hold the column names.\n  found:  {found}\n  do:     {do}, or use Parquet"
    )


def blocks_of_lines(stream: BinaryIO, counts: LineCounts) -> Iterator[bytes]:
    """The rest of the file in blocks of whole lines, each without its last line feed.

    A line of more than LONGEST bytes is left out, wherever blocks begin: only the first line of a block can be longer
    than BLOCK, and at most LONGEST + 1 bytes of it are held.
    """
    start = b""
    while block := stream.read(BLOCK):
        head, ended, tail = block.partition(b"\n")
        start = (start + head)[: LONGEST + 1]
        if not ended:
            continue
        body, more, rest = tail.rpartition(b"\n")
        if len(start) <= LONGEST:
            yield start + b"\n" + body if more else start
        else:
            counts.lines, counts.long = counts.lines + 1, counts.long + 1
            if more:
                yield body
        start = rest
    if len(start) > LONGEST:
        counts.lines, counts.long = counts.lines + 1, counts.long + 1
    elif start:
        yield start


def load_block(
    connection: duckdb.DuckDBPyConnection, insert: str, text: str, counts: LineCounts, separator: str = ","
) -> None:  # fmt: skip
    """Insert the lines of a block. The engine splits lines without quotes at their commas: that is twice as fast."""
    if "\r" in text:
        text = "\n".join(line.rstrip("\r") for line in text.split("\n"))
    counts.lines += text.count("\n") + 1
    if "\n\n" in text or text.startswith("\n") or text.endswith("\n") or not text:
        counts.empty += text.split("\n").count("")
    if '"' not in text:
        connection.execute(insert, [text, separator])
        return
    lines = text.split("\n")
    plain = [line for line in lines if '"' not in line]
    if plain:
        connection.execute(insert, ["\n".join(plain), separator])
    unused = unused_character(text)
    rows = split_lines([line for line in lines if '"' in line], counts, separator)
    counts.empty += rows.count([""])
    connection.execute(insert, ["\n".join(map(unused.join, rows)), unused])


def insert_statement(table: str, width: int) -> str:
    """Insert the lines of a text $1 whose fields are separated by $2. An empty field is NULL, even in quotes."""
    fields = ", ".join(f"nullif(fields[{i + 1}], '')" for i in range(width))
    split = "SELECT line, string_split(line, $2) AS fields FROM (SELECT unnest(string_split($1, chr(10))) AS line)"
    nonempty = "" if width == 1 else "line <> '' AND "
    fitting = f"(len(fields) <= {width} OR array_to_string(fields[{width + 1}:], '') = '')"
    return f"INSERT INTO {table} SELECT {fields} FROM ({split}) WHERE {nonempty}{fitting}"


def unused_character(text: str) -> str:
    """A character that is not in the text. One exists: all of Unicode takes 4.3 MB, a block at most LONGEST + BLOCK."""
    if "\x1f" not in text:
        return "\x1f"
    used = {*text, "\n"}
    return next(c for c in map(chr, chain(range(0xD800), range(0xE000, 0x110000))) if c not in used)


def split_lines(lines: list[str], counts: LineCounts, separator: str = ",") -> list[list[str]]:
    """The fields of each line. Python's reader parses many lines at once.

    Each of its rows takes at least one line, so as many rows as lines means that no row took two. Otherwise both halves
    are tried, and at last each line alone.
    """
    if len(lines) > 8:
        try:
            rows = list(csv.reader(lines, strict=True, delimiter=separator))
        except csv.Error:
            rows = []
        if len(rows) == len(lines):
            return rows
        half = len(lines) // 2
        return split_lines(lines[:half], counts, separator) + split_lines(lines[half:], counts, separator)
    splits = [split_line(line, separator) for line in lines]
    counts.unclosed += sum(split.unclosed for split in splits)
    counts.text_after_quote += sum(split.text_after_quote for split in splits)
    return [split.fields for split in splits]


def split_line(line: str, separator: str = ",") -> SplitLine:
    """The fields of one line, whatever it holds.

    A quote opens a quoted field only as its first character; a doubled quote inside stands for one; text after a
    closing quote belongs to the field; the end of the line closes an open quote.
    """
    if '"' not in line:
        return SplitLine(line.split(separator))
    fields: list[str] = []
    unclosed = text_after_quote = False
    place = 0
    while True:
        quoted = ""
        if line.startswith('"', place):
            close = closing_quote(line, place + 1)
            unclosed = close == len(line)  # then this field is the last
            quoted = line[place + 1 : close].replace('""', '"')
            place = min(close + 1, len(line))
            text_after_quote |= place < len(line) and line[place] != separator
        comma = line.find(separator, place)
        end = comma if comma >= 0 else len(line)
        fields.append(quoted + line[place:end])
        if comma < 0:
            return SplitLine(fields, unclosed, text_after_quote)
        place = comma + 1


def closing_quote(line: str, place: int) -> int:
    """The position of the closing quote, from `place` on: a quote that is not doubled, or the end of the line."""
    while (found := line.find('"', place)) >= 0:
        if not line.startswith('"', found + 1):
            return found
        place = found + 2
    return len(line)
