"""The curator against OpenDP, SmartNoise SQL, Tumult and PipelineDP: same jobs, same bounds, same total budget.

    python bench/curator/against.py [--only a "c'" opendp] [--quick] [--draws 20] [--json [FILE]]

Of each person 5 keys count at most, with 2 rows each (jobs without keys: 10 rows), values between 0 and 50; the whole
job has (ε, δ) = (1, 1e-6). What each system was given is said in its sides/*.py.

Time: the job as a user runs it on data that are ready, in turns with ours, the least of several; OpenDP on 10⁷ rows,
the others on 10⁶. Ours is a curator just opened: nothing is remembered, the charge is durable.
Error: |answer − true|, the mean over 1,000 keys and all draws, where "true" is the exact answer without bounds; a key
that is not shown counts as 0. On t7 and t6 most of it is rows that bounds leave out, of which each system leaves out
its own. On c6, the rows of t6 that are within the bounds, nothing is left out and the error is that of the noise.
Draws: 20, or as many as begin within --seconds, if a system cannot keep what it has before it adds noise; 1,000 keys
make a mean of few draws sharp. "Level" is a difference below two standard errors. Ours is on a Gaussian ledger, beside
it on one of pure ε: the bar for single numbers is on the latter, for tables it is shown for both.
Peers live in bench/.peers/curator-<name>, which `make bench-peers` prepares; those that are not there are left out.
"""

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.common.side import Side
from bench.curator.data import DATA, prepared
from bench.curator.jobs import JOBS, Answer, Job, Truth, cut

HERE = Path(__file__).parent
BENCH = HERE.parent
SPLITS = 1.4  # ours must be so much better than who splits ε, if there are several aggregates


@dataclass(frozen=True)
class Peer:
    """A system, the table that it is timed on, and how many times as long it must take for COUNT and SUM by key."""

    name: str
    side: str
    table: str
    ratio: float
    keeps: bool = False  # can it draw noise again without doing all the rest?
    splits: bool = False  # does it divide ε among aggregates?
    own_avg: bool = True
    arguments: dict[str, object] = field(default_factory=dict)
    drawn: bool = True  # or timed only
    timed: bool = True  # or drawn only
    cut: bool = True  # are its bounds such that it leaves out nothing of c6?

    def does(self, job: Job) -> bool:
        """Variants are for jobs with keys, and if timed for those that have a bar."""
        return not self.arguments or (job.judged if self.timed else not job.scalar)


PEERS = (
    Peer("OpenDP", "opendp", "t7", 15, own_avg=False),
    Peer("OpenDP, as it is", "opendp", "t7", 15, own_avg=False, arguments={"plain": True}, drawn=False),
    Peer("SmartNoise", "smartnoise", "t6", 15, keeps=True, splits=True),
    Peer("SmartNoise, copying", "smartnoise", "t6", 15, arguments={"copy": True}, drawn=False),
    Peer("SmartNoise, 5 rows", "smartnoise", "t6", 15, True, True, arguments={"rows": 5}, timed=False, cut=False),
    Peer("Tumult", "tumult", "t6", 20, own_avg=False),
    Peer("PipelineDP", "pipelinedp", "t6", 30, keeps=True, splits=True),
    Peer("PipelineDP, Laplace", "pipelinedp", "t6", 30, True, True, arguments={"laplace": True}, timed=False),
)


@dataclass
class Found:
    """What one system did of one job on one table."""

    ms: list[float] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    note: str = ""

    @property
    def seconds(self) -> float | None:
        return min(self.ms) / 1e3 if self.ms else None

    @property
    def keys(self) -> float:
        return fmean(len(answer["key"]) for answer in self.answers)

    def error(self, truth: Truth, job: Job, column: str) -> tuple[float, float]:
        """The mean over draws, and its standard error; of one draw it is unknown, and taken for 1 %."""
        each = [truth.error(job, column, answer) for answer in self.answers]
        return fmean(each), stdev(each) / math.sqrt(len(each)) if len(each) > 1 else 0.01 * each[0]


