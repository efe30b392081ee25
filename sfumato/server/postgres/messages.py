"""Messages of the PostgreSQL protocol, version 3, as bytes: what is read from a client and what is sent to it.

Clients may be hostile. A message is read only if its length is within a public limit, and every field is taken from its
own bytes, so a wrong length ends the connection and nothing else.
"""

import asyncio
import struct
from collections.abc import Sequence

from sfumato.errors import SfumatoError

LONGEST_STARTUP = 10_000  # bytes
LONGEST = 1 << 20  # of any other message; questions are at most 2¹⁶
PROTOCOL, SSL_REQUEST, CANCEL_REQUEST, GSS_REQUEST = 196608, 80877103, 80877102, 80877104


class ProtocolError(SfumatoError):
    """A client broke the protocol. The connection ends."""


class Fields:
    """The fields of one message, read from the front."""

    def __init__(self, body: bytes):
        self.body, self.at = body, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.body):
            raise ProtocolError("a message is shorter than its fields")
        self.at += count
        return self.body[self.at - count : self.at]

    def int16(self) -> int:
        return int.from_bytes(self.take(2), signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), signed=True)

    def text(self) -> str:
        """A text that ends with a zero byte."""
        end = self.body.find(b"\0", self.at)
        if end < 0:
            raise ProtocolError("a text does not end")
        found = self.take(end + 1 - self.at)[:-1]
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text is not UTF-8") from None

    def value(self) -> bytes | None:
        """A parameter: its length, then its bytes; −1 is NULL."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def int16s(self) -> list[int]:
        return [self.int16() for _ in range(self.count())]

    def int32s(self) -> list[int]:
        return [self.int32() for _ in range(self.count())]

    def count(self) -> int:
        found = self.int16()
        if found < 0:
            raise ProtocolError("a negative number of fields")
        return found

    @property
    def rest(self) -> bytes:
        return self.take(len(self.body) - self.at)


async def read_startup(reader: asyncio.StreamReader) -> tuple[int, Fields]:
    """The first message of a connection, which has no kind: its code and the rest."""
    size = int.from_bytes(await reader.readexactly(4), signed=True)
    if not 8 <= size <= LONGEST_STARTUP:
        raise ProtocolError("the first message has an impossible length")
    fields = Fields(await reader.readexactly(size - 4))
    return fields.int32(), fields


async def read_message(reader: asyncio.StreamReader, longest: int = LONGEST) -> tuple[bytes, Fields]:
    """A message: its kind, one byte, and its fields."""
    kind = await reader.readexactly(1)
    size = int.from_bytes(await reader.readexactly(4), signed=True)
    if not 4 <= size <= longest:
        raise ProtocolError("a message has an impossible length")
    return kind, Fields(await reader.readexactly(size - 4))


def message(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return kind + struct.pack(">i", len(body) + 4) + body


def text(value: str) -> bytes:
    return value.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"


def int16(value: int) -> bytes:
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def authentication(code: int, *parts: bytes) -> bytes:
    return message(b"R", int32(code), *parts)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", text(name), text(value))


def key_data(process: int, secret: bytes) -> bytes:
    return message(b"K", int32(process), secret)


def ready(state: bytes) -> bytes:
    """ReadyForQuery: I outside a transaction, T in one, E in one that failed."""
    return message(b"Z", state)


def command_complete(tag: str) -> bytes:
    return message(b"C", text(tag))


def row_description(columns: Sequence[tuple[str, int, int]], formats: Sequence[int]) -> bytes:
    """Names, types (OID, size in bytes) and formats of the columns."""
    fields = [
        text(name) + int32(0) + int16(0) + int32(oid) + int16(size) + int32(-1) + int16(how)
        for (name, oid, size), how in zip(columns, formats, strict=True)
    ]
    return message(b"T", int16(len(fields)), *fields)


def data_row(cells: Sequence[bytes | None]) -> bytes:
    return message(b"D", int16(len(cells)), *(int32(-1) if c is None else int32(len(c)) + c for c in cells))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", int16(len(oids)), *map(int32, oids))


def report(kind: bytes, severity: str, code: str, words: str, detail: str = "", hint: str = "", at: int = 0) -> bytes:
    """ErrorResponse (E) or NoticeResponse (N)."""
    fields = {b"S": severity, b"V": severity, b"C": code, b"M": words, b"D": detail, b"H": hint, b"P": str(at or "")}
    return message(kind, *(name + text(value) for name, value in fields.items() if value), b"\0")
