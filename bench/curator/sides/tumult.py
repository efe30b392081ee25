"""Tumult Analytics on Spark. A query has one aggregate, so (ε, δ) is divided: COUNT, SUM, finding the keys.

What is favourable to it: Spark runs, and its frame is cached, before the clock starts; the bounded rows are a cached
view that all queries of a job share; AVG is SUM/COUNT, which costs nothing.
"""

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
    Session,
)

PACKAGE, PREPARES = "tmlt.analytics", True
GROUPS, ROWS, LOW, HIGH = 5, 2, 0.0, 50.0
WAREHOUSE = tempfile.TemporaryDirectory(prefix="tumult-bench-")  # it would keep its views in the working directory
SETTINGS = {
    "spark.sql.warehouse.dir": WAREHOUSE.name,
    "spark.driver.memory": "4g",
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
    rows = spark.read.parquet(table).select("user_id", "category", "value").cache()
    rows.count()
    return rows


@cache
def public():
    return KeySet.from_dict({"category": list(range(1000))})


def session(table):
    whole, change = ApproxDPBudget(1, 1e-6), AddRowsWithID("user_id")
    return Session.from_dataframe(privacy_budget=whole, source_id="t", dataframe=table, protected_change=change)


def part(of):
    return ApproxDPBudget(1 / of, 1e-6 / of)


def scalar(table, rows, ask):
    source = frame(table)

    def work():
        question = ask(QueryBuilder("t").enforce(MaxRowsPerID(rows)))
        return {"value": [float(session(source).evaluate(question, part(1)).toPandas().iloc[0, 0])]}

    return work


def grouped(table, totals, found, rows=ROWS):
    source = frame(table)

    def work():
        here, parts = session(source), len(totals) + found
        here.create_view(bounded(rows), "v", cache=parts > 1)
        keys = public()
        if found:
            keys = KeySet.from_dataframe(here.evaluate(QueryBuilder("v").get_groups(["category"]), part(parts)))
        answer = {}
        for name in totals:
            each = QueryBuilder("v").groupby(keys)
            question = each.count() if name == "n" else each.sum("value", LOW, HIGH)
            shown = here.evaluate(question, part(parts)).toPandas().sort_values("category")
            answer["key"] = [int(key) for key in shown["category"]]
            answer[name] = [float(x) for x in shown[shown.columns[-1]]]
        if parts > 1:
            here.delete_view("v")
        return answer

    return work


def bounded(rows):
    return QueryBuilder("t").enforce(MaxGroupsPerID("category", GROUPS)).enforce(MaxRowsPerGroupPerID("category", rows))


def count(table):
    return scalar(table, GROUPS * ROWS, lambda rows: rows.count())


def count_sum(table):
    return grouped(table, ("n", "s"), False)


def count_found(table):
    return grouped(table, ("n",), True)


def count_sum_found(table):
    return grouped(table, ("n", "s"), True)


def median(table):
    return scalar(table, GROUPS * ROWS, lambda rows: rows.median("value", LOW, HIGH))


def users(table):
    return scalar(table, 1, lambda rows: rows.count())


def users_by(table):
    return grouped(table, ("n",), False, rows=1)
