"""The PostgreSQL door of a small clinic, on a free port of this machine."""

import asyncio
import threading
from contextlib import contextmanager

import psycopg
import pytest

from sfumato.server.configuration import Listen
from sfumato.server.postgres.door import PostgresDoor
from tests.server.conftest import configuration


@contextmanager
def open_door(service, settings, tls=None):
    """A door, with an event loop in a thread of its own."""
    found = PostgresDoor(service, settings, Listen("127.0.0.1", 0), tls)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(found.start(), loop).result(20)
    yield found
    asyncio.run_coroutine_threadsafe(found.stop(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)
    loop.close()


@pytest.fixture
def door(service, tmp_path):
    with open_door(service, configuration(tmp_path)) as found:
        yield found


@pytest.fixture
def connect(door, tokens):
    """Connections of ann, or of somebody else; closed at the end."""
    opened = []

    def open_one(who="ann", epsilon="0.5", **more):
        words = {"user": who, "password": tokens.get(who, "sf_none"), "dbname": "clinic", **more}
        options = f"-c sfumato.epsilon={epsilon}" if epsilon else ""
        found = psycopg.connect(host="127.0.0.1", port=door.port, options=options, autocommit=True, **words)
        opened.append(found)
        return found

    yield open_one
    for one in opened:
        one.close()
