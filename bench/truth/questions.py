"""Counts that are asked of the tables, and what each unit has in each group."""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Question:
    """COUNT(*) of a table by keys. `chosen`: the constants of the fit were chosen with it, else it is held out."""

    name: str
    table: str
    unit: str
    keys: tuple[str, ...] = ()
    where: str = ""
    kind: str = "real"  # real, smooth (a made law with a bend), heavy (no interval can be right and short)
    chosen: bool = False
    bar: bool = False  # one of the eleven real questions that the bar on errors is about

    def rows(self, connection: duckdb.DuckDBPyConnection) -> "Rows":
        key = " || '|' || ".join(f"coalesce(CAST({key} AS VARCHAR), '')" for key in self.keys) or "''"
        where = f"{self.unit} IS NOT NULL" + (f" AND {self.where}" if self.where else "")
        found = connection.execute(
            f"SELECT dense_rank() OVER (ORDER BY {self.unit}) - 1 AS u, dense_rank() OVER (ORDER BY {key}) - 1 AS k, c"
            f" FROM (SELECT {', '.join((self.unit, *self.keys))}, count(*) AS c FROM {self.table} WHERE {where}"
            " GROUP BY ALL) ORDER BY u, k"
        ).fetchnumpy()
        return Rows(*(np.asarray(found[name], np.int64) for name in ("u", "k", "c")))


@dataclass(frozen=True, eq=False)
class Rows:
    """Row counts c of unit u in group k."""

    u: Ints
    k: Ints
    c: Ints

    @property
    def groups(self) -> int:
        return int(self.k.max()) + 1

    def squares(self) -> Floats:
        """Squared norm of each unit's vector."""
        return np.bincount(self.u, self.c.astype(float) ** 2)

    def lengths(self) -> Floats:
        """Rows of each unit: the L1 norm."""
        return np.bincount(self.u, self.c.astype(float))

    def truth(self) -> Floats:
        return np.bincount(self.k, self.c.astype(float))


def flights(name: str, *keys: str, where: str = "", bar: bool = True) -> Question:
    return Question(f"flights {name}", "flights", "tailnum", keys, where, chosen=True, bar=bar)


def insteval(name: str, *keys: str, bar: bool = True) -> Question:
    return Question(f"inst {name}", "insteval", "s", keys, bar=bar)


def law(table: str, kind: str, groups: int, chosen: bool = False) -> list[Question]:
    return [
        Question(f"{table}/1", table, "u", kind=kind, chosen=chosen),
        Question(f"{table}/{groups}", table, "u", ("k",), kind=kind, chosen=chosen),
    ]


QUESTIONS = (
    flights("total"),
    *(flights(f"by {key}", key) for key in ("origin", "month", "hour", "dest", "carrier")),
    insteval("total"),
    *(insteval(f"by {key}", key) for key in ("service", "dept", "lectage", "d")),
    flights("by origin, month", "origin", "month", bar=False),
    flights("late, total", where="late", bar=False),
    flights("late, by month", "month", where="late", bar=False),
    flights("< 500 miles, by hour", "hour", where="distance < 500", bar=False),
    insteval("by y", "y", bar=False),
    insteval("by service, dept", "service", "dept", bar=False),
    insteval("by studage", "studage", bar=False),
    Question("nafld total", "nafld", "id", chosen=True),
    Question("nafld by test", "nafld", "id", ("test",), chosen=True),
    Question("nafld by year", "nafld", "id", ("year",), chosen=True),
    Question("nafld by test, year", "nafld", "id", ("test", "year"), chosen=True),
    Question("movielens by year", "movielens", "u", ("year",)),
    Question("movielens by movie", "movielens", "u", ("movie",)),
    Question("pizza total", "pizza", "id"),
    Question("pizza by type, size", "pizza", "id", ("type", "size")),
    Question("baseball by team", "baseball", "id", ("team",)),
    Question("baseball by year", "baseball", "id", ("year",)),
    *law("lognormal", "smooth", 10, chosen=True),
    *law("lognormal15", "smooth", 10),
    *law("negbinomial", "smooth", 8),
    *law("weibull", "smooth", 8, chosen=True),
    *law("few", "smooth", 8),
    *law("ones", "ones", 10),
    *law("pareto2", "heavy", 10, chosen=True),
    *law("pareto12", "heavy", 10),
    *law("bots", "heavy", 8),
)


def load(file: Path, wanted: tuple[Question, ...] = QUESTIONS) -> dict[Question, Rows]:
    """Rows of the questions whose table is there."""
    with duckdb.connect(str(file), read_only=True) as connection:
        tables = {table for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        return {question: question.rows(connection) for question in wanted if question.table in tables}
