"""SIGKILL of a service and of its workers, while clients of both doors go on asking."""

import argparse
import os
import random
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

import psycopg

from bench.server.running import Row, Running, build, question
from sfumato.client import connect
from sfumato.errors import LedgerUnavailable, ServiceFailed, SfumatoError, TooManyRequests
from sfumato.ledger import Ledger

EPSILON = 0.01
LONGEST = 10.0  # seconds without an answer before the next kill


class Asking:
    """Clients that repeat a question until it is answered: over HTTP with a key, by PostgreSQL with the same text."""

    def __init__(self, server: Running, token: str):
        self.server, self.token = server, token
        self.seen: dict[str, set[str]] = {}  # key, or text of a question, → answers
        self.failed = 0
        self.stopped, self.lock = threading.Event(), threading.Lock()

    def see(self, name: str, rows: object) -> None:
        with self.lock:
            self.seen.setdefault(name, set()).add(repr(rows))

    def fail(self) -> None:
        with self.lock:
            self.failed += 1

    def wait_for_answers(self) -> None:
        """Some time in which questions are asked: at least until one more is answered, however busy the machine is."""
        before, until = sum(map(len, list(self.seen.values()))), time.monotonic() + LONGEST
        time.sleep(0.2 + 0.6 * random.random())
        while sum(map(len, list(self.seen.values()))) == before and time.monotonic() < until:
            time.sleep(0.05)

    def over_http(self, k: int) -> None:
        i = 0
        while not self.stopped.is_set():
            i, key = i + 1, f"client-{k}-question-{i}"
            while not self.stopped.is_set():
                try:
                    remote = connect(self.server.url, token=self.token)
                    self.see(key, remote.ask(question(1000 * k + i), epsilon=EPSILON, key=key).rows)
                    if random.random() < 0.7:
                        break
                except (ServiceFailed, LedgerUnavailable, TooManyRequests):
                    time.sleep(0.05)
                except SfumatoError:
                    self.fail()
                    break

    def over_postgres(self, k: int) -> None:
        i = 0
        while not self.stopped.is_set():
            i += 1
            sql = question(1000 * k + i)
            while not self.stopped.is_set():
                try:
                    with self.server.postgres(self.token, EPSILON) as connection:
                        self.see(sql, connection.execute(sql).fetchall())
                        if random.random() < 0.7:
                            break
                except psycopg.OperationalError:
                    time.sleep(0.05)
                except psycopg.Error:
                    self.fail()
                    break


def kills(folder: Path, options: argparse.Namespace) -> list[Row]:
    """Every second kill is one of a worker process."""
    place, token = build(folder, 0.05)
    server, back, starts = Running(place), list[float](), list[float]()
    asking = Asking(server, token)
    acts = [asking.over_http, asking.over_http, asking.over_postgres, asking.over_postgres]
    threads = [threading.Thread(target=act, args=(k,)) for k, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    done = 0
    with suppress(KeyboardInterrupt):  # what was done until then is reported
        for n in range(options.kills):
            asking.wait_for_answers()
            done = n + 1
            if n % 2 and (workers := server.children()):
                os.kill(random.choice(workers), signal.SIGKILL)
                continue
            server.process.kill()
            server.process.wait()
            server = asking.server = Running(place)
            back.append(server.seconds)
            starts.append(server.start)
    time.sleep(1.0)
    asking.stopped.set()
    for thread in threads:
        thread.join()
    server.stop()
    return [*charges(folder, asking.seen, done),
            ("failed after the charge (worker killed twice)", f"{asking.failed}", "", True),
            ("back after", f"{median(back):.2f} s, {max(back):.2f} s at most", "< 3 s", max(back) < 3),
            ("processor time of a start", f"{median(starts):.2f} s, {max(starts):.2f} s at most", "", True),
    ]  # fmt: skip


def charges(folder: Path, seen: dict[str, set[str]], count: int) -> list[Row]:
    """Answers that were seen, beside the ledger: each was charged, by its key or its text; and each key once."""
    ledger = Ledger.open(folder / "clinic.ledger")
    lines = [line.content for line in ledger.history() if line.content["kind"] == "charged"]
    ledger.close()
    keys = [str(line["key"]) for line in lines]
    numbers = {word for line in lines for word in re.findall(r"\d+", str(line["question"]))}
    twice = len(keys) - len(set(keys))
    uncharged = len([name for name in seen if name not in keys and name.rpartition(" ")[2] not in numbers])
    changed = sum(len(rows) > 1 for rows in seen.values())
    return [
        (f"{count} kills: answers without charge", f"{uncharged} of {len(seen)}", "0", not uncharged),
        ("charged twice with one key", f"{twice} of {len(lines)} charges", "0", not twice),
        ("two answers to one request", f"{changed}", "0", not changed),
    ]
