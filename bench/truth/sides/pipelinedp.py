"""PipelineDP on its local backend: sums of each key are made once, noise is drawn anew; Gaussian or Laplace."""

import operator
from functools import cache

import pipeline_dp as p
import pyarrow.parquet as pq

PACKAGE, PREPARES = "pipeline-dp", True


@cache
def listed(table):
    found = pq.read_table(table)
    return list(zip(*(found[name].to_pylist() for name in ("u", "k", "v")), strict=True))


class Keeping(p.LocalBackend):
    """Sums of each key, made once."""

    def __init__(self):
        super().__init__()
        self.kept = None

    def combine_accumulators_per_key(self, col, combiner, stage_name=None):
        if self.kept is None:
            self.kept = list(super().combine_accumulators_per_key(col, combiner, stage_name))
        return iter(self.kept)


def answer(table, keys, groups, rows, most, low, high, summed, draws, gaussian, epsilon, delta):
    backend, source = Keeping(), listed(table)
    bounds = p.AggregateParams(
        metrics=[p.Metrics.COUNT, *([p.Metrics.SUM] if summed else [])],
        noise_kind=p.NoiseKind.GAUSSIAN if gaussian else p.NoiseKind.LAPLACE,
        max_partitions_contributed=groups if keys else 1,
        max_contributions_per_partition=rows if keys else most,
        min_value=low,
        max_value=high,
    )
    extractors = p.DataExtractors(
        privacy_id_extractor=operator.itemgetter(0),
        partition_extractor=operator.itemgetter(1) if keys else (lambda row: ""),
        value_extractor=operator.itemgetter(2),
    )

    def once():
        accountant = p.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
        result = p.DPEngine(accountant, backend).aggregate(source, bounds, extractors, public_partitions=keys or [""])
        accountant.compute_budgets()
        return {key: [float(one.count), *([float(one.sum)] if summed else [])] for key, one in result}

    return lambda: [once() for _ in range(draws)]