class Bench:
    """Asks, and remembers."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = prepared(DATA)
        cut(self.folder)
        self.ours = Side("sfumato", HERE, Path(sys.executable), 600)
        self.truths: dict[str, Truth] = {}
        self.found: dict[tuple[str, str, str], Found] = {}  # (system, job, table)

    def truth(self, table: str) -> Truth:
        if table not in self.truths:
            self.truths[table] = Truth.of_table(self.folder / f"{table}.parquet")
        return self.truths[table]

    def once(self, side: Side, job: Job, table: str, found: Found, **more: object) -> float:
        """One request, its answers appended to what was found; the seconds that it took in all."""
        start = time.monotonic()
        reply = side.ask(job.name, {"table": str(self.folder / f"{table}.parquet"), **more}, 1, 0.0)
        if "answer" in reply:
            answer: dict[str, list[Answer]] = reply["answer"]  # type: ignore[assignment]
            found.ms += [] if "draws" in answer else reply["ms"]  # type: ignore[operator]
            found.answers += answer.get("draws", [reply["answer"]])  # type: ignore[list-item]
        else:
            found.note = (
                f"over {reply['late']:g} s" if "late" in reply else str(reply.get("absent", reply.get("error")))
            )
        return time.monotonic() - start

    def timed(self, peer: Peer, side: Side, job: Job, table: str) -> None:
        """The two sides in turn, until each has had its rounds or 20 seconds; at least two of what is judged."""
        theirs = self.found.setdefault((peer.name, job.item, table), Found())
        mine = self.found.setdefault(("ours", job.item, table), Found())
        spent = 0.0
        for turn in range(self.options.rounds):
            if theirs.note or (spent > 20 and turn >= (2 if job.judged else 1)):
                break
            spent += self.once(side, job, table, theirs, **peer.arguments)
            for _ in range(2):
                self.once(self.ours, job, table, mine)

    def drawn(self, name: str, side: Side, job: Job, table: str, keeps: bool, **more: object) -> None:
        """Many draws of one system."""
        found = self.found.setdefault((name, job.item, table), Found())
        missing, spent = self.options.draws - len(found.answers), 0.0
        if keeps and missing > 0 and not found.note:
            self.once(side, job, table, found, draws=missing, **more)
        while not keeps and len(found.answers) < self.options.draws and not found.note:
            if spent > self.options.seconds and len(found.answers) > 1:
                break
            spent += self.once(side, job, table, found, **more)

    # ---- all of it --------------------------------------------------------------------------------------------------

    def run(self) -> list["Line"]:
        jobs = [job for job in JOBS if self.chosen(job.item, [job.item for job in JOBS])]
        peers = [peer for peer in PEERS if self.chosen(peer.side, [peer.side for peer in PEERS])]
        lines: list[Line] = []
        for table in dict.fromkeys([*map(self.table, peers), "c6"]):
            for job in jobs:
                self.drawn("ours", self.ours, job, table, True)
                self.drawn("pure", self.ours, job, table, True, pure=True)
        sides = {peer.side: Side(peer.side, HERE, python_of(peer.side), 600) for peer in peers}
        for peer in peers:
            side = sides[peer.side]
            if not side.installed:
                print(f"{peer.name} is not installed; `make bench-peers` tries to", file=sys.stderr)
                continue
            for job in filter(peer.does, jobs):
                print(f"  {peer.name}: {job.item} {job.work} …", file=sys.stderr, flush=True)
                self.measure(peer, side, job)
                lines.append(self.line(peer, job))
                print(lines[-1], flush=True)
            if peer.side not in [other.side for other in peers[peers.index(peer) + 1 :]]:
                side.stop()
        self.ours.stop()
        return lines

    def measure(self, peer: Peer, side: Side, job: Job) -> None:
        table = self.table(peer)
        if not peer.own_avg and job.columns == ("n", "s", "avg"):  # what count and sum make
            for place in (table, "c6"):
                made = self.found.get((peer.name, "b", place), Found())
                self.found[peer.name, job.item, place] = Found([], made.answers, made.note)
            return
        if peer.timed:
            self.timed(peer, side, job, table)
        if peer.keeps:
            self.drawn(peer.name, side, job, table, True, **peer.arguments)
        if peer.drawn and peer.cut:
            self.drawn(peer.name, side, job, "c6", peer.keeps, **peer.arguments)

    def table(self, peer: Peer) -> str:
        return "t6" if self.options.quick else peer.table

    def chosen(self, name: str, all_of: list[str]) -> bool:
        """Is it named, or no other of its kind?"""
        named = set(self.options.only or ()) & set(all_of)
        return not named or name in named

    def line(self, peer: Peer, job: Job) -> "Line":
        table = self.table(peer)
        theirs, mine = self.found[peer.name, job.item, table], self.found["ours", job.item, table]
        ratio = theirs.seconds / mine.seconds if theirs.seconds and mine.seconds else None
        places = {
            place: [self.found.get((who, job.item, place), Found()) for who in ("ours", "pure", peer.name)]
            for place in (table, "c6")
        }
        whole = {place: found for place, found in places.items() if peer.drawn and all(one.answers for one in found)}
        errors = [
            Error.of(column, place, *found, self.truth(place), job)
            for place, found in whole.items()
            for column in job.columns
        ]
        keys = {place: [one.keys for one in found] for place, found in whole.items() if job.found}
        failed = [f"ours failed: {one.note}" for found in places.values() for one in found[:2] if one.note]
        note = "; ".join([*failed, *([theirs.note] if theirs.note else [])])
        return Line(peer, job, table, theirs.seconds, mine.seconds, ratio, errors, keys, note)


@dataclass(frozen=True)
class Error:
    """Of one column on one table: ours on a Gaussian ledger, on one of pure ε, and theirs; with standard errors."""

    column: str
    table: str
    ours: tuple[float, float]
    pure: tuple[float, float]
    theirs: tuple[float, float]
    draws: tuple[int, int]

    @staticmethod
    def of(column: str, table: str, ours: Found, pure: Found, theirs: Found, truth: Truth, job: Job) -> "Error":
        each = (found.error(truth, job, column) for found in (ours, pure, theirs))
        return Error(column, table, *each, (len(ours.answers), len(theirs.answers)))

    def verdict(self, mine: tuple[float, float], bar: float) -> str:
        """Is theirs at least `bar` times ours?"""
        if self.theirs[0] >= bar * mine[0]:
            return "met"
        spread = math.hypot(self.theirs[1], bar * mine[1])
        return "level" if self.theirs[0] + 2 * spread >= bar * mine[0] else "MISSED"

    def told(self, mine: tuple[float, float], bars: tuple[float, ...]) -> str:
        times = self.theirs[0] / mine[0] if mine[0] else math.inf
        verdicts = "".join(f", {'≤' if bar == 1 else f'{bar}×'} {self.verdict(mine, bar)}" for bar in bars)
        return f"{mine[0]:,.4g} ({times:.2f}×{verdicts})"


@dataclass(frozen=True)
class Line:
    """One job of one peer, beside ours."""

    peer: Peer
    job: Job
    table: str
    theirs: float | None
    ours: float | None
    ratio: float | None
    errors: list[Error]
    keys: dict[str, list[float]]  # ours, on pure ε, theirs
    note: str

    def __str__(self) -> str:
        text = f"{self.peer.name:20} {self.job.item:2} {self.job.work:30} {self.table}"
        if self.note:
            return f"{text}  {self.note[:120]}"
        if self.ratio is not None:
            text += f"  {self.theirs:7.2f} s, ours {self.ours:.3f} s: {self.ratio:.1f}×{self.speed()}"
        for place, (mine, pure, theirs) in self.keys.items():
            verdict = "met" if mine >= theirs else "MISSED"
            text += (
                f"\n      keys found on {place}: theirs {theirs:.0f}, ours {mine:.0f} ({verdict}), pure ε {pure:.0f}"
            )
        for e in self.errors:
            what = "|answer − true|" if e.table != "c6" else "noise alone    "
            text += (
                f"\n      {what} on {e.table} of {e.column:5}: theirs {e.theirs[0]:,.4g} ({e.draws[1]} draws),"
                f" ours {e.told(e.ours, () if self.job.scalar else self.bars)}, pure ε {e.told(e.pure, self.bars)}"
            )
        return text

    def speed(self) -> str:
        if not self.job.judged or self.ratio is None:
            return ""
        return f" (bar {self.peer.ratio:g}×: {'met' if self.ratio >= self.peer.ratio else 'MISSED'})"

    @property
    def bars(self) -> tuple[float, ...]:
        """At most theirs; far less, if they divide ε among several aggregates."""
        return (1.0, SPLITS) if self.job.several and self.peer.splits else (1.0,)

    def plain(self) -> dict[str, object]:
        return {
            "peer": self.peer.name,
            "job": self.job.work,
            "table": self.table,
            "seconds": {"theirs": self.theirs, "ours": self.ours, "ratio": self.ratio},
            "keys": {place: dict(zip(("ours", "pure", "theirs"), n, strict=True)) for place, n in self.keys.items()},
            "errors": [asdict(error) for error in self.errors],
            "note": self.note,
        }


def python_of(side: str) -> Path:
    return BENCH / ".peers" / f"curator-{side}" / "bin/python"


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="WHAT", help='jobs or peers, e.g. b "c\'" opendp')
    parser.add_argument("--quick", action="store_true", help="OpenDP on 10⁶ rows too, one round, three draws")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each side (3)")
    parser.add_argument("--draws", type=int, default=20, help="draws for the errors (20)")
    parser.add_argument("--seconds", type=float, default=12, help="after which no further draw begins (12)")
    parser.add_argument("--json", nargs="?", const=BENCH / "results/curator-peers.json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.draws, options.seconds = 1, 3, 1.0
    return options


def main() -> None:
    options = options_of()
    lines = Bench(options).run()
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps([line.plain() for line in lines], indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
