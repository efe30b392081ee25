"""A service under load: what its door costs, how long calls take, and what kill -9 and two services on one ledger do.

    python bench/bench_server.py [--full] [--seconds 20] [--connections 50] [--kills 10] [--only load kills …]

Rows: `door`, the time of a call over HTTP beside `Curator`; `load`, mixed previews, stored and new questions over many
connections of both doors at 20 calls a second, then as fast as it goes; `kills`, SIGKILL of the service and of its
workers while clients try again; `timeout`, a runaway statement; `fuzz`, hostile messages to the PostgreSQL door;
`races`, two services on one PostgreSQL ledger. The exit status is 1 if a bar is missed.
"""

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.server.fuzz import fuzz
from bench.server.kills import kills
from bench.server.load import load
from bench.server.running import Row, Running, build, question, timed
from sfumato.client import connect
from sfumato.errors import BudgetExceeded, LedgerUnavailable
from sfumato.ledger import Ledger
from sfumato.server.configuration import Configuration
from sfumato.server.service import Service
from tests.faults.server import binaries, running

SIZES = {"seconds": (20, 300), "connections": (50, 200), "kills": (10, 200), "races": (160, 10_000), "rounds": (1, 20),
         "messages": (5000, 100_000)}  # small, full  # fmt: skip
PRICES = (0.5, 2.0, 8.0, 40.0)


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


def timeout(folder: Path, options: argparse.Namespace) -> list[Row]:
    """A statement that runs for ever, in one worker of a pool of two, beside quick ones."""
    from sfumato.engines.duckdb import DuckDB
    from sfumato.engines.pool import WorkerPool

    build(folder)
    pool, others = WorkerPool(DuckDB(folder / "clinic.duckdb", timeout=1.0), 2), list[float]()
    warm = [threading.Thread(target=pool.run, args=("SELECT SUM(range) FROM range(30000000)",)) for _ in range(2)]
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
    """Two services on one PostgreSQL ledger spend one budget, as often as there are rounds."""
    if binaries() is None:
        return [("two services on one ledger", "no PostgreSQL here", "", True)]
    return [race(folder, options.races, number) for number in range(options.rounds)]


def race(folder: Path, count: int, number: int) -> Row:
    with running() as database:
        address = f"postgresql://sfumato@/postgres?host={quote(str(database.folder))}&schema=clinic"
        places = [build(folder, 0.001, address, f"{name}{number}") for name in ("first", "second")]
        servers = [Running(place) for place, _ in places]
        answered, lock = [0], threading.Lock()

        def client(k: int) -> None:
            remote, rng = connect(servers[k % 2].url, token=places[k % 2][1]), random.Random(16 * number + k)
            for i in range(count // 16):
                try:
                    remote.ask(question(10_000 * k + i), epsilon=rng.choice(PRICES))
                    with lock:
                        answered[0] += 1
                except (BudgetExceeded, LedgerUnavailable):
                    continue

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(client, range(16)))
        used = sum(server.processor() for server in servers)
        for server in servers:
            server.stop()
        ledger = Ledger.open(address)
        state = ledger.verify()
        over = sum(not spent.within(limit) for limit, spent in state.accounts.values())
        ledger.close()
    words = (
        f"{over} of {count} questions, {len(state.costs)} charged, {answered[0]} answered, {used:.0f} s of processor"
    )
    print(f"       race {number}: {words}", flush=True)
    return ("two services on one ledger: overspent", words, "0", over == 0 and answered[0] <= len(state.costs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the size of the bars")
    for name, (small, full) in SIZES.items():
        parser.add_argument(f"--{name}", type=int, help=f"{small}; {full} if full")
    parser.add_argument("--seed", type=int, default=7, help="of hostile messages")
    parts = (door, load, kills, timeout, fuzz, races)
    parser.add_argument("--only", nargs="*", default=[part.__name__ for part in parts])
    options, missed = parser.parse_args(), 0
    for name, sizes in SIZES.items():
        if getattr(options, name) is None:
            setattr(options, name, sizes[options.full])
    for part in parts:
        if part.__name__ not in options.only:
            continue
        with tempfile.TemporaryDirectory(prefix="sfumato-bench-", ignore_cleanup_errors=True) as folder:
            for what, found, bar, met in part(Path(folder), options):
                missed += not met
                print(f"{'ok    ' if met else 'MISSED'} {what:48} {found}{f'   ({bar})' if bar else ''}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
