"""PipelineDP on its local backend, which splits (ε, δ) by itself.

Gaussian noise is its default; Laplace's, which is less at five groups, is asked for as `laplace`. What is favourable to
it: rows are a list of tuples before the clock starts; for many draws, what it has summed before it adds noise is kept
between them (`Keeping`), which its answers do not show.
"""

import operator
from functools import cache

import pipeline_dp as p
import pyarrow.parquet as pq

PACKAGE, PREPARES = "pipeline-dp", True
GROUPS, ROWS, LOW, HIGH = 5, 2, 0, 50
KEYS = list(range(1000))
M = p.Metrics


@cache
def rows(table):
    found = pq.read_table(table, columns=["user_id", "category", "value"])
    return list(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))


class Keeping(p.LocalBackend):
    """Sums of each key, made once."""

    def __init__(self):
        super().__init__()
        self.kept = None

    def combine_accumulators_per_key(self, col, combiner, stage_name=None):
        if self.kept is None:
            self.kept = list(super().combine_accumulators_per_key(col, combiner, stage_name))
        return iter(self.kept)


def extractors(one):
    return p.DataExtractors(
        privacy_id_extractor=operator.itemgetter(0),
        partition_extractor=(lambda row: 0) if one else operator.itemgetter(1),
        value_extractor=operator.itemgetter(2),
    )


def asked(table, metrics, names, draws, laplace, public=None, groups=GROUPS, most=ROWS):
    source, one, backend = rows(table), public == [0], Keeping() if draws else p.LocalBackend()
    bounds = p.AggregateParams(
        metrics=metrics,
        noise_kind=p.NoiseKind.LAPLACE if laplace else p.NoiseKind.GAUSSIAN,
        max_partitions_contributed=groups,
        max_contributions_per_partition=most,
        min_value=LOW,
        max_value=HIGH,
    )

    def work():
        accountant = p.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
        result = p.DPEngine(accountant, backend).aggregate(source, bounds, extractors(one), public_partitions=public)
        accountant.compute_budgets()
        found = list(result)
        answer = {} if one else {"key": [key for key, _ in found]}
        return answer | {mine: [float(getattr(value, theirs)) for _, value in found] for mine, theirs in names.items()}

    return (lambda: {"draws": [work() for _ in range(draws)]}) if draws else work


def scalar(table, metric, name, most, draws):
    """One number: Laplace noise is the less."""
    return asked(table, [metric], {"value": name}, draws, True, [0], 1, most)


def count(table, draws=0, laplace=True):
    return scalar(table, M.COUNT, "count", GROUPS * ROWS, draws)


def count_sum(table, draws=0, laplace=False):
    return asked(table, [M.COUNT, M.SUM], {"n": "count", "s": "sum"}, draws, laplace, KEYS)


def count_sum_avg(table, draws=0, laplace=False):
    return asked(table, [M.COUNT, M.SUM, M.MEAN], {"n": "count", "s": "sum", "avg": "mean"}, draws, laplace, KEYS)


def count_found(table, draws=0, laplace=False):
    return asked(table, [M.COUNT], {"n": "count"}, draws, laplace)


def count_sum_found(table, draws=0, laplace=False):
    return asked(table, [M.COUNT, M.SUM], {"n": "count", "s": "sum"}, draws, laplace)


def median(table, draws=0, laplace=True):
    return scalar(table, M.PERCENTILE(50), "percentile_50", GROUPS * ROWS, draws)


def users(table, draws=0, laplace=True):
    return scalar(table, M.PRIVACY_ID_COUNT, "privacy_id_count", 1, draws)


def users_by(table, draws=0, laplace=False):
    return asked(table, [M.PRIVACY_ID_COUNT], {"n": "privacy_id_count"}, draws, laplace, KEYS)
