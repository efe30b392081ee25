"""Print which functions a question runs through: how many, in which files, and in which order modules call each other.

Six walks are recorded with a profiler hook: a preview, a question asked for the first time, the same question answered
from the store for another price and for the same one, the first showing of a stored answer after the curator was opened
again, and ε of a composition. A similar call goes before each, so that imports and opening the engine do not
count. Distinct functions, methods and lambdas of the package count; comprehensions and generated methods do not.

python tools/walk.py            a table, then the hops of each walk
python tools/walk.py --short    the table alone
python tools/walk.py --json     all of it as JSON
python tools/walk.py --only ask --sql "SELECT COUNT(*) FROM visits"
"""

import argparse
import inspect
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sfumato"
REPEATS = 9  # calls that are timed
NOT_FUNCTIONS = ("<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")

SQL = "SELECT ward, COUNT(*) AS n, AVG(stay) AS days FROM visits GROUP BY ward"
OTHER_SQL = "SELECT ward, COUNT(*) AS n, AVG(cost) AS price FROM visits WHERE stay > 1 GROUP BY ward"

POLICY = """
version = 1
[budget]
epsilon = 50.0
delta = 1e-6
[tables.visits]
unit = "patient_id"
groups = 2
rows = 3
[tables.visits.columns]
ward = {type = "text", keys = ["north", "south"]}
stay = {low = 0, high = 60, step = 0.125}
cost = {low = 0, high = 1000, step = 1}
"""


@dataclass
class Walk:
    """What one call ran: its distinct functions, the calls between modules in order, and how long such a call takes."""

    name: str
    functions: set[CodeType] = field(default_factory=set)
    hops: list[tuple[str, str]] = field(default_factory=list)
    milliseconds: float = 0.0

    @property
    def files(self) -> Counter[str]:
        """Distinct functions of each file that ran."""
        return Counter(module_of(code) for code in self.functions)

    @property
    def route(self) -> list[str]:
        """The modules in the order in which each is first called; later calls of the same module are left out."""
        return list(dict.fromkeys(callee for _, callee in self.hops))

    @property
    def calls(self) -> Counter[tuple[str, str]]:
        """How often one module called another."""
        return Counter(self.hops)

    @property
    def pairs(self) -> list[tuple[str, str, int, int]]:
        """Pairs of modules that call each other, with the number of calls each way."""
        calls = self.calls
        return sorted((a, b, calls[a, b], calls[b, a]) for a, b in calls if a < b and (b, a) in calls)

    def summary(self) -> dict[str, object]:
        return {
            "walk": self.name,
            "functions": len(self.functions),
            "files": len(self.files),
            "milliseconds": round(self.milliseconds, 2),
            "route": self.route,
            "calls": [[a, b, n] for (a, b), n in self.calls.items()],
            "back_and_forth": [list(pair) for pair in self.pairs],
            "functions_by_file": dict(sorted(self.files.items())),
        }


def module_of(code: CodeType) -> str:
    """curator/offer for …/sfumato/curator/offer.py."""
    return Path(code.co_filename).relative_to(PACKAGE).with_suffix("").as_posix()


def is_ours(code: CodeType) -> bool:
    """Functions, methods and lambdas written in the package; no class bodies, comprehensions or generated methods."""
    return (
        bool(code.co_flags & inspect.CO_OPTIMIZED)
        and code.co_name not in NOT_FUNCTIONS
        and code.co_filename.startswith(f"{PACKAGE}/")
    )


