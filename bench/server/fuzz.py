"""Hostile messages to the PostgreSQL door of a service that runs, by people who have logged in."""

import argparse
import os
import random
import socket
import time
from pathlib import Path

from bench.server.running import Row, Running, build, question
from sfumato.client import connect
from tests.server.postgres.test_hostile_bytes import some_message

PATIENCE = 20.0  # seconds that a connection may take to end


def fuzz(folder: Path, options: argparse.Namespace) -> list[Row]:
    """Messages with wrong lengths, kinds, fields and order; some are good questions."""
    place, token = build(folder, 0.0)
    server, rng = Running(place), random.Random(options.seed)
    sent = connections = hung = 0
    memory: list[float] = []
    try:
        used = server.processor()
        while sent < options.messages:
            many = rng.randrange(1, 60)
            hung += not talk(server, token, b"".join(some_message(rng) for _ in range(many)))
            sent, connections = sent + many, connections + 1
            if len(memory) < 5 * sent / options.messages:
                memory.append(server.memory())
        alive = server.process.poll() is None
        connect(server.url, token=token).ask(question(1), epsilon=0.01)
        each = (server.processor() - used) / sent * 1e3
    finally:
        server.stop()
    words = f"{sent:,} messages on {connections:,} connections, {each:.2f} ms of processor each"
    flat = memory[-1] <= 1.05 * memory[len(memory) // 2]
    return [
        ("hostile messages: crashes", words if alive else "the service ended", "0", alive),
        ("connections that hung", f"{hung}", "0", not hung),
        ("memory of the service", f"{' → '.join(f'{m:.0f}' for m in memory)} MiB", "second half + ≤ 5 %", flat),
    ]


def talk(server: Running, token: str, data: bytes) -> bool:
    """Log in, send these bytes and good-bye, and read until the service closes: does it?"""
    with server.postgres(token) as connection, socket.socket(fileno=os.dup(connection.fileno())) as raw:
        raw.setblocking(True)
        raw.settimeout(PATIENCE)
        until = time.monotonic() + PATIENCE
        try:
            raw.sendall(data + b"X\0\0\0\4")
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(1 << 16):
                if time.monotonic() > until:
                    return False
        except TimeoutError:
            return False
        except ConnectionError:
            return True  # it ended, with bytes of ours unread
    return True
