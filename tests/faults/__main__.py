"""Faults that need a process with one thread, since it forks: python -m tests.faults kills 200 FOLDER [DSN]."""

import json
import sys
import time
from pathlib import Path

import sfumato as sf
from sfumato.ledger import Ledger, ZcdpBudget
from tests.faults.kills import in_files, in_postgres, kill_many
from tests.faults.races import exactly_spent, race


def kills(count: str, folder: str, dsn: str = "") -> dict[str, object]:
    made, opened = in_postgres(dsn) if dsn else in_files(Path(folder))
    tally = kill_many(made, opened, Path(folder) / "released", int(count))
    return {**vars(tally), "points": len(tally.kills)}


def questions(count: str, folder: str) -> dict[str, object]:
    """Kills along the whole path of a question, from its text to its answer."""
    from tests.faults.questions import kill_askers

    tally = kill_askers(Path(folder), int(count))
    return {**vars(tally), "points": len(tally.kills)}


def races(processes: str, threads: str, mu: str, folder: str, dsn: str = "") -> dict[str, object]:
    """Everyone against everyone for one budget."""
    step = sf.loss.GaussianLoss(float(mu))
    place: object = Path(folder) / "race.ledger"
    if dsn:
        from sfumato.ledger.postgres import PostgresStore

        place = PostgresStore(dsn, f"race {processes} {threads}")
    ledger = Ledger.create(place, ZcdpBudget(1.0, 1e-6))  # type: ignore[arg-type]
    ledger.close()
    start = time.perf_counter()
    done = race(lambda: Ledger.open(place), step, processes=int(processes), threads=int(threads))  # type: ignore[arg-type]
    seconds = time.perf_counter() - start
    exactly_spent(ledger, step, done)
    ledger.close()
    return {"charges": len(done), "seconds": seconds}


def turns(processes: str, folder: str) -> dict[str, object]:
    """Processes with one key; the first one dies while it is busy."""
    from tests.faults.questions import ask_together

    return ask_together(Path(folder), int(processes))


if __name__ == "__main__":
    print(
        json.dumps({"kills": kills, "questions": questions, "races": races, "turns": turns}[sys.argv[1]](*sys.argv[2:]))
    )
