"""How long the curator takes for 10⁷ rows, beside the SQL that does the same without privacy, and with bounds alone.

    python bench/bench_curator.py [--table t6] [--rounds 5] [--only cold warm] [--json [FILE]]

All sides run in one process on one DuckDB file, in turns; the least of several rounds counts, in seconds of the clock
and, in brackets, of both processors. References are as fast as we could make them: bounded SQL keeps 5 groups of each
user by a signed hash: through a cut-off join, or by a window over groups, or over rows before they are summed; the
windows with DuckDB's top_n_window_elimination off.
"Cold" forgets all bounded tables before, "warm" has those of the round before. Every question has an ε of its own, so
that no answer comes from store: each is planned, charged durably, computed, blurred and stored.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import duckdb

from bench.curator.data import prepared
from sfumato.curator import Curator
from sfumato.curator.bounded_cache import BoundedTables, Runner
from sfumato.sql.emit.request import TableRequest
from sfumato.sql.policy import Policy

POLICY = """
version = 1
[budget]
epsilon = 1000.0
delta = 1e-3
question_delta = 1e-6
[tables.{table}]
unit = "user_id"
groups = 5
rows = {rows}
[tables.{table}.columns]
category = {{type = "number"}}
value = {{low = 0, high = 50, step = 0.0009765625}}
"""
VALUE = "floor(least(greatest(value, 0), 50) * 1024)::BIGINT"
PAIRS = (
    "SELECT user_id u, category c, least(greatest(coalesce(sum(CASE WHEN value IS NULL OR isnan(value) THEN NULL ELSE"
    f" {VALUE} END), 0), 0), 102400) s, least(count(*), 2) n, cast(hash(user_id, category, 12345) >> 1 AS BIGINT) h"
    " FROM {table} GROUP BY ALL"
)
SQL = {
    "plain": "SELECT category, count(*), sum(value) FROM {table} GROUP BY category",
    "pairs": f"SELECT count(*), sum(s) FROM ({PAIRS})",
    "cut-off": f"WITH p AS MATERIALIZED ({PAIRS}), k AS (SELECT u, list_max(min(h, 5)) cut FROM p GROUP BY u"
    " HAVING count(*) > 5) SELECT p.c, count(*), sum(s), sum(n) FROM p LEFT JOIN k USING (u)"
    " WHERE k.cut IS NULL OR p.h <= k.cut GROUP BY p.c",
    "window": f"SELECT c, count(*), sum(s), sum(n) FROM (SELECT *, row_number() OVER (PARTITION BY u ORDER BY h) r"
    f" FROM ({PAIRS})) WHERE r <= 5 GROUP BY c",
    "rows": f"SELECT c, count(*), sum(s), sum(n) FROM (SELECT u, c, least(sum(CASE WHEN isnan(value) THEN NULL ELSE"
    f" {VALUE} END), 102400) s, least(count(*), 2) n FROM (SELECT user_id u, category c, value, dense_rank() OVER"
    " (PARTITION BY user_id ORDER BY cast(hash(user_id, category, 12345) >> 1 AS BIGINT), category) r FROM {table})"
    " WHERE r <= 5 GROUP BY ALL) GROUP BY c",
    "plain median": "SELECT median(value) FROM {table}",
    "median of 10 each": "WITH p AS MATERIALIZED (SELECT user_id u, v, cast(hash(user_id, v, 7) >> 1 AS BIGINT) h FROM"
    f" (SELECT user_id, {VALUE} v FROM {{table}})), k AS (SELECT u, list_max(min(h, 10)) cut FROM p GROUP BY u"
    " HAVING count(*) > 10) SELECT median(v) FROM p LEFT JOIN k USING (u) WHERE k.cut IS NULL OR h <= k.cut",
    "plain totals": "SELECT count(*), sum(value) FROM {table}",
    "totals of 10 each": f"SELECT sum(n), sum(s) FROM (SELECT least(count(*), 10) n, least(sum({VALUE}), 512000) s"
    " FROM {table} GROUP BY user_id)",
}
BY_KEY = "SELECT category, COUNT(*) AS n, SUM(value) AS s FROM {table} GROUP BY category"
MEDIAN, TOTALS = "SELECT MEDIAN(value) FROM {table}", "SELECT COUNT(*), SUM(value) FROM {table}"


@dataclass
class Timed(BoundedTables):
    """Views that say how long the engine took."""

    spent: float = 0.0

    def rows(self, engine: Runner, wanted: TableRequest) -> list[tuple[object, ...]]:
        start = time.perf_counter()
        try:
            return super().rows(engine, wanted)
        finally:
            self.spent += time.perf_counter() - start


@dataclass
class Times:
    """Seconds of clock and processor, of one side."""

    clock: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    engine: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{min(self.clock):8.4f} ({min(self.work):7.4f})" if self.clock else "–"


@dataclass(frozen=True)
class Bar:
    """`ours` must take at most `most` times as long as the fastest reference; without one, at most `most` seconds."""

    item: str
    ours: str
    references: tuple[str, ...]
    most: float
    part: str = "clock"


BARS = (
    Bar("cold", "by key, cold", ("cut-off", "window", "rows"), 1.15),
    Bar("warm", "by key, warm", ("plain",), 1.0, "engine"),
    Bar("warm", "by key, warm", ("plain",), 2.0),
    Bar("warm", "planning", (), 0.015),
    Bar("warm", "by key, warm", (), 0.030, "rest"),
    Bar("median", "median, cold", ("median of 10 each",), 1.15),
    Bar("totals", "totals, cold", ("totals of 10 each",), 1.15),
)
SIDES = {
    "cold": ("plain", "pairs", "window", "cut-off", "rows", "by key, cold"),
    "warm": ("plain", "planning", "by key, warm"),
    "median": ("plain median", "median of 10 each", "median, cold", "median, warm"),
    "totals": ("plain totals", "totals of 10 each", "totals, cold", "totals, warm"),
}


def alone(work: Callable[[], object]) -> Callable[[], float]:
    """Work in which no engine is told apart."""

    def run() -> float:
        work()
        return 0.0

    return run


class Bench:
    """All sides on one table."""

    def __init__(self, place: Path, table: str, folder: Path) -> None:
        self.table, self.fresh = table, count(1)
        data = place / "tables.duckdb"
        rules = {rows: Policy.read(POLICY.format(table=table, rows=rows)) for rows in (2, 10)}
        self.curators = {
            rows: replace(Curator.open(data, policy, ledger=folder / f"{rows}.ledger"), bounded_tables=Timed(16))
            for rows, policy in rules.items()
        }
        self.engine = self.curators[2].engine

    def ask(self, rows: int, sql: str, cold: bool) -> Callable[[], float]:
        """One question, and the seconds that the engine took of it."""
        curator, epsilon = self.curators[rows], 1 + next(self.fresh) / 1000
        views = curator.bounded_tables
        assert isinstance(views, Timed)
        if cold:
            views.clear()

        def run() -> float:
            views.spent = 0.0
            assert curator.ask(sql.format(table=self.table), epsilon=epsilon).charged
            return views.spent

        return run

    def side(self, name: str) -> Callable[[], float]:
        match name.split(", "):
            case ["by key", how]:
                return self.ask(2, BY_KEY, how == "cold")
            case ["median", how]:
                return self.ask(10, MEDIAN, how == "cold")
            case ["totals", how]:
                return self.ask(10, TOTALS, how == "cold")
            case ["planning"]:
                curator, epsilon = self.curators[2], 1 + next(self.fresh) / 1000
                return alone(lambda: curator.offer(BY_KEY.format(table=self.table), epsilon, None))
        sql = SQL[name].format(table=self.table)
        return alone(lambda: self.engine.run(sql))

    def once(self, name: str, times: Times) -> None:
        run = self.side(name)
        clock, work = time.perf_counter(), time.process_time()
        engine = run()
        times.work.append(time.process_time() - work)
        times.clock.append(time.perf_counter() - clock)
        times.engine.append(engine)


def judged(bar: Bar, found: dict[str, Times]) -> tuple[str, bool]:
    ours = found[bar.ours]
    value = {
        "clock": min(ours.clock), "engine": min(ours.engine),
        "rest": min(c - e for c, e in zip(ours.clock, ours.engine, strict=True)),
    }[bar.part]  # fmt: skip
    named = f"{bar.ours}{'' if bar.part == 'clock' else f', {bar.part}'}"
    if not bar.references:
        return f"{named:24} {1e3 * value:9.1f} ms, at most {1e3 * bar.most:g} ms", value <= bar.most
    fastest = min(bar.references, key=lambda name: min(found[name].clock))
    ratio, work = value / min(found[fastest].clock), min(ours.work) / min(found[fastest].work)
    more = f" ({work:.3f} × of processor)" if bar.part == "clock" else ""
    return f"{named:24} {ratio:9.3f} × {fastest}{more}, at most {bar.most:g} ×", ratio <= bar.most


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", default="t7", choices=["t7", "t6"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(SIDES), default=list(SIDES))
    parser.add_argument("--json", nargs="?", const=Path(__file__).parent / "results/curator.json", type=Path)
    options = parser.parse_args()
    found: dict[str, Times] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(prepared(), options.table, Path(folder))
        for item in options.only:
            times = {name: Times() for name in SIDES[item]}
            for turn in range(options.rounds + 1):
                for name in times:  # the first round warms up: file, noise, plans
                    bench.once(name, times[name] if turn else Times())
            print(f"\n{item}, {options.table}, least of {options.rounds}: seconds (of both processors)")
            for name, one in times.items():
                print(f"    {name:24} {one}", flush=True)
            found |= {f"{item}: {name}": one for name, one in times.items()}
            for bar in (bar for bar in BARS if bar.item == item):
                text, good = judged(bar, times)
                print(f"    {'ok    ' if good else 'MISSED'} {text}", flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; DuckDB {duckdb.__version__}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        plain = {name: {"clock": one.clock, "work": one.work, "engine": one.engine} for name, one in found.items()}
        options.json.write_text(json.dumps({"table": options.table, "load": os.getloadavg(), "times": plain}, indent=1))
        print(f"written to {options.json}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