def calling_module(frame: FrameType | None) -> str | None:
    """The module of the nearest frame of ours: calls through the standard library count as made by whoever began."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            return module_of(frame.f_code)
        frame = frame.f_back
    return None


@contextmanager
def profiled(walk: Walk) -> Iterator[None]:
    """Record every call of a function of the package, in all threads that start meanwhile."""

    def hook(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not is_ours(code):
            return
        walk.functions.add(code)
        caller, callee = calling_module(frame.f_back), module_of(code)
        if caller is not None and caller != callee:
            walk.hops.append((caller, callee))

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def record(name: str, call: Callable[[int], object]) -> Walk:
    """The walk of call(0), and the median time of call(1), call(2), …, without the hook, which would slow them down."""
    walk = Walk(name)
    with profiled(walk):
        call(0)
    times = []
    for i in range(1, REPEATS + 1):
        began = time.perf_counter()
        call(i)
        times.append(time.perf_counter() - began)
    walk.milliseconds = 1000 * median(times)
    return walk


def build_database(path: Path) -> None:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT p AS patient_id, ['north', 'south'][1 + p % 2] AS ward,"
            " (p * 37 + v * 11) % 240 / 8 AS stay, (p * 7 + v) % 1000 AS cost"
            " FROM range(500) a(p), range(4) b(v) WHERE v <= p % 4"
        )


def walks(folder: Path, sql: str = SQL) -> list[Walk]:
    """All walks, on a curator of a small table in this folder."""
    import sfumato as sf
    from sfumato.sql.policy import Policy

    build_database(folder / "clinic.duckdb")
    curator = sf.Curator.open(folder / "clinic.duckdb", Policy.read(POLICY))
    curator.ask(OTHER_SQL, epsilon=0.31)  # imports modules, opens the database
    curator.ask(OTHER_SQL, epsilon=0.31)
    curator.preview(OTHER_SQL, epsilon=0.37)

    def reopened() -> sf.Curator:
        """The curator of another process: it knows plan and price from a preview, and has shown nothing."""
        again = sf.Curator.open(folder / "clinic.duckdb", Policy.read(POLICY))
        again.ask(OTHER_SQL, epsilon=0.31)
        again.preview(sql, epsilon=0.5)
        return again

    step = sf.Poisson(rate=0.01).amplify(sf.loss.GaussianLoss(mu=1.25))

    def composition(i: int) -> object:
        return ((1000 + i) * step + 20 * sf.loss.LaplaceLoss(eps=0.1)).epsilon(1e-6)

    composition(-1)
    found = [
        record("preview", lambda i: curator.preview(sql, epsilon=0.5 + 0.01 * i)),
        record("ask", lambda i: curator.ask(sql, epsilon=0.5 + 0.01 * i)),  # more exact each time, so never stored
        record("stored", lambda i: curator.ask(sql, epsilon=0.5)),  # by the last answer, bought for more and shown then
        record("repeat", lambda i: curator.ask(sql, epsilon=0.5)),
    ]
    others = [reopened() for _ in range(REPEATS + 1)]
    return [*found, record("reopened", lambda i: others[i].ask(sql, epsilon=0.5)), record("epsilon", composition)]


def print_table(found: list[Walk]) -> None:
    print(f"{'walk':<10}{'functions':>10}{'files':>8}{'hops':>8}{'both ways':>11}{'ms':>9}")
    for walk in found:
        print(
            f"{walk.name:<10}{len(walk.functions):>10}{len(walk.files):>8}{len(walk.hops):>8}"
            f"{len(walk.pairs):>11}{walk.milliseconds:>9.1f}"
        )


def print_hops(walk: Walk) -> None:
    """Modules in the order in which they are entered, each with the modules that call it and its functions that ran."""
    print(f"\n{walk.name}: modules in the order in which they are first called (functions that ran in each)")
    callers: dict[str, dict[str, int]] = {}
    for (caller, callee), times in walk.calls.items():
        callers.setdefault(callee, {})[caller] = times
    for module in walk.route:
        named = ", ".join(f"{caller} {times}×" if times > 1 else caller for caller, times in callers[module].items())
        print(f"  {module} ({walk.files[module]})  ← {named}")
    if walk.pairs:
        print("  call each other:")
        for a, b, there, back in walk.pairs:
            print(f"    {a} → {b} {there}×, {b} → {a} {back}×")


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the functions and files that one question runs through.")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--only", nargs="+", metavar="WALK", help="of preview, ask, stored, repeat, reopened, epsilon")
    parser.add_argument("--sql", default=SQL, help="a question about visits(patient_id, ward, stay, cost)")
    parser.add_argument("--short", action="store_true", help="print the table without the hops")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [walk for walk in walks(Path(folder), options.sql) if not options.only or walk.name in options.only]
    if options.json:
        print(json.dumps([walk.summary() for walk in found], indent=2))
        return
    print_table(found)
    if not options.short:
        for walk in found:
            print_hops(walk)


if __name__ == "__main__":
    main()
