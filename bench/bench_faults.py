"""Every fault that the tests try a sample of, in full: what was tried, how often it went wrong (it may not), how fast.

    python bench/bench_faults.py [--kills 2000] [--flips 0] [--only kills races …]

`--flips 0` means every bit of every row. Ledgers are made in a temporary folder (TMPDIR says where): a disk, if the
charges per second are to mean anything. Rows about PostgreSQL are left out where there is none. The exit status is 1 if
any fault was not survived. On two shared cores it takes about 15 minutes.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import sfumato as sf
from sfumato.ledger import Budget, Ledger
from tests.faults import alone
from tests.faults import damage as harm
from tests.faults.proxy import CuttingProxy
from tests.faults.races import storm
from tests.faults.server import Server, binaries, running

SMALL = sf.loss.GaussianLoss(0.0001)
LONG = 24 * 3600.0
Row = tuple[str, int, int, str]  # what, how often tried, how often it went wrong, remarks


@contextmanager
def a_folder(where: Path | None = None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sfumato-faults-", dir=where))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def whole(found: dict[str, object], name: str) -> int:
    return int(str(found[name]))


# ---- crashes and races ----------------------------------------------------------------------------------------------


def kills(count: int, server: Server | None) -> Iterator[Row]:
    with a_folder() as folder:
        found = alone("kills", count, folder, seconds=LONG)
        yield "kill -9, SQLite", count, 0, remarks(found)
        if server:
            found = alone("kills", count // 4, folder, server.dsn, seconds=LONG)
            yield "kill -9, PostgreSQL", count // 4, 0, remarks(found)


def remarks(found: dict[str, object]) -> str:
    return f"{found['points']} points; {found['released']} released, {found['unseen']} charged and not seen"


def races(server: Server | None) -> Iterator[Row]:
    """On the disk, where flushes set the pace, and in memory, where the ledger does."""
    for where, place in (("disk", None), ("memory", Path("/dev/shm"))):
        if place is not None and not os.access(place, os.W_OK):
            continue
        for processes, threads in ((1, 16), (8, 1), (8, 4)):
            with a_folder(place) as folder:
                found = alone("races", processes, threads, 0.003, folder, seconds=LONG)
            yield f"race, SQLite, {processes} × {threads}, {where}", whole(found, "charges"), 0, rate(found)
        if server:
            with running(place) as other, a_folder() as folder:
                for processes, threads in ((2, 1), (2, 8), (8, 1)):
                    found = alone("races", processes, threads, 0.003, folder, other.dsn, seconds=LONG)
                    name = f"race, PostgreSQL, {processes} × {threads}, {where}"
                    yield name, whole(found, "charges"), 0, rate(found)


def flushes(count: int = 100) -> float:
    """How many times a second this disk flushes a page: what one charger after the other can reach at most."""
    with tempfile.TemporaryFile() as file:
        start = time.perf_counter()
        for _ in range(count):
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
        return count / (time.perf_counter() - start)


def rate(found: dict[str, object]) -> str:
    return f"{whole(found, 'charges') / float(str(found['seconds'])):,.0f} charges/s"


def cuts(server: Server | None, count: int = 200) -> Iterator[Row]:
    """The connection lost before, or after, the server has seen a COMMIT, of a charge or of an answer."""
    if server is None:
        return
    from sfumato.ledger.postgres import PostgresStore

    near, proxy = PostgresStore(server.dsn, "cuts"), CuttingProxy(server.socket)
    far = PostgresStore(proxy.dsn, "cuts")
    Ledger.create(near, Budget(1.0, 1e-6))
    ledger, wrong = Ledger.open(far), 0
    for number in range(count):
        when, what = ("before", "after")[number % 2], number // 2 % 2
        proxy.armed = when if what == 0 else ""
        receipt = ledger.charge(SMALL, question=str(number), key=str(number))
        proxy.armed = when if what == 1 else ""
        kept = ledger.keep(receipt, os.urandom(8))
        again = ledger.charge(SMALL, question=str(number), key=str(number))
        wrong += (again.seq, again.answer) != (receipt.seq, kept)
    state = Ledger.open(near).verify()
    wrong += len(state.costs) != count or len(state.answers) != count or proxy.cuts != count
    for store in (near, far):
        store.close()
    proxy.close()
    yield "connection lost around COMMIT", count, wrong, "charged once, answered with the same bytes"


def storms(count: int = 50) -> Iterator[Row]:
    wrong = 0
    with a_folder() as folder:
        for number in range(count):
            place = folder / f"{number}.ledger"
            ledgers = [Ledger.create(place, Budget(1.0, 1e-6)), *(Ledger.open(place) for _ in range(3))]
            bodies = storm(ledgers, SMALL, times=100)
            state = ledgers[0].verify()
            wrong += len(set(bodies)) != 1 or len(bodies) != 100 or len(state.costs) != 1 or len(state.answers) != 1
            for ledger in ledgers:
                ledger.close()
    yield "one key, 100 times at once", count, wrong, "one charge, 100 equal bodies"


# ---- damage ---------------------------------------------------------------------------------------------------------


def flips(limit: int) -> Iterator[Row]:
    with a_folder() as folder:
        place = folder / "hundred.ledger"
        harm.of_lines(place, 100).close()
        copy = harm.Copy.of(place)
        count = sum(1 for _ in harm.flips(copy))
        parts = 2 * (os.cpu_count() or 1)
        with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
            work = [(place, part, parts, limit) for part in range(parts)]
            found = pool.starmap(unnoticed_flips, work)
        tried = sum(t for t, _ in found)
        yield "bits of rows flipped", tried, sum(w for _, w in found), f"of {count:,} in 100 lines and their tables"
        rows = list(harm.row_changes(copy))
        wrong = sum(not copy.noticed(*changes) for changes in rows)
        yield "rows removed, swapped, appended", len(rows), wrong, ""
        copy.close()


def unnoticed_flips(place: Path, part: int, parts: int, limit: int) -> tuple[int, int]:
    copy = harm.Copy.of(place)
    mine = list(harm.flips(copy))[part::parts]
    if limit:
        mine = random.Random(part).sample(mine, min(limit // parts, len(mine)))
    wrong = sum(not copy.noticed(change) for change in mine)
    copy.close()
    return len(mine), wrong


def files(count: int = 2000) -> Iterator[Row]:
    with a_folder() as folder:
        place, anchor, target = folder / "a.ledger", folder / "a.ledger.anchor", folder / "changed.ledger"
        ledger = harm.of_lines(place, 100)
        ledger.close()
        before, data, rng, wrong, seen = harm.opened(place, anchor), place.read_bytes(), random.Random(0), 0, 0
        sizes = range(0, len(data), 512)
        for size in sizes:
            os.truncate(harm.copied(place, target), size)
            wrong += not harm.refused(lambda: harm.opened(target, anchor))
        yield "file truncated, every 512 bytes", len(sizes), wrong, ""
        wrong = 0
        for _ in range(count):
            changed = bytearray(data)
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            harm.copied(place, target).write_bytes(changed)
            seen += (refused := harm.refused(lambda: harm.opened(target, anchor)))
            wrong += not refused and harm.unanchored(target) != before
        yield "bits of the file flipped", count, wrong, f"{seen} refused, the others change nothing that is read"
        yield old_copies(folder)


def old_copies(folder: Path, count: int = 100) -> Row:
    place, wrong = folder / "b.ledger", 0
    ledger = Ledger.create(place, Budget(1.0, 1e-6))
    for number in range(count):
        ledger.close()
        shutil.copyfile(place, folder / f"{number}.old")
        ledger.charge(SMALL, question=str(number))
    ledger.close()
    for number in range(count):
        harm.copied(folder / f"{number}.old", place)
        wrong += not harm.refused(lambda: harm.opened(place, Path(f"{place}.anchor")))
    return "old copy put back, anchor kept", count, wrong, ""


def logs(charges: int = 100) -> Iterator[Row]:
    with a_folder() as folder:
        place, target = folder / "a.ledger", folder / "cut.ledger"
        ledger = Ledger.create(place, Budget(1.0, 1e-6))
        states = {}
        for number in range(charges):
            receipt = ledger.charge(SMALL, question=str(number))
            states[receipt.seq] = ledger.verify()
            ledger.keep(receipt, b"1")
            states[receipt.seq + 1] = ledger.verify()
        states[1] = None  # as it was made
        size, noticed, half = Path(f"{place}-wal").stat().st_size, 0, 0
        sizes = range(0, size - 512, 512)
        for left in sizes:
            harm.cut_wal(place, target, left)
            noticed += harm.refused(lambda: harm.opened(target, Path(f"{place}.anchor")))
            harm.cut_wal(place, target, left)
            if not harm.refused(lambda: harm.unanchored(target)):
                state = harm.unanchored(target)
                half += state.seq != 1 and states.get(state.seq) != state
        ledger.close()
    wrong = len(sizes) - noticed + half
    yield "log cut, every 512 bytes", len(sizes), wrong, "each refused; without the anchor, the state after a line"


# ---- all ------------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--flips", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[])
    asked = parser.parse_args()
    print(f"this disk flushes {flushes():,.0f} times a second; a charge in SQLite takes two flushes, in PostgreSQL one")

    def all_rows(server: Server | None) -> int:
        groups: dict[str, Callable[[], Iterator[Row]]] = {
            "kills": lambda: kills(asked.kills, server),
            "races": lambda: races(server),
            "cuts": lambda: cuts(server),
            "storms": storms,
            "flips": lambda: flips(asked.flips),
            "files": files,
            "logs": logs,
        }
        bad = 0
        for name, rows in groups.items():
            start = time.perf_counter()
            for what, tried, failed, remark in rows() if not asked.only or name in asked.only else ():
                seconds, start = time.perf_counter() - start, time.perf_counter()
                print(f"{what:34} {tried:8,} tried {failed:4} wrong {seconds:7.1f} s  {remark}", flush=True)
                bad += failed
        return bad

    if binaries() is None:
        print("no PostgreSQL here: its rows are left out")
        wrong = all_rows(None)
    else:
        with running() as server:
            wrong = all_rows(server)
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
