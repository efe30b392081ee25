"""A service under load: what its door costs, how long calls take, and what kill -9 and two services on one ledger do.

    python bench/bench_server.py [--seconds 20] [--connections 50] [--kills 10] [--races 200] [--only load kills …]

Rows: `door`, the time of a call over HTTP beside `Curator`; `load`, mixed previews, stored and new questions over many
connections at 20 calls a second, then as fast as it goes; `kills`, SIGKILL of the service and of its workers while
clients retry with their keys; `timeout`, a runaway statement; `races`, two services on one PostgreSQL ledger. The exit
status is 1 if a bar is missed. The full size is --seconds 300 --connections 200 --kills 200 --races 200000.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[1]))

from sfumato.client import Remote, connect
from sfumato.errors import BudgetExceeded, LedgerUnavailable, ServiceFailed, SfumatoError, TooManyRequests
from sfumato.ledger import Ledger
from sfumato.server.configuration import Configuration
from sfumato.server.identity import Role
from sfumato.server.service import Service
from sfumato.teach.demo import clinic
from tests.faults.server import binaries, running

ROOT = Path(__file__).parents[1]
Row = tuple[str, str, str, bool]  # what, measured, bar, is it met?
SERVICE = """
[http]
listen = "127.0.0.1:0"
[limits]
response_quantum = {quantum}
rate = 1e6
burst = 1000000
concurrent = 1000
connections = 2000
[data.clinic]
source = "clinic.duckdb"
policy = "policy.toml"
ledger = "{ledger}"
"""
PEOPLE = "journalist = 0.2              # a share of the budget\nfirst = 0.4\nsecond = 0.4"


class Running:
    """`sfumato serve` in a process of its own."""

    def __init__(self, place: Path):
        began = time.perf_counter()
        command = [sys.executable, "-m", "sfumato", "serve", str(place)]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True
        )
        assert self.process.stderr is not None
        first = json.loads(self.process.stderr.readline())
        assert first["event"] == "ready", first
        self.seconds = time.perf_counter() - began
        self.url = f"http://127.0.0.1:{first['ports']['http']}"
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def memory(self) -> float:
        """MiB that the process has resident."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1024

    def children(self) -> list[int]:
        text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        return [int(word) for word in text.stdout.split()]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def build(
    folder: Path, quantum: float = 0.25, ledger: str = "clinic.ledger", name: str = "service"
) -> tuple[Path, str]:
    """A configuration with the demo's clinic, and a token."""
    if not (folder / "clinic.duckdb").exists():
        clinic.build(folder / "clinic.duckdb")
    policy = clinic.POLICY.replace("journalist = 0.2              # a share of the budget", PEOPLE)
    (folder / "policy.toml").write_text(policy.replace("epsilon = 2.0", "epsilon = 200.0"))
    place = folder / f"{name}.toml"
    place.write_text(SERVICE.format(quantum=quantum, ledger=ledger))
    service = Service.open(Configuration.load(place))
    token = service.data["clinic"].identity.new("first", Role.ANALYST)
    service.close()
    return place, token


def question(i: int) -> str:
    return f"SELECT COUNT(*) AS n FROM patients WHERE age > {i % 90} AND patient_id <> {i}"


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] * 1e3


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def door(folder: Path, options: argparse.Namespace) -> list[Row]:
    """The same stored question, asked of a service over HTTP, and of a curator in this process."""
    place, token = build(folder, 0.0)
    server, sql = Running(place), question(1)
    remote = connect(server.url, token=token)
    remote.ask(sql, epsilon=0.1)
    over_http = [timed(lambda: remote.ask(sql, epsilon=0.1)) for _ in range(300)]
    remote.close()
    server.stop()
    service = Service.open(Configuration.load(place))
    curator = service.data["clinic"].curator.analyst("first")
    alone = [timed(lambda: curator.ask(sql, epsilon=0.1)) for _ in range(300)]
    service.close()
    with_door, without = (statistics.median(side) * 1e3 for side in (over_http, alone))
    cost = with_door - without
    words = f"{cost:.2f} ms ({with_door:.2f} over HTTP, {without:.2f} in the curator)"
    return [("door's own cost", words, "≤ 3 ms", cost <= 3)]


