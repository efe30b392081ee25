"""Other systems where people have many rows: errors against the plain truth, with bounds of two kinds.

    python bench/truth/peers.py [--draws 30] [--only opendp] [--jobs "by month"] [--json [FILE]]

All of them need to be told how much one person may add. What their documents say of it (`ADVISED`):

- SmartNoise: its readme recommends one row of each person (max_ids = 1), which is its default.
- OpenDP: its guide to identifier truncation supposes that more than ten rows of a person are unlikely: 10 rows,
  and by group 1 row in 10 groups.
- Tumult: its tutorial on privacy IDs takes 20 rows, and by group 1 row in 5 groups, without a reason.
- PipelineDP: its readme takes 1 row in 2 groups; its repository, though not its package, has a tool that looks for
  bounds in the exact data, for nothing, so that what it finds is not private.

So bounds are, first, as they are advised or shown; second, in hindsight: the 95 % and the 99 % quantile of groups per
person, of rows in a group and of rows per person, read from the data, of which the best is compared. No owner could
choose these. Noise is Laplace or Gaussian, the better one. Ours, on a Gaussian ledger or on one of pure ε, is told
nothing and pays for what it finds out. All have (ε, δ) = (1, 1e-6), public keys and ranges. Error: root of the mean
squared difference from the plain answer over groups and draws; of sums apart from counts.
"""

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.common.side import Side
from bench.truth.curators import Curators, Stated
from bench.truth.data import BENCH, prepared

HERE = Path(__file__).parent
EPSILON, DELTA = 1.0, 1e-6
PEERS = {"opendp": "OpenDP", "pipelinedp": "PipelineDP", "smartnoise": "SmartNoise", "tumult": "Tumult"}
FEWER = {"tumult": 4, "opendp": 5}  # draws of who needs seconds for each
QUANTILES = (0.95, 0.99)
ADVISED = {  # groups of a person, rows in each; rows of a person where there are no groups
    "opendp": {"groups": 10, "rows": 1, "most": 10},
    "pipelinedp": {"groups": 2, "rows": 1, "most": 1},
    "smartnoise": {"groups": 1, "rows": 1, "most": 1},
    "tumult": {"groups": 5, "rows": 1, "most": 20},
}


@dataclass(frozen=True)
class Job:
    name: str
    table: str
    unit: str
    key: str = ""
    value: str = ""
    low: int = 0
    high: int = 1


JOBS = (
    Job("flights", "flights", "tailnum"),
    Job("flights by month", "flights", "tailnum", "month"),
    Job("flights by dest", "flights", "tailnum", "dest"),
    Job("flights, miles by origin", "flights", "tailnum", "origin", "distance", 0, 5000),
    Job("ratings by dept", "insteval", "s", "dept"),
    Job("ratings, stars by service", "insteval", "s", "service", "y", 1, 5),
)


@dataclass
class Found:
    """Errors of one system in one job: of counts, and of sums if there are any."""

    job: str
    system: str
    how: str
    errors: list[float]
    draws: int


def table_of(connection: duckdb.DuckDBPyConnection, job: Job) -> Path:
    """Person, group and value of each row that is somebody's, as a file that every system reads."""
    place = BENCH / ".data" / f"peers-{job.table}-{job.key or 'all'}.parquet"
    key = f"CAST({job.key} AS VARCHAR)" if job.key else "''"
    value = f"CAST({job.value} AS BIGINT)" if job.value else "CAST(0 AS BIGINT)"
    connection.execute(
        f"COPY (SELECT CAST({job.unit} AS VARCHAR) AS u, {key} AS k, {value} AS v FROM {job.table}"
        f" WHERE {job.unit} IS NOT NULL) TO '{place}' (FORMAT parquet)"
    )
    return place


def truth_of(file: Path) -> dict[str, list[float]]:
    rows = duckdb.sql(f"SELECT k, count(*), sum(v) FROM '{file}' GROUP BY k").fetchall()
    return {key: [float(n), float(s)] for key, n, s in rows}


def quantiles_of(file: Path, share: float) -> dict[str, int]:
    """What this share of people does not exceed."""
    each = f"SELECT u, k, count(*) AS c FROM '{file}' GROUP BY u, k"
    people = f"SELECT count(*) AS g, sum(c) AS r FROM ({each}) GROUP BY u"
    ((groups, most),) = duckdb.sql(
        f"SELECT quantile_disc(g, {share}), quantile_disc(r, {share}) FROM ({people})"
    ).fetchall()
    ((rows,),) = duckdb.sql(f"SELECT quantile_disc(c, {share}) FROM ({each})").fetchall()
    return {"groups": int(groups), "rows": int(rows), "most": int(most)}


def errors_of(answers: list[dict[str, list[float]]], truth: dict[str, list[float]], summed: bool) -> list[float]:
    found = []
    for place in range(1 + summed):
        off = [(one.get(key, [0.0, 0.0])[place] - exact[place]) ** 2 for one in answers for key, exact in truth.items()]
        found.append(math.sqrt(float(np.mean(off))))
    return found


def theirs(side: Side, job: Job, file: Path, truth: dict[str, list[float]], draws: int) -> list[Found]:
    """With bounds as its documents have them, and with the best of two quantiles."""
    advised = {"as its documents have it": ADVISED[side.name]}
    hindsight = {f"{100 * share:g} %": quantiles_of(file, share) for share in QUANTILES}
    return [best_of(side, job, file, truth, draws, bounds) for bounds in (advised, hindsight)]


