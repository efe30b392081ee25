"""Tumult Analytics on Spark: groups of a person, and rows in each, are enforced; COUNT and SUM share the budget evenly.

Laplace noise under (ε, δ), or Gaussian noise for the ρ that it converts to. Spark takes seconds for each draw.
"""

import math
import os
import sys
import tempfile
from functools import cache

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

PACKAGE, PREPARES = "tmlt.analytics", True
WAREHOUSE = tempfile.TemporaryDirectory(prefix="tumult-truth-")
SETTINGS = {
    "spark.sql.warehouse.dir": WAREHOUSE.name,
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
}


@cache
def frame(table):
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    found = spark.read.parquet(table).cache()
    found.count()
    return found


def answer(table, keys, groups, rows, most, low, high, summed, draws, gaussian, epsilon, delta):
    rho = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2
    parts = 1 + summed
    whole = RhoZCDPBudget(rho) if gaussian else ApproxDPBudget(epsilon, delta)
    part = RhoZCDPBudget(rho / parts) if gaussian else ApproxDPBudget(epsilon / parts, delta / parts)
    source, cut = frame(table), QueryBuilder("t").enforce(MaxRowsPerID(most))
    if keys:
        cut = QueryBuilder("t").enforce(MaxGroupsPerID("k", groups)).enforce(MaxRowsPerGroupPerID("k", rows))
        cut = cut.groupby(KeySet.from_dict({"k": keys}))

    def once():
        session = Session.from_dataframe(
            privacy_budget=whole, source_id="t", dataframe=source, protected_change=AddRowsWithID("u")
        )
        found = {}
        for question in [cut.count(), *([cut.sum("v", float(low), float(high))] if summed else [])]:
            for row in session.evaluate(question, part).collect():
                found.setdefault(str(row["k"]) if keys else "", []).append(float(row[-1]))
        return found

    return lambda: [once() for _ in range(draws)]
