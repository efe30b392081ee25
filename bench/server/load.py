"""Many open connections over both doors: 20 calls a second in all, then as fast as it goes."""

import argparse
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from bench.server.running import Row, Running, build, percentile, question, timed
from sfumato.client import Remote, connect
from sfumato.errors import BudgetExceeded, TooManyRequests
from sfumato.ledger import Ledger

EPSILON = 0.01
KINDS = ("preview", "stored", "new")
BARS = {"preview": 50, "stored": 25}  # ms, of the 99th percentile
REFUSALS = ("53400", "53300")  # of the PostgreSQL door: budget, too many requests
LOOKS = 10  # at memory, while calls come steadily


@dataclass(eq=False)
class HttpClient:
    """One connection by the HTTP door."""

    remote: Remote
    door: str = "HTTP"

    def preview(self, sql: str) -> None:
        self.remote.preview(sql, epsilon=EPSILON)

    def ask(self, sql: str) -> None:
        self.remote.ask(sql, epsilon=EPSILON)


@dataclass(eq=False)
class PostgresClient:
    """One connection by the PostgreSQL door."""

    connection: "psycopg.Connection[tuple[object, ...]]"
    door: str = "PostgreSQL"

    def preview(self, sql: str) -> None:
        self.connection.execute(f"EXPLAIN PRIVACY {sql}").fetchall()

    def ask(self, sql: str) -> None:
        self.connection.execute(sql).fetchall()


Client = HttpClient | PostgresClient


@dataclass(eq=False)
class Calls:
    """The times of all calls, by door and kind; and errors that are no refusals."""

    times: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    wrong: list[BaseException] = field(default_factory=list)
    refused: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, client: Client, lock: threading.Lock, i: int) -> None:
        kind = random.Random(i).choices(KINDS, [45, 45, 10])[0]
        with lock:
            try:
                match kind:
                    case "preview":
                        taken = timed(lambda: client.preview(question(i % 50)))
                    case "stored":
                        taken = timed(lambda: client.ask(question(0)))
                    case _:
                        taken = timed(lambda: client.ask(question(i)))
            except (BudgetExceeded, TooManyRequests):
                self.refused += 1
            except psycopg.Error as problem:
                if problem.sqlstate in REFUSALS:
                    self.refused += 1
                else:
                    self.wrong.append(problem)
            except Exception as problem:
                self.wrong.append(problem)
            else:
                with self._lock:
                    self.times.setdefault((client.door, kind), []).append(taken)

    @property
    def count(self) -> int:
        return sum(map(len, self.times.values()))


def load(folder: Path, options: argparse.Namespace) -> list[Row]:
    """200 connections in the full size, half of them by each door."""
    place, token = build(folder)
    server, rows = Running(place), list[Row]()
    try:
        half = options.connections // 2
        clients: list[Client] = [HttpClient(connect(server.url, token=token)) for _ in range(half)]
        for client in clients:
            assert isinstance(client, HttpClient)
            client.remote._send("GET", "/health", None, {})  # open
        clients += [PostgresClient(server.postgres(token, EPSILON)) for _ in range(options.connections - half)]
        random.Random(1).shuffle(clients)
        clients[0].ask(question(0))
        rows += steady(server, clients, options.seconds) + hurried(server, clients, options.seconds / 4)
    finally:
        server.stop()
    ledger = Ledger.open(folder / "clinic.ledger")
    state = ledger.verify()
    exact = sum((cost for _, cost in state.costs.values()), start=type(state.spent)()) == state.spent
    rows.append(("ledger", f"{len(state.costs)} charges, exact to the unit", "exact", exact))
    ledger.close()
    return rows


def steady(server: Running, clients: list[Client], seconds: int) -> list[Row]:
    calls, locks = Calls(), [threading.Lock() for _ in clients]
    count, used, memory = 20 * seconds, server.processor(), list[float]()
    with ThreadPoolExecutor(len(clients)) as pool:
        began = time.perf_counter()
        for i in range(1, count + 1):
            pool.submit(calls.call, clients[i % len(clients)], locks[i % len(clients)], i)
            time.sleep(max(0.0, began + i / 20 - time.perf_counter()))
            if i % max(1, count // LOOKS) == 0:
                memory.append(server.memory())
    rows = [
        row_of(f"{kind} by {door}, 20 calls/s", times, BARS.get(kind)) for (door, kind), times in calls.times.items()
    ]
    each = (server.processor() - used) / max(1, calls.count) * 1e3
    rows.append(("processor time of the service", f"{each:.1f} ms a call, of {calls.count} calls", "", True))
    rows.append(errors(calls))
    middle = memory[len(memory) // 2]
    words = f"{memory[0]:.0f} → {middle:.0f} → {memory[-1]:.0f} MiB (a tenth, half, all of the time)"
    rows.append(("memory while calls come steadily", words, "second half + ≤ 5 %", memory[-1] <= 1.05 * middle))
    return rows


def hurried(server: Running, clients: list[Client], seconds: float) -> list[Row]:
    calls, before, used = Calls(), server.memory(), server.processor()
    began = time.perf_counter()
    until = began + seconds

    def hurry(k: int) -> None:
        i, lock = 10**6 + k * 10**5, threading.Lock()
        while time.perf_counter() < until:
            calls.call(clients[k], lock, i := i + 1)

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(hurry, range(len(clients))))
    taken, cpu = time.perf_counter() - began, server.processor() - used
    words = f"{calls.count / taken:.0f} calls/s on {len(clients)} connections, {cpu / taken:.2f} cores of the service"
    return [
        ("as fast as it goes", words, "", True),
        errors(calls),
        ("memory then", f"{before:.0f} → {server.memory():.0f} MiB", "", True),
    ]


def row_of(what: str, times: list[float], bar: int | None) -> Row:
    p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
    words = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms of {len(times)}"
    return (what, words, f"p99 ≤ {bar} ms" if bar else "", bar is None or p99 <= bar)


def errors(calls: Calls) -> Row:
    words = f"{len(calls.wrong)} of {calls.count}, {calls.refused} refusals {[str(p)[:80] for p in calls.wrong[:1]]}"
    return ("errors that are no refusals", words, "0", not calls.wrong)
