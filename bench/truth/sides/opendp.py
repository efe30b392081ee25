"""OpenDP on Polars, as its guide truncates: rows of a person in each group, then groups of a person.

Laplace noise, or Gaussian noise for the ρ that (ε, δ) has by its own conversion; the better one is compared. Asked to
keep g groups it keeps g − 1 (its ranks begin at 1), so it is asked for one more, with noise for that many.
"""

import math
from functools import cache

import opendp.prelude as dp
import polars as pl

PACKAGE, PREPARES = "opendp", True
dp.enable_features("contrib", "honest-but-curious")


@cache
def frame(table):
    return pl.read_parquet(table)


def question(table, gaussian, epsilon, delta):
    rho = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2
    loss = dp.loss_of(rho=rho, delta=delta / 1e6) if gaussian else dp.loss_of(epsilon=epsilon, delta=delta)
    most = frame(table).height
    return dp.Context.compositor(
        data=frame(table).lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier="u"),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=most), dp.polars.Margin(by=["k"], max_groups=5000, max_length=most)],
    ).query()


def answer(table, keys, groups, rows, most, low, high, summed, draws, gaussian, epsilon, delta):
    what = [dp.len(), *([pl.col("v").fill_null(0).dp.sum((low, high))] if summed else [])]

    def once():
        asked = question(table, gaussian, epsilon, delta)
        if not keys:
            found = asked.truncate_per_group(most).select(*what).release().collect()
            return {"": list(map(float, found.row(0)))}
        cut = asked.truncate_per_group(rows, by=["k"]).truncate_num_groups(groups + 1, by=["k"], keep="first")
        listed = pl.LazyFrame({"k": pl.Series(keys, dtype=pl.String)})
        found = cut.group_by("k").agg(*what).with_keys(listed).release().collect()
        return {row[0]: list(map(float, row[1:])) for row in found.iter_rows()}

    return lambda: [once() for _ in range(draws)]
