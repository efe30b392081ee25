"""SmartNoise SQL on pandas, which it copies into SQLite.

Its ε is per column, and a hidden count of users decides on unknown keys: ε is divided by as many as it says that the
query costs. It bounds rows per user, not groups: 10 rows, as many as 5 groups of 2 are, or 5 (`rows`), one per group.
What is favourable to it: the reader is made, and the frame copied, before the clock starts, unless `copy` says that
this is part of the job, as it is for who has a frame and one question; AVG is made of the same columns as COUNT and
SUM. For many draws it is given its own exact aggregates again (`pre_aggregated`).
"""

from functools import cache

import pandas as pd
import snsql
from snsql import Privacy
from snsql.sql.private_reader import PrivateReader

PACKAGE, PREPARES = "smartnoise-sql", True
ROWS, LOW, HIGH = 10, 0.0, 50.0


def metadata(rows, found):
    about = {"row_privacy": False, "max_ids": rows, "sample_max_ids": True, "clamp_counts": False, "censor_dims": found}
    columns = {
        "user_id": {"type": "int", "private_id": True},
        "category": {"type": "int"},
        "value": {"type": "float", "lower": LOW, "upper": HIGH},
    }
    return {"": {"s": {"t": {**about, **columns}}}}


@cache
def frame(table):
    return pd.read_parquet(table, columns=["user_id", "category", "value"])


def loaded(table):
    privacy = Privacy(epsilon=1.0, delta=1e-6)
    return snsql.from_df(frame(table), metadata=metadata(ROWS, True), privacy=privacy).reader


ready = cache(loaded)


def asked(table, sql, names, parts, draws, found=False, rows=ROWS, copy=False):
    source, exact = (None if copy else ready(table)), None
    frame(table)

    def private():
        about = metadata(rows, found), Privacy(epsilon=1.0 / parts, delta=1e-6)
        return PrivateReader(source or loaded(table), *about)

    if draws:
        inner, _ = private()._rewrite(sql)
        exact = ready(table)._execute_ast(inner)

    def work():
        columns = list(zip(*private().execute(sql, pre_aggregated=exact)[1:], strict=True))
        return {name: [float(x) for x in column] for name, column in zip(names, columns, strict=True)}

    return (lambda: {"draws": [work() for _ in range(draws)]}) if draws else work


def by(table, aggregates, names, parts, draws, found=False, rows=ROWS, copy=False):
    sql = f"SELECT category, {aggregates} FROM s.t GROUP BY category"
    return asked(table, sql, ["key", *names], parts, draws, found, rows, copy)


def count(table, draws=0, **more):
    return asked(table, "SELECT COUNT(*) AS n FROM s.t", ["value"], 1, draws)


def count_sum(table, draws=0, **more):
    return by(table, "COUNT(*) AS n, SUM(value) AS v", ["n", "s"], 2, draws, **more)


def count_sum_avg(table, draws=0, **more):
    return by(table, "COUNT(value) AS n, SUM(value) AS v, AVG(value) AS a", ["n", "s", "avg"], 2, draws, **more)


def count_found(table, draws=0, **more):
    return by(table, "COUNT(*) AS n", ["n"], 2, draws, found=True, **more)


def count_sum_found(table, draws=0, **more):
    return by(table, "COUNT(*) AS n, SUM(value) AS v", ["n", "s"], 3, draws, found=True, **more)


def median(table, draws=0, **more):
    raise NotImplementedError("it has no median")


def users(table, draws=0, **more):
    return asked(table, "SELECT COUNT(DISTINCT user_id) AS n FROM s.t", ["value"], 1, draws, rows=1)


def users_by(table, draws=0, **more):
    return by(table, "COUNT(DISTINCT user_id) AS n", ["n"], 1, draws, **{"rows": 5} | more)
