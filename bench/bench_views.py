"""Questions over views that last, against the same from the rows and plain GROUP BY, on DuckDB: processor seconds.

    make bench-views OPTIONS="--rows 10000000 --each 1000 --groups 20"

People with ten rows on average, on a day of one year each, a thousand groups: then hardly any two rows of a person are
in one group, and a view is as long as the table. With --each and --groups they repeat. The tables that a question needs
are made anew each time. The least of interleaved rounds.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import duckdb

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator.lasting_views import build_view, refresh_views
from sfumato.curator.norm_tail import EDGES
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.curator.scaling import Choice, NoisyNorms
from sfumato.engines.duckdb import DuckDB
from sfumato.sql.dialects import DIALECTS
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.policy import Policy

POLICY = """version = 1
[budget]
epsilon = 100
delta = 1e-6
[tables.t]
unit = "person"
{bounds}
[tables.t.columns]
k = {{type = "text"}}
x = {{low = 0, high = 100, step = 1}}
day = {{type = "date"}}
"""
QUESTION = "SELECT k, COUNT(*), SUM(x) FROM t{} GROUP BY k"
QUARTER = " WHERE day >= '2025-04-01' AND day < '2025-07-01'"


def made(rows: int, each: int, groups: int, place: Path) -> None:
    with duckdb.connect(str(place)) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT CAST(HASH(i) % {rows // each} AS BIGINT) AS person,"
            f" 'k' || CAST(FLOOR({groups} * POW((HASH(i + 7) % 1000000) / 1e6, 2)) AS INTEGER) AS k,"
            " CAST(HASH(i + 13) % 101 AS DOUBLE) AS x, DATE '2025-01-01' + CAST(HASH(i + 23) % 365 AS INTEGER) AS day"
            f" FROM RANGE({rows}) t(i)"
        )


def statement(sql: str, policy: Policy, to: Dialect) -> str:
    offer = offer_for_epsilon(parse_question(sql, policy), 1.0, 1e-9, Mu)
    if offer.incomplete:
        norms = NoisyNorms((0,) * len(EDGES), 1.0)
        offer = replace(offer, choices=tuple(Choice(block, block.bound(10.0), norms) for block in offer.blocks))
    return statements(offer, 7, to)[0]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--each", type=int, default=10, help="rows of a person, on average")
    options.add_argument("--groups", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=2)
    chosen = options.parse_args()
    cut, scaled = (Policy.read(POLICY.format(bounds=bounds)) for bounds in ("groups = 5\nrows = 2", ""))
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        engine = DuckDB(Path(folder) / "t.duckdb")
        made(chosen.rows, chosen.each, chosen.groups, engine.path)
        for name, work in (("build", lambda: build_view(engine, scaled, QUESTION.format(""), "day")),
                           ("refresh, nothing changed", lambda: refresh_views(engine, scaled))):  # fmt: skip
            began = time.process_time()
            done = work()
            print(f"{name:40} {time.process_time() - began:7.2f} cpu s  {done}", flush=True)
        plain = replace(DIALECTS["duckdb"], schema=engine.schema())
        began = time.process_time()
        lasting = replace(plain, lasting=engine.lasting())
        print(f"{'open with views':40} {time.process_time() - began:7.2f} cpu s", flush=True)
        asked = {}
        for name, where in (("all days", ""), ("a quarter", QUARTER)):
            asked[f"plain GROUP BY, {name}"] = QUESTION.format(where)
            for kind, policy in (("cut", cut), ("norm", scaled)):
                for source, to in (("rows", plain), ("view", lasting)):
                    asked[f"{kind}, {name}, of {source}"] = statement(QUESTION.format(where), policy, to)
        least = dict.fromkeys(asked, float("inf"))
        for _ in range(chosen.rounds):
            for name, text in asked.items():
                began = time.process_time()
                engine.run(text)
                least[name] = min(least[name], time.process_time() - began)
        for name, seconds in least.items():
            base = least[f"plain GROUP BY, {'a quarter' if 'quarter' in name else 'all days'}"]
            print(f"{name:40} {seconds:7.2f} cpu s  {seconds / base:6.2f} x plain", flush=True)
        engine.close()


if __name__ == "__main__":
    main()