def load(folder: Path, options: argparse.Namespace) -> list[Row]:
    """Many connections, 20 calls a second; then as fast as it goes, for a quarter of the time."""
    place, token = build(folder)
    server, rows = Running(place), list[Row]()
    try:
        clients = [connect(server.url, token=token) for _ in range(options.connections)]
        for client in clients:
            client.request("GET", "/health")  # open
        clients[0].ask(question(0), epsilon=0.01)
        kinds: dict[str, list[float]] = {"preview": [], "stored": [], "new": []}
        wrong: list[BaseException] = []

        def call(client: Remote, i: int) -> None:
            kind = random.Random(i).choices(list(kinds), [45, 45, 10])[0]
            act = {
                "preview": lambda: client.preview(question(i % 50), epsilon=0.01),
                "stored": lambda: client.ask(question(0), epsilon=0.01),
                "new": lambda: client.ask(question(i), epsilon=0.01),
            }[kind]
            try:
                kinds[kind].append(timed(act))
            except (BudgetExceeded, TooManyRequests):
                pass  # a refusal
            except Exception as problem:
                wrong.append(problem)

        before, began, count = server.memory(), time.perf_counter(), 20 * options.seconds
        with ThreadPoolExecutor(options.connections) as pool:
            for i in range(1, count + 1):
                pool.submit(call, clients[i % len(clients)], i)
                time.sleep(max(0.0, began + i / 20 - time.perf_counter()))
        for kind, bar in (("preview", 50), ("stored", 25)):
            p99 = percentile(kinds[kind], 0.99)
            words = f"p50 {percentile(kinds[kind], 0.5):.1f} ms, p99 {p99:.1f} ms of {len(kinds[kind])}"
            rows.append((f"{kind}, 20 calls/s", words, f"p99 ≤ {bar} ms", p99 <= bar))
        done, began = sum(map(len, kinds.values())), time.perf_counter()
        with ThreadPoolExecutor(options.connections) as pool:
            until = began + options.seconds / 4

            def hurry(k: int) -> None:
                i = 10**6 + k * 10**5
                while time.perf_counter() < until:
                    call(clients[k], i := i + 1)

            list(pool.map(hurry, range(len(clients))))
        fast = (sum(map(len, kinds.values())) - done) / (time.perf_counter() - began)
        rows.append(("as fast as it goes", f"{fast:.0f} calls/s on {len(clients)} connections", "", True))
        after = server.memory()
        rows.append(("errors that are no refusals", f"{len(wrong)} {wrong[:1]}", "0", not wrong))
        rows.append(("memory", f"{before:.0f} → {after:.0f} MiB", "flat", after < before * 1.5 + 50))
    finally:
        server.stop()
    ledger = Ledger.open(folder / "clinic.ledger")
    state = ledger.verify()
    exact = sum((cost for _, cost in state.costs.values()), start=type(state.spent)()) == state.spent
    rows.append(("ledger", f"{len(state.costs)} charges, exact to the unit", "exact", exact))
    ledger.close()
    return rows


