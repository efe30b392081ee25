"""Hostile bytes: whatever a client sends, its connection ends or goes on, and nothing else happens.

`python -m tests.server.postgres.test_hostile_bytes 100000` tries more than the tests do.
"""

import asyncio
import random
import struct
import sys
import tracemalloc
from contextlib import suppress
from types import SimpleNamespace

import pytest

from sfumato.errors import QueryRefused
from sfumato.server.configuration import Limits, Listen
from sfumato.server.postgres import messages, types
from sfumato.server.postgres.catalogue import Catalogue
from sfumato.server.postgres.door import PostgresDoor
from sfumato.server.postgres.messages import LONGEST, ProtocolError
from sfumato.server.postgres.session import MOST_KEPT, Session

KINDS = b"QPBDECSHXFdcfp" + bytes(range(8))
TEXTS = ["SELECT 1", "BEGIN", "SELECT COUNT(*) FROM visits", "COPY (SELECT 1) TO STDOUT", "SET a = 1", "ROLLBACK", ";;",
         "SELECT $1", "' \" /* --", "SHOW x", "\\", "SELECT * FROM pg_class WHERE oid = $1 LIMIT 2"]  # fmt: skip


class Asker:
    """Refuses every question, as the curator would refuse most of these."""

    def __init__(self):
        self.catalogue = Catalogue("clinic", {"visits": {"age": types.FLOAT8}})
        self.columns = {"age": types.FLOAT8}

    def describe(self, text):
        raise QueryRefused("no")

    def ask(self, text, settings):
        raise QueryRefused("no")

    def look_up(self, tree, settings):
        return self.catalogue.run(tree, {})


class Writer:
    """Takes what is sent, and counts it."""

    def __init__(self):
        self.bytes = 0

    def write(self, data):
        self.bytes += len(data)

    async def drain(self):
        pass

    def close(self):
        pass

    def get_extra_info(self, name, default=None):
        return default


def some_message(rng: random.Random) -> bytes:
    """A message that is right in most parts: of a known kind, with fields that fit, of which one may be changed."""
    kind = rng.choice(KINDS).to_bytes()
    text, name = messages.text(rng.choice(TEXTS)), messages.text(rng.choice(["", "a", "b"]))
    count = rng.choice([0, 1, 2, -1, 3000])
    body = {
        b"Q": text,
        b"P": name + text + struct.pack(">h", 0),
        b"B": name + name + struct.pack(">hhih", 0, 1, 1, 0)[:-2] + b"7" + struct.pack(">h", 0),
        b"D": rng.choice([b"S", b"P", b"?"]) + name,
        b"E": name + struct.pack(">i", count),
        b"C": rng.choice([b"S", b"P"]) + name,
    }.get(kind, b"" if rng.random() < 0.7 else rng.randbytes(rng.randrange(20)))
    if rng.random() < 0.3 and body:
        place = rng.randrange(len(body))
        body = body[:place] + rng.randbytes(rng.randrange(3)) + body[place + rng.randrange(3) :]
    size = len(body) + 4
    if rng.random() < 0.05:
        size = rng.choice([0, 3, -1, 2**31 - 1, size + 1, LONGEST + 1])
    return kind + struct.pack(">i", size) + body


async def talk(asker, data: bytes) -> int:
    reader, writer = asyncio.StreamReader(), Writer()
    reader.feed_data(data)
    reader.feed_eof()

    async def blocking(function, *arguments):
        return function(*arguments)

    with suppress(ProtocolError, asyncio.IncompleteReadError):
        await Session(reader, writer, asker, blocking, {}).run()
    return writer.bytes


async def attack(count: int, seed: int) -> None:
    rng, asker = random.Random(seed), Asker()
    sent = 0
    while sent < count:
        many = rng.randrange(1, 30)
        await asyncio.wait_for(talk(asker, b"".join(some_message(rng) for _ in range(many))), 30)
        sent += many


def test_hostile_messages():
    asyncio.run(attack(1500, 1))


def test_hostile_log_ins(service):
    """Random first bytes, before anybody has logged in: no error but an end of the connection."""
    door, rng = PostgresDoor(service, service, Listen("", 0), None), random.Random(2)

    async def run():
        for _ in range(150):
            reader, writer = asyncio.StreamReader(), Writer()
            words = messages.text("user") + messages.text("ann") + b"\0"
            first = struct.pack(">ii", len(words) + 8, rng.choice([196608, 196610, 80877102, 80877103, 0, -1])) + words
            more = b"".join(some_message(rng) for _ in range(rng.randrange(3)))
            junk = bytearray(first + b"p" + more)
            if rng.random() < 0.5:
                junk[rng.randrange(len(junk))] = rng.randrange(256)
            reader.feed_data(bytes(junk))
            reader.feed_eof()
            await asyncio.wait_for(door.serve(reader, writer), 30)
        assert not door.connections and not door.sessions

    asyncio.run(run())


def test_a_slow_client_is_let_go():
    """A connection that sends nothing ends after the patience of the service."""
    limits = SimpleNamespace(limits=Limits(patience=0.01))
    door = PostgresDoor(limits, limits, Listen("", 0), None)

    async def run():
        await asyncio.wait_for(door.serve(asyncio.StreamReader(), Writer()), 30)

    asyncio.run(run())


def parse_message(name: str, text: str) -> bytes:
    return messages.message(b"P", messages.text(name), messages.text(text), messages.int16(0))


def bind_message(portal: str) -> bytes:
    return messages.message(b"B", messages.text(portal), messages.text(""), bytes(6))


@pytest.mark.parametrize(
    "sent",
    [
        [parse_message(f"{i}", "SELECT 1 -- " + "x" * 30_000) for i in range(40)],
        [parse_message(f"{i}", "SELECT 1") for i in range(1100)],
        [parse_message("", "SELECT 1"), *(bind_message(f"{i}") for i in range(200))],
    ],
    ids=["long", "prepared", "portals"],
)
def test_a_connection_keeps_a_bounded_number_of_statements(sent):
    asker = Asker()
    found, kept = asyncio.run(talk_and_keep(asker, b"".join(sent)))
    assert b"too many statements" in found
    assert kept <= MOST_KEPT


async def talk_and_keep(asker, data: bytes) -> tuple[bytes, int]:
    """What a session replies, and how many characters it keeps."""
    reader, replies = asyncio.StreamReader(), bytearray()
    writer = SimpleNamespace(write=replies.extend, drain=Writer().drain)
    reader.feed_data(data)
    reader.feed_eof()

    async def blocking(function, *arguments):
        return function(*arguments)

    session = Session(reader, writer, asker, blocking, {})
    with suppress(asyncio.IncompleteReadError):
        await session.run()
    texts = [
        *(one.text for one in session.prepared.values()),
        *(one.statement.text for one in session.portals.values()),
    ]
    return bytes(replies), sum(map(len, texts))


@pytest.mark.parametrize("size", [0, 3, -5, LONGEST + 1])
def test_impossible_lengths_are_refused_before_anything_is_read(size):
    async def run():
        reader = asyncio.StreamReader()
        reader.feed_data(b"Q" + struct.pack(">i", size))
        with pytest.raises(ProtocolError):
            await messages.read_message(reader)

    asyncio.run(run())


if __name__ == "__main__":
    tracemalloc.start()
    number = int(sys.argv[1])
    asyncio.run(attack(number // 10, 7))
    before = tracemalloc.get_traced_memory()[0]
    asyncio.run(attack(number, 8))
    print(f"{number:,} messages; memory grew by {tracemalloc.get_traced_memory()[0] - before:,} bytes")
