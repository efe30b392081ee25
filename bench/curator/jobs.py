"""The jobs that every system does, what they are measured by, and what is true."""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Answer = dict[str, list[float]]
KEYS, LOW, HIGH = 1000, 0.0, 50.0


@dataclass(frozen=True)
class Job:
    """A function of each of the sides/*.py; `columns` of its answer are compared with what is true."""

    item: str
    work: str
    name: str
    columns: tuple[str, ...]
    found: bool = False  # keys are unknown

    @property
    def scalar(self) -> bool:
        return self.columns == ("value",)

    @property
    def several(self) -> bool:
        """Are there several aggregates?"""
        return len(self.columns) > 1

    @property
    def judged(self) -> bool:
        """Is there a bar on its time?"""
        return self.columns == ("n", "s")


JOBS = (
    Job("a", "COUNT", "count", ("value",)),
    Job("b", "COUNT, SUM by public key", "count_sum", ("n", "s")),
    Job("b'", "COUNT, SUM, AVG by public key", "count_sum_avg", ("n", "s", "avg")),
    Job("c", "COUNT by unknown key", "count_found", ("n",), found=True),
    Job("c'", "COUNT, SUM by unknown key", "count_sum_found", ("n", "s"), found=True),
    Job("d", "MEDIAN", "median", ("value",)),
    Job("e", "users", "users", ("value",)),
    Job("e'", "users by public key", "users_by", ("n",)),
)


@dataclass(frozen=True)
class Truth:
    """What an exact, unbounded answer would be."""

    rows: int
    users: int
    median: float
    n: Floats
    s: Floats
    of: Floats  # users

    @staticmethod
    def of_table(parquet: Path) -> "Truth":
        with duckdb.connect() as connection:
            every, users, middle = connection.execute(
                f"SELECT count(*), count(DISTINCT user_id), median(value) FROM '{parquet}'"
            ).fetchall()[0]
            by = connection.execute(
                f"SELECT category, count(*), sum(value), count(DISTINCT user_id) FROM '{parquet}' GROUP BY ALL"
            ).fetchall()
        columns = np.zeros((3, KEYS))
        for key, *row in by:
            columns[:, key] = row
        return Truth(every, users, middle, *columns)

    def true(self, job: Job, column: str) -> Floats:
        if job.scalar:
            return np.array([{"count": self.rows, "users": self.users, "median": self.median}[job.name]], float)
        if column == "n":
            return self.of if job.name == "users_by" else self.n
        return self.s if column == "s" else self.s / np.maximum(self.n, 1)

    def error(self, job: Job, column: str, answer: Answer) -> float:
        """|answer − true|, mean over all keys; a key that is not shown is answered by 0."""
        true = self.true(job, column)
        if job.scalar:
            return float(np.abs(np.array(answer["value"]) - true).mean())
        shown = np.zeros(KEYS)
        shown[np.array(answer["key"], int)] = averaged(answer) if column == "avg" else answer[column]
        return float(np.abs(shown - true).mean())


def averaged(answer: Answer) -> Floats:
    """The mean that a system answers, or what its count and sum make; anybody would put it between the bounds."""
    mean = answer["avg"] if "avg" in answer else np.array(answer["s"]) / np.maximum(np.array(answer["n"]), 1)
    return np.clip(np.nan_to_num(np.array(mean, float)), LOW, HIGH)


def cut(folder: Path) -> Path:
    """c6: rows of t6 that are within the bounds, so that no system leaves out any and errors are those of noise.

    Four keys of a person, not five, since OpenDP leaves out the fifth.
    """
    parquet, new = folder / "c6.parquet", folder / "c6.tmp"
    if not parquet.exists():
        new.unlink(missing_ok=True)
        with duckdb.connect(str(new)) as connection:
            connection.execute(
                "CREATE TABLE c6 AS SELECT user_id, category, least(greatest(value, 0), 50) AS value FROM (SELECT *,"
                " row_number() OVER (PARTITION BY user_id, category ORDER BY hash(value)) AS r,"
                " dense_rank() OVER (PARTITION BY user_id ORDER BY hash(user_id * 1000 + category)) AS g"
                f" FROM '{folder / 't6.parquet'}') WHERE r <= 2 AND g <= 4"
            )
            connection.execute(f"COPY c6 TO '{folder / 'c6.parquet.tmp'}' (FORMAT parquet)")
        new.replace(folder / "c6.duckdb")
        (folder / "c6.parquet.tmp").replace(parquet)
    return parquet