def kills(folder: Path, options: argparse.Namespace) -> list[Row]:
    """Clients retry with their keys while the service, or one of its workers, is killed."""
    place, token = build(folder, 0.05)
    server, back = Running(place), list[float]()
    seen: dict[str, set[str]] = {}
    stop, lock = threading.Event(), threading.Lock()
    failed = 0

    def client(k: int) -> None:
        nonlocal failed
        i = 0
        while not stop.is_set():
            i, key = i + 1, f"client-{k}-question-{i}"
            while not stop.is_set():
                try:
                    answer = connect(server.url, token=token).ask(question(1000 * k + i), epsilon=0.01, key=key)
                    with lock:
                        seen.setdefault(key, set()).add(repr(answer.rows))
                    if random.random() < 0.7:
                        break
                except (ServiceFailed, LedgerUnavailable, TooManyRequests):
                    time.sleep(0.05)
                except SfumatoError:
                    with lock:
                        failed += 1
                    break

    threads = [threading.Thread(target=client, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for n in range(options.kills):
        time.sleep(0.3 + random.random())
        if n % 2 and (workers := server.children()):
            os.kill(random.choice(workers), signal.SIGKILL)
            continue
        server.process.kill()
        server.process.wait()
        server = Running(place)
        back.append(server.seconds)
    time.sleep(1.0)
    stop.set()
    for thread in threads:
        thread.join()
    server.stop()
    ledger = Ledger.open(folder / "clinic.ledger")
    charged = [str(line.content["key"]) for line in ledger.history() if line.content["kind"] == "charged"]
    own = [key for key in charged if key in seen]
    uncharged, twice = len(set(seen) - set(charged)), len(own) - len(set(own))
    changed = sum(len(rows) > 1 for rows in seen.values())
    ledger.close()
    return [
        (f"{options.kills} kills: answers without charge", f"{uncharged} of {len(seen)}", "0", not uncharged),
        ("charged twice with one key", f"{twice}", "0", not twice),
        ("two answers to one key", f"{changed}", "0", not changed),
        ("failed after the charge (worker killed twice)", f"{failed}", "", True),
        ("back after", f"{max(back):.2f} s at most", "< 3 s", max(back) < 3),
    ]


def timeout(folder: Path, options: argparse.Namespace) -> list[Row]:
    """A statement that runs for ever, in one worker of a pool of two, beside quick ones."""
    from sfumato.engines.duckdb import DuckDB
    from sfumato.engines.pool import WorkerPool

    build(folder)
    pool, others = WorkerPool(DuckDB(folder / "clinic.duckdb", timeout=1.0), 2), list[float]()
    warm = [threading.Thread(target=pool.run, args=("SELECT SUM(range) FROM range(300000000)",)) for _ in range(2)]
    for thread in warm:
        thread.start()
    for thread in warm:
        thread.join()
    taken: list[float] = []

    def runaway() -> None:
        try:
            taken.append(
                timed(lambda: pool.run("SELECT SUM(a.range * b.range) FROM range(10000000) a, range(10000000) b"))
            )
        except Exception:
            taken.append(time.perf_counter() - began)

    began = time.perf_counter()
    thread = threading.Thread(target=runaway)
    thread.start()
    while thread.is_alive():
        others.append(timed(lambda: pool.run("SELECT COUNT(*) FROM wards")))
    thread.join()
    pool.close()
    over = taken[0] - 1.0
    words = f"{over:.2f} s after its limit; {len(others)} others answered, the slowest after {1e3 * max(others):.0f} ms"
    return [("a runaway statement ends", words, "within 1 s", over <= 1.0 and len(others) > 3)]


def races(folder: Path, options: argparse.Namespace) -> list[Row]:
    """Two services on one PostgreSQL ledger spend one small budget."""
    if binaries() is None:
        return [("two services on one ledger", "no PostgreSQL here", "", True)]
    with running() as database:
        address = f"postgresql://sfumato@/postgres?host={quote(str(database.folder))}&schema=clinic"
        places = [build(folder, 0.001, address, name) for name in ("first", "second")]
        servers = [Running(place) for place, _ in places]
        answered, lock = [0], threading.Lock()

        def client(k: int) -> None:
            remote = connect(servers[k % 2].url, token=places[k % 2][1])
            for i in range(options.races // 16):
                try:
                    remote.ask(question(10_000 * k + i), epsilon=40.0 if i % 3 else 0.5)
                    with lock:
                        answered[0] += 1
                except (BudgetExceeded, LedgerUnavailable):
                    continue

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(client, range(16)))
        for server in servers:
            server.stop()
        ledger = Ledger.open(address)
        state = ledger.verify()
        over = sum(not spent.within(limit) for limit, spent in state.accounts.values())
        ledger.close()
    words = f"{over} of {options.races} questions, {len(state.costs)} charged, {answered[0]} answered"
    return [("two services on one ledger: overspent", words, "0", over == 0 and answered[0] <= len(state.costs))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--races", type=int, default=160)
    parser.add_argument("--only", nargs="*", default=["door", "load", "kills", "timeout", "races"])
    options, missed = parser.parse_args(), 0
    for part in (door, load, kills, timeout, races):
        if part.__name__ not in options.only:
            continue
        with tempfile.TemporaryDirectory(prefix="sfumato-bench-", ignore_cleanup_errors=True) as folder:
            for what, found, bar, met in part(Path(folder), options):
                missed += not met
                print(f"{'ok    ' if met else 'MISSED'} {what:48} {found}{f'   ({bar})' if bar else ''}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
