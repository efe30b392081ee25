"""A linear regression fitted in DuckDB beside the plain SQL that computes XᵀX: processor time of both, interleaved.

python bench/bench_fit_in_database.py [--rows 10000000] [--columns 20] [--repeats 3]
"""

import argparse
import sys
import tempfile
import time
from itertools import combinations_with_replacement
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import duckdb

import sfumato as sf
from sfumato import learn
from sfumato.aggregates.price import Mu
from sfumato.curator.fit_in_database import FitSums, FitWanted, lattice_rows
from sfumato.curator.planner import Wanted


def make_table(path, rows, names):
    with duckdb.connect(str(path)) as con:
        con.execute("SELECT setseed(0.5)")
        values = ", ".join(f"random() * 2 - 1 AS {name}" for name in names)
        con.execute(f"CREATE TABLE t AS SELECT {values} FROM range({rows})")


def statements(curator, names):
    """Plain sums of products, and what a fit asks of the engine."""
    pairs = combinations_with_replacement(names, 2)
    sums = [*(f"SUM({name})" for name in names), *(f"SUM({a} * {b})" for a, b in pairs)]
    plain = f"SELECT COUNT(*), {', '.join(sums)} FROM t"
    model = learn.LinearRegression(bounds=(-1, 1), y_bounds=(-1, 1))
    wanted = FitWanted.of(model, f"SELECT {', '.join(names)} FROM t", names[-1])
    question = curator.planner.plan(Wanted.of(wanted.question(), 1.0))
    blocks = model.database_blocks(len(names) - 1)
    step = FitSums(question.plan, Mu(1.0), lattice_rows(wanted, question), blocks)
    (request,) = curator.buyer.check_requests(step).requests
    return plain, request.direct


def timed(con, sql):
    began, cpu = time.perf_counter(), time.process_time()
    con.execute(sql).fetchall()
    return time.process_time() - cpu, time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    names = [f"x{j}" for j in range(options.columns - 1)] + ["y"]
    with tempfile.TemporaryDirectory() as folder:
        data, policy = Path(folder) / "t.duckdb", Path(folder) / "policy.toml"
        make_table(data, options.rows, names)
        columns = "\n".join(f"{name} = {{low = -1, high = 1}}" for name in names)
        policy.write_text(
            'version = 1\n[budget]\nepsilon = 9.0\ndelta = 1e-6\n[tables.t]\nunit = {each = "row"}\n'
            f"[tables.t.columns]\n{columns}\n"
        )
        curator = sf.Curator.open(data, policy=policy)
        plain, ours = statements(curator, names)
        curator.engine.close()
        with duckdb.connect(str(data), read_only=True) as con:
            runs = [(timed(con, plain), timed(con, ours)) for _ in range(options.repeats)]
    best = [min(run[side][0] for run in runs) for side in (0, 1)]
    print(f"{options.rows:,} rows × {options.columns} columns, {options.repeats} repeats, processor seconds")
    print(f"plain XᵀX {best[0]:.2f}   fit {best[1]:.2f}   ratio {best[1] / best[0]:.2f} (bar 1.2)")
    sys.exit(best[1] > 1.2 * best[0])


if __name__ == "__main__":
    main()
