"""Values in the two formats of the PostgreSQL protocol, text and binary, and the types of parameters and columns."""

import datetime
import struct
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.curator.answer import Cell
from sfumato.errors import QueryRefused

TEXT_FORMAT, BINARY_FORMAT = 0, 1
DAY_ZERO = datetime.date(2000, 1, 1)
MOMENT_ZERO = datetime.datetime(2000, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class Type:
    """A type by its number in PostgreSQL: how a cell is written, and how a parameter is read."""

    name: str
    oid: int
    size: int
    to_binary: Callable[[Cell], bytes]
    from_binary: Callable[[bytes], Cell]
    from_text: Callable[[str], Cell]
    to_text: Callable[[Cell], str] = str

    def encode(self, cell: Cell, how: int) -> bytes | None:
        if cell is None:
            return None
        return self.to_binary(cell) if how == BINARY_FORMAT else self.to_text(cell).encode()

    def decode(self, raw: bytes | None, how: int) -> Cell:
        """A parameter; refused if its bytes are not of this type."""
        if raw is None:
            return None
        try:
            return self.from_binary(raw) if how == BINARY_FORMAT else self.from_text(raw.decode())
        except (ValueError, struct.error, OverflowError):
            raise QueryRefused(f"a parameter is not of type {self.name}.") from None


def packed(code: str) -> tuple[Callable[[Cell], bytes], Callable[[bytes], Cell]]:
    return lambda cell: struct.pack(code, cell), lambda raw: struct.unpack(code, raw)[0]


def truth_of(words: str) -> bool:
    if words.lower() not in ("t", "true", "1", "on", "yes", "f", "false", "0", "off", "no"):
        raise ValueError
    return words.lower() in ("t", "true", "1", "on", "yes")


def float_text(cell: Cell) -> str:
    """As PostgreSQL writes a double: no point in a whole number."""
    found = repr(float(cell))  # type: ignore[arg-type]
    return found.removesuffix(".0").replace("inf", "Infinity").replace("nan", "NaN")


def days(cell: Cell) -> bytes:
    return struct.pack(">i", (datetime.date.fromisoformat(str(cell)[:10]) - DAY_ZERO).days)


def microseconds(cell: Cell) -> bytes:
    try:
        return struct.pack(">q", (datetime.datetime.fromisoformat(str(cell)) - MOMENT_ZERO) // MICROSECOND)
    except ValueError:  # infinite, or a year that Python does not have
        return struct.pack(">q", -(2**63) if str(cell).startswith("-") or "BC" in str(cell) else 2**63 - 1)


def moment_text(cell: Cell) -> str:
    """A day is its first moment; what is infinite, or a year that Python does not have, stays as it is."""
    try:
        return str(datetime.datetime.fromisoformat(str(cell)))
    except ValueError:
        return str(cell)


def date_of(raw: bytes) -> str:
    return str(DAY_ZERO + datetime.timedelta(days=struct.unpack(">i", raw)[0]))


def moment_of(raw: bytes) -> str:
    return str(MOMENT_ZERO + struct.unpack(">q", raw)[0] * MICROSECOND)


BOOL = Type("boolean", 16, 1, *packed(">?"), truth_of, lambda cell: "t" if cell else "f")
INT8 = Type("bigint", 20, 8, *packed(">q"), int)
INT4 = Type("integer", 23, 4, *packed(">i"), int)
INT2 = Type("smallint", 21, 2, *packed(">h"), int)
OID = Type("oid", 26, 4, *packed(">I"), int)
FLOAT8 = Type("double precision", 701, 8, *packed(">d"), float, float_text)
FLOAT4 = Type("real", 700, 4, *packed(">f"), float, float_text)
NUMERIC = Type("numeric", 1700, -1, lambda cell: str(cell).encode(), lambda raw: float(raw), float)
TEXT = Type("text", 25, -1, lambda cell: str(cell).encode(), lambda raw: raw.decode(), str)
NAME = Type("name", 19, 64, lambda cell: str(cell).encode(), lambda raw: raw.decode(), str)
VARCHAR = Type("varchar", 1043, -1, lambda cell: str(cell).encode(), lambda raw: raw.decode(), str)
DATE = Type("date", 1082, 4, days, date_of, lambda words: str(datetime.date.fromisoformat(words)))
TIMESTAMP = Type("timestamp", 1114, 8, microseconds, moment_of, moment_text, moment_text)
ALL = (BOOL, INT8, INT4, INT2, OID, FLOAT8, FLOAT4, NUMERIC, TEXT, NAME, VARCHAR, DATE, TIMESTAMP)
TYPES = {one.oid: one for one in ALL}
