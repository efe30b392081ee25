"""The tables that the curator is timed on: t7 with 10⁷ rows of about 946,000 users, and t6, a tenth of that.

    python bench/curator/data.py [FOLDER]

Users are active by a lognormal law, keys follow zipf(1.1) over 1,000 categories, values gamma(2, 10) + category % 17.
All comes from DuckDB's hash of row number and seed: the same rows on every run, with any number of threads, in an order
that knows nothing of users. Made once (a minute) and kept in bench/.data: `tables.duckdb` holds both, and there is a
Parquet file of each. Columns: user_id BIGINT, category INTEGER, value DOUBLE.
"""

import os
import sys
from pathlib import Path

import duckdb

DATA = Path(__file__).parents[1] / ".data"
SEED = 20_260_501
SIZES = {"t7": (10**7, 10**6), "t6": (10**6, 10**5)}  # rows, users
CATEGORIES, EXPONENT, ACTIVITY = 1000, 1.1, 1.0
SHAPE = "SELECT count(*), count(DISTINCT user_id), count(DISTINCT (user_id, category)), avg(value) FROM {}"


def uniform(of: str, stream: int) -> str:
    """53 bits, never 0 or 1. Of one number: hashes of several that share a part are not independent in DuckDB."""
    return f"((hash({of} * 16 + {16 * SEED + stream}) >> 11) + 0.5) / 9007199254740992.0"


def cumulated(name: str, weights: str) -> str:
    """A table of (id, start): an id is drawn by its weight when a uniform falls between its start and the next one."""
    shares = (
        f"SELECT id, w, sum(w) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS s, sum(w) OVER () AS t FROM ({weights})"
    )
    return f"CREATE TEMP TABLE {name} AS SELECT id, greatest((s - w) / t, 0) AS start FROM ({shares}) ORDER BY id"


def made(name: str, rows: int, users: int) -> list[str]:
    """The statements that make one table."""
    normal = f"sqrt(-2 * ln({uniform('range', 1)})) * cos(2 * pi() * {uniform('range', 2)})"
    active = f"SELECT range AS id, exp({ACTIVITY} * {normal}) AS w FROM range({users})"
    popular = f"SELECT range AS id, (range + 1) ** -{EXPONENT} AS w FROM range({CATEGORIES})"
    value = f"-10 * ln({uniform('i', 5)} * {uniform('i', 6)}) + category % 17"
    return [
        cumulated("active", active),
        cumulated("popular", popular),
        f"CREATE TEMP TABLE drawn AS SELECT range AS i, {uniform('range', 3)} AS a, {uniform('range', 4)} AS b"
        f" FROM range({rows})",
        f"CREATE TABLE {name} AS SELECT user_id, category, {value} AS value FROM ("
        " SELECT i, active.id AS user_id, CAST(popular.id AS INTEGER) AS category FROM drawn"
        " ASOF JOIN active ON drawn.a >= active.start ASOF JOIN popular ON drawn.b >= popular.start) ORDER BY i",
        *(f"DROP TABLE {one}" for one in ("active", "popular", "drawn")),
    ]


def prepared(folder: Path = DATA) -> Path:
    """The folder with tables.duckdb, t7.parquet and t6.parquet; each is moved there when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "tables.duckdb").exists():
        new = folder / f"tables.{os.getpid()}.tmp"
        with duckdb.connect(str(new)) as connection:
            for name, (rows, users) in SIZES.items():
                for sql in made(name, rows, users):
                    connection.execute(sql)
                file = folder / f"{name}.{os.getpid()}.tmp"
                connection.execute(f"COPY {name} TO '{file}' (FORMAT parquet)")
                file.replace(folder / f"{name}.parquet")
        new.replace(folder / "tables.duckdb")
    return folder


if __name__ == "__main__":
    place = prepared(*(Path(argument) for argument in sys.argv[1:2]))
    with duckdb.connect(str(place / "tables.duckdb"), read_only=True) as found:
        for table in SIZES:
            print(table, found.execute(SHAPE.format(table)).fetchone())
