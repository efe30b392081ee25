"""Real `kill -9` of a curator, at named points and at random moments, and what must be true afterwards.

The victim is a forked process that charges, draws, keeps and releases; what it releases goes into a file outside. It is
killed, and then: whatever was released was charged and stored; the ledger opens, so its chain, tables and anchor
agree; and asking again with the same keys gives the same bytes and costs nothing.
"""

import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import sfumato as sf
from sfumato.ledger import Budget, Ledger

CHARGE = ("asked", "waiting", "locked", "spent", "written", "committing", "committed", "anchored")
ANSWER = ("waiting", "locked", "written", "committing", "committed", "anchored")
POINTS = (
    *(f"charge: {p}" for p in CHARGE),
    "data: read",
    "noise: drawn",
    *(f"answer: {p}" for p in ANSWER),
    "release: before",
    "release: after",
)
LOSS = sf.loss.GaussianLoss(0.001)
LONGEST = 0.03  # seconds until a kill at a random moment
EACH = 40  # kills for one ledger: then a new one, so that opening stays quick


@dataclass
class Tally:
    """What happened."""

    kills: Counter[str] = field(default_factory=Counter)
    released: int = 0
    unseen: int = 0  # charged, or even stored, and never seen: the safe side
    retried: int = 0


def kill_many(
    made: Callable[[], Ledger], opened: Callable[[], Ledger], out: Path, count: int, seed: int = 0, *,
    points: tuple[str, ...] = POINTS, life: Callable[..., None] | None = None,
    judge: Callable[..., None] | None = None,
) -> Tally:  # fmt: skip
    """Kill `count` times: every named point in turn, then random moments, half of each.

    `made` gives a new ledger each time, `opened` the newest one; the victim does `life`, then `judge` looks.
    """
    life, judge = life or curate, judge or inspect
    rng, tally = random.Random(seed), Tally()
    for number in range(count):
        if number % EACH == 0:
            made().close()
            out.write_bytes(b"")
        point = points[(number // 2) % len(points)] if number % 2 == 0 else "random"
        kill_one(life, opened, out, number, point, rng)
        tally.kills[point] += 1
        judge(opened, out, number, tally)
    return tally


def kill_one(
    life: Callable[..., None], opened: Callable[[], Ledger], out: Path, number: int, point: str, rng: random.Random
) -> None:
    after, moment = rng.randrange(3), rng.uniform(0, LONGEST)
    victim = os.fork()
    if victim == 0:
        try:
            life(opened, out, number, point, after)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    if point == "random":
        time.sleep(moment)
        os.kill(victim, signal.SIGKILL)
    status = os.waitpid(victim, 0)[1]
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, f"round {number}: not killed at {point}: {status}"


def curate(opened: Callable[[], Ledger], out: Path, number: int, point: str, after: int) -> None:
    """The victim's life: questions, for ever, until the `after`-th time that it passes `point`."""
    probe = deadly(point, after)
    ledger = opened()
    object.__setattr__(ledger, "probe", probe)
    file = os.open(out, os.O_WRONLY | os.O_APPEND)
    for question in range(1000):
        key = f"{number}.{question}"
        receipt = ledger.charge(LOSS, question=key, key=key)
        probe("data: read")
        answer = os.urandom(8)
        probe("noise: drawn")
        kept = ledger.keep(receipt, answer)
        probe("release: before")
        os.write(file, f"{key} {kept.hex()}\n".encode())
        probe("release: after")


def deadly(point: str, after: int) -> Callable[[str], None]:
    """A probe that kills where it is told to."""
    left = after

    def probe(here: str) -> None:
        nonlocal left
        if here == point:
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    return probe


def inspect(opened: Callable[[], Ledger], out: Path, number: int, tally: Tally) -> None:
    """All that must hold after a kill."""
    ledger = opened()
    state = ledger.verify()
    seen = dict(line.split() for line in out.read_text().splitlines())
    for key, answer in seen.items():
        charge = state.requests["owner", key]
        line, _, _ = state.answers[charge]
        assert charge < line
        assert int(key.split(".")[0]) != number or stored(ledger, key) == bytes.fromhex(answer)
    (price,) = ledger.prices(LOSS)
    assert state.spent.gauss == len(state.costs) * price.gauss
    assert len(seen) <= len(state.answers) <= len(state.costs)
    mine = [key for key in seen if key.startswith(f"{number}.")]
    tally.released += len(mine)
    pending = f"{number}.{len(mine)}"  # what it was busy with
    tally.unseen += ("owner", pending) in state.requests
    receipt = ledger.charge(LOSS, question=pending, key=pending)
    if receipt.answer is None:
        if not receipt.first:
            ledger.rerun(receipt)
        answer = ledger.keep(receipt, os.urandom(8))
    else:
        answer = receipt.answer
    tally.retried += 1
    assert stored(ledger, pending) == answer
    after = ledger.verify()
    assert len(after.costs) == len(state.costs) + receipt.first
    with open(out, "a") as file:  # now it is seen
        file.write(f"{pending} {answer.hex()}\n")
    ledger.close()


def stored(ledger: Ledger, key: str) -> bytes | None:
    again = ledger.charge(LOSS, question=key, key=key)
    assert not again.first
    return again.answer


def in_files(folder: Path) -> tuple[Callable[[], Ledger], Callable[[], Ledger]]:
    """New ledgers in files, and the newest of them."""
    made: list[Path] = []

    def make() -> Ledger:
        made.append(folder / f"{len(made)}.ledger")
        return Ledger.create(made[-1], Budget(1.0, 1e-6))

    return make, lambda: Ledger.open(made[-1])


def in_postgres(dsn: str) -> tuple[Callable[[], Ledger], Callable[[], Ledger]]:
    """New ledgers in schemas of a server, and the newest of them."""
    from sfumato.ledger.postgres import PostgresStore

    made: list[str] = []

    def make() -> Ledger:
        made.append(f"kills {len(made)} {os.getpid()}")
        return Ledger.create(PostgresStore(dsn, made[-1]), Budget(1.0, 1e-6))

    return make, lambda: Ledger.open(PostgresStore(dsn, made[-1]))