def best_of(
    side: Side, job: Job, file: Path, truth: dict[str, list[float]], draws: int, choices: dict[str, dict[str, int]]
) -> Found:
    """The best of these bounds and two kinds of noise."""
    best, notes = None, []
    for name, bounds in choices.items():
        for gaussian in (False, True) if side.name != "smartnoise" else (False,):
            arguments = {
                "table": str(file), "keys": sorted(truth) if job.key else [], "low": job.low, "high": job.high,
                "summed": bool(job.value), "draws": draws, "gaussian": gaussian, "epsilon": EPSILON, "delta": DELTA,
                **bounds,
            }  # fmt: skip
            reply = side.ask("answer", arguments, 1, 0.0)
            if "answer" not in reply:
                notes.append(str(reply.get("error", reply.get("absent", reply)))[:120])
                continue
            errors = errors_of(reply["answer"], truth, bool(job.value))  # type: ignore[arg-type]
            how = f"{name}, {'Gaussian' if gaussian else 'Laplace'}"
            if best is None or np.prod(errors) < np.prod(best.errors):
                best = Found(job.name, PEERS[side.name], how, errors, draws)
    return best or Found(job.name, PEERS[side.name], "; ".join([*choices, *notes]), [], 0)


def ours(curators: Curators, job: Job, truth: dict[str, list[float]], draws: int) -> Found:
    """The better of a Gaussian ledger and one of pure ε, as noise of others is the better of two."""
    both = [ours_on(curators, job, truth, draws, pure) for pure in (False, True)]
    return min(both, key=lambda one: float(np.prod(one.errors)))


def ours_on(curators: Curators, job: Job, truth: dict[str, list[float]], draws: int, pure: bool) -> Found:
    policy = curators.policy(job.table, Stated(pure=pure))
    keys, group = (f"{job.key}, ", f" GROUP BY {job.key}") if job.key else ("", "")
    total = f", SUM({job.value}) AS s" if job.value else ""
    answers = []
    for _ in range(draws):
        with curators.fresh(policy) as curator:
            answer = curator.ask(f"SELECT {keys}COUNT(*) AS n{total} FROM {job.table}{group}", epsilon=EPSILON)
        names = [text(key) for key in answer.column(job.key)] if job.key else [""]
        columns = [answer.column(name) for name in ("n", *("s" if job.value else ""))]
        answers.append({key: [float(str(c[i])) for c in columns] for i, key in enumerate(names)})
    return Found(
        job.name, "sfumato", "pure ε" if pure else "Gaussian", errors_of(answers, truth, bool(job.value)), draws
    )


def text(key: object) -> str:
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--draws", type=int, default=30)
    options.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS))
    options.add_argument("--jobs", nargs="+", default=[""])
    options.add_argument("--json", nargs="?", const=BENCH / "results/truth-peers.json", type=Path, metavar="FILE")
    chosen = options.parse_args()
    file, found = prepared(), list[Found]()
    curators = Curators(file)
    sides = [Side(name, HERE, BENCH / f".peers/curator-{name}/bin/python", 900) for name in chosen.only]
    jobs = [one for one in JOBS if any(part in one.name for part in chosen.jobs)]
    with duckdb.connect(str(file), read_only=True) as connection:  # a curator locks the file system away from it
        places = {job: table_of(connection, job) for job in jobs}
    for job in jobs:
        truth = truth_of(places[job])
        mine = ours(curators, job, truth, chosen.draws)
        found.append(mine)
        print(f"{job.name:28} ours {mine.errors} {mine.how}", flush=True)
        for side in (one for one in sides if one.installed):
            for one in theirs(side, job, places[job], truth, min(chosen.draws, FEWER.get(side.name, chosen.draws))):
                found.append(one)
                ratios = [f"{a / b:.1f}×" for a, b in zip(one.errors, mine.errors, strict=False)]
                print(f"{job.name:28} {one.system:12} {' '.join(ratios) or 'failed'}  {one.how}", flush=True)
            if chosen.json:
                chosen.json.parent.mkdir(parents=True, exist_ok=True)
                chosen.json.write_text(json.dumps([asdict(x) for x in found], indent=1) + "\n")
    for side in sides:
        side.stop()
    summary(found)


def summary(found: list[Found]) -> None:
    """Geometric mean of each system's errors over ours."""
    mine = {one.job: one.errors for one in found if one.system == "sfumato"}
    others = [one for one in found if one.system != "sfumato"]
    for system in dict.fromkeys(one.system for one in others):
        for advised in (True, False):
            some = [one for one in others if one.system == system and one.how.startswith("as its") == advised]
            ratios = [a / b for one in some for a, b in zip(one.errors, mine[one.job], strict=False)]
            if ratios:
                mean, bounds = math.exp(float(np.mean(np.log(ratios)))), "documents" if advised else "hindsight"
                met = (" ok" if mean >= 2 else " NO") if advised else "  ·"
                print(f"{met}  {system}, bounds by {bounds}: error {mean:.2f} × ours (least {min(ratios):.2f}; bar 2)")


if __name__ == "__main__":
    main()
