"""SmartNoise SQL, which bounds rows of a person, not groups.

Its own exact aggregates are made once, and noise is drawn anew. Its ε is per column: it is divided by their number.
The noise is that of its defaults.
"""

from functools import cache

import pandas as pd
import snsql
from snsql import Privacy
from snsql.sql.private_reader import PrivateReader

PACKAGE, PREPARES = "smartnoise-sql", True


@cache
def frame(table):
    return pd.read_parquet(table)


def metadata(most, low, high):
    about = {"row_privacy": False, "max_ids": most, "sample_max_ids": True, "clamp_counts": False, "censor_dims": False}
    columns = {
        "u": {"type": "string", "private_id": True},
        "k": {"type": "string"},
        "v": {"type": "float", "lower": float(low), "upper": float(high)},
    }
    return {"": {"s": {"t": {**about, **columns}}}}


def answer(table, keys, groups, rows, most, low, high, summed, draws, gaussian, epsilon, delta):
    what = "COUNT(*) AS n" + (", SUM(v) AS s" if summed else "")
    sql = f"SELECT k, {what} FROM s.t GROUP BY k" if keys else f"SELECT {what} FROM s.t"
    about = metadata(most, low, high)
    privacy = Privacy(epsilon=epsilon / (1 + summed), delta=delta)
    source = snsql.from_df(frame(table), metadata=about, privacy=privacy).reader
    inner, _ = PrivateReader(source, about, privacy)._rewrite(sql)
    exact = source._execute_ast(inner)

    def once():
        rows_ = PrivateReader(source, about, privacy).execute(sql, pre_aggregated=exact)[1:]
        return {str(row[0]): list(map(float, row[1:])) for row in rows_} if keys else {"": list(map(float, rows_[0]))}

    return lambda: [once() for _ in range(draws)]
