"""Real `kill -9` of a curator anywhere between the text of a question and its answer.

Everything that touches DuckDB runs in forked processes, so that the one that forks has a single thread.
"""

import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sfumato.curator import Curator
from sfumato.curator.failure_guard import Clock
from sfumato.ledger import Budget, Ledger
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.faults.kills import ANSWER, CHARGE, Tally, deadly, kill_many

POINTS = (
    "ask: asked",
    "ask: priced",
    *(f"charge: {p}" for p in CHARGE),
    "data: before",
    "data: read",
    "noise: drawn",
    "answer: due",
    *(f"answer: {p}" for p in ANSWER),
    "ask: shown",
    "release: after",
)
EPSILON = 0.01
RULES = Policy.read(POLICY)
Opened = Callable[[], Curator]


def question(key: str) -> str:
    number, place = key.split(".")
    return f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number} AND stay < {place}"


def respelled(key: str) -> str:
    number, place = key.split(".")
    return f"select count(*) from visits as v where 1 = 1 and v.stay < {place} and {number} < v.cost"


def kill_askers(folder: Path, count: int) -> Tally:
    """Kill that many curators, each in the middle of a question."""
    alone(lambda: built(folder / "clinic.duckdb"))
    made: list[Path] = []

    def new() -> Ledger:
        made.append(folder / f"{len(made)}.ledger")
        return Ledger.create(made[-1], Budget(RULES.epsilon, RULES.delta))

    def opened() -> Curator:
        return Curator.open(folder / "clinic.duckdb", RULES, ledger=made[-1])

    return kill_many(new, opened, folder / "released", count, points=POINTS, life=ask_for_ever, judge=judged)  # type: ignore[arg-type]


def ask_for_ever(opened: Opened, out: Path, number: int, point: str, after: int) -> None:
    """The victim's life: questions, until it is killed."""
    probe = deadly(point, after)
    curator = replace(opened(), probe=probe)
    object.__setattr__(curator.ledger, "probe", probe)
    file = os.open(out, os.O_WRONLY | os.O_APPEND)
    for place in range(1000):
        key = f"{number}.{place}"
        answer = curator.ask(question(key), epsilon=EPSILON, key=key)
        os.write(file, f"{key} {json.dumps(answer.rows[0])}\n".encode())
        probe("release: after")


def judged(opened: Opened, out: Path, number: int, tally: Tally) -> None:
    """All that must hold after a kill, found out by another process."""
    note = out.with_name("verdict")
    alone(lambda: note.write_text(json.dumps(verdict(opened, out, number))))
    released, unseen = json.loads(note.read_text())
    tally.released += released
    tally.unseen += unseen
    tally.retried += 1


def verdict(opened: Opened, out: Path, number: int) -> tuple[int, int]:
    curator = opened()
    state = curator.ledger.verify()
    seen = {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1]) for line in out.read_text().splitlines()}
    for key in seen:  # no answer without its charge
        charge = state.requests["owner", key]
        assert charge < state.answers[charge][0]
    assert len(seen) <= len(state.answers) <= len(state.costs)
    mine = [key for key in seen if key.startswith(f"{number}.")]
    for key in mine[-2:]:  # the stored answer, by its key, without one, and in other words: all free
        for again in (
            asked(curator, question(key), key),
            asked(curator, question(key)),
            asked(curator, respelled(key)),
        ):
            assert again == (seen[key], False)
    assert curator.ledger.verify().spent == state.spent
    pending = f"{number}.{len(mine)}"  # what it was busy with: charged once, however often it is sent
    before = ("owner", pending) in state.requests
    rows, _ = asked(curator, question(pending), pending)
    assert asked(curator, respelled(pending)) == (rows, False)
    after = curator.ledger.verify()
    assert len(after.costs) == len(state.costs) + (not before)
    with open(out, "a") as file:
        file.write(f"{pending} {json.dumps(rows)}\n")
    return len(mine), int(before)


def ask_together(folder: Path, processes: int) -> dict[str, object]:
    """One question by one key, from many processes; the first one is killed when it has read data, while all wait."""
    alone(lambda: built(folder / "clinic.duckdb"))
    Ledger.create(folder / "a.ledger", Budget(RULES.epsilon, RULES.delta)).close()
    waiting, ready = os.pipe(), os.pipe()

    def life(number: int) -> None:
        curator = Curator.open(folder / "clinic.duckdb", RULES, ledger=folder / "a.ledger")

        def probe(point: str) -> None:
            if number == 0 and point == "data: read":
                os.write(ready[1], b"x")
                for _ in range(processes - 1):
                    os.read(waiting[0], 1)
                os.kill(os.getpid(), signal.SIGKILL)

        def sleep(seconds: float) -> None:  # the first one to be told that it is not his turn yet
            nonlocal told
            if not told:
                os.write(waiting[1], b"x")
                told = True
            time.sleep(seconds)

        told = False
        answer = replace(curator, probe=probe, clock=Clock(sleep=sleep)).ask(question("1.9"), epsilon=EPSILON, key="k")
        (folder / f"{number}.body").write_text(json.dumps(answer.rows))

    children = []
    for number in range(processes):
        if (child := os.fork()) == 0:
            try:
                life(number)
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        children.append(child)
        if number == 0:
            os.read(ready[0], 1)  # it has the turn
    for child in children:
        os.waitpid(child, 0)
    state = Ledger.open(folder / "a.ledger").verify()
    bodies = [place.read_text() for place in folder.glob("*.body")]
    assert len(bodies) == processes - 1
    return {"bodies": len(set(bodies)), "charges": len(state.costs), "answers": len(state.answers),
            "reruns": len(state.reruns)}  # fmt: skip


def asked(curator: Curator, sql: str, key: str | None = None) -> tuple[list[object], bool]:
    answer = curator.ask(sql, epsilon=EPSILON, key=key)
    return list(answer.rows[0]), answer.charged


def alone(act: Callable[[], object]) -> None:
    """In a process of its own, which must succeed."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "see above"
