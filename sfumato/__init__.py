"""sfumato: differential privacy priced in one exact currency.

The names below are loaded when first used, so that `import sfumato` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from sfumato import audit, dependent, errors, groups, ledger, loss, mechanisms, noise, plots, sampling  # noqa: F401  # plots needs an extra, so it is not in __all__
    from sfumato.curator import Curator
    from sfumato.ledger.budgets import Budget
    from sfumato.ledger.ledger import Ledger
    from sfumato.loss.base import PrivacyLoss
    from sfumato.loss.bound import Bound
    from sfumato.loss.calibrate import calibrate
    from sfumato.loss.compare import compare
    from sfumato.mechanisms.above_threshold import AboveThreshold
    from sfumato.mechanisms.argmax import StableArgmax, argmax, monotone_argmax
    from sfumato.mechanisms.bounded_laplace import BoundedLaplace
    from sfumato.mechanisms.composition import Chain, Following, Measured
    from sfumato.mechanisms.discrete_gaussian import DiscreteGaussian
    from sfumato.mechanisms.discrete_laplace import DiscreteLaplace
    from sfumato.mechanisms.exponential import Exponential
    from sfumato.mechanisms.gaussian import Gaussian
    from sfumato.mechanisms.joint_laplace import JointLaplace
    from sfumato.mechanisms.laplace import Laplace
    from sfumato.mechanisms.noisy_max import ReportNoisyMax
    from sfumato.mechanisms.partition_selection import PartitionSelection
    from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
    from sfumato.mechanisms.randomized_response import RandomizedResponse
    from sfumato.mechanisms.stability_histogram import StabilityHistogram
    from sfumato.mechanisms.staircase import Staircase
    from sfumato.mechanisms.statistics import BoundedMean, BoundedSum, Count, Histogram
    from sfumato.mechanisms.threshold_selection import ThresholdSelection
    from sfumato.mechanisms.top_k import TopK
    from sfumato.mechanisms.tree_counter import TreeCounter
    from sfumato.mechanisms.truncated_laplace import TruncatedLaplace
    from sfumato.sampling.poisson import Poisson
    from sfumato.sampling.without_replacement import WithoutReplacement
    from sfumato.sensitivity import AddRemove, Relation, ReplaceOne, Sensitivity
    from sfumato.sql.build import col, count

PLACES = {
    "Curator": "sfumato.curator",
    "col": "sfumato.sql.build",
    "count": "sfumato.sql.build",
    "Budget": "sfumato.ledger.budgets",
    "Ledger": "sfumato.ledger.ledger",
    "ledger": "sfumato.ledger",
    "dependent": "sfumato.dependent",
    "groups": "sfumato.groups",
    "loss": "sfumato.loss",
    "Gaussian": "sfumato.mechanisms.gaussian",
    "Measured": "sfumato.mechanisms.composition",
    "Following": "sfumato.mechanisms.composition",
    "Chain": "sfumato.mechanisms.composition",
    "Count": "sfumato.mechanisms.statistics",
    "BoundedSum": "sfumato.mechanisms.statistics",
    "BoundedMean": "sfumato.mechanisms.statistics",
    "Histogram": "sfumato.mechanisms.statistics",
    "BoundedLaplace": "sfumato.mechanisms.bounded_laplace",
    "DiscreteGaussian": "sfumato.mechanisms.discrete_gaussian",
    "DiscreteLaplace": "sfumato.mechanisms.discrete_laplace",
    "JointLaplace": "sfumato.mechanisms.joint_laplace",
    "Laplace": "sfumato.mechanisms.laplace",
    "Staircase": "sfumato.mechanisms.staircase",
    "TruncatedLaplace": "sfumato.mechanisms.truncated_laplace",
    "Exponential": "sfumato.mechanisms.exponential",
    "RandomizedResponse": "sfumato.mechanisms.randomized_response",
    "PermuteAndFlip": "sfumato.mechanisms.permute_and_flip",
    "ReportNoisyMax": "sfumato.mechanisms.noisy_max",
    "TopK": "sfumato.mechanisms.top_k",
    "StableArgmax": "sfumato.mechanisms.argmax",
    "argmax": "sfumato.mechanisms.argmax",
    "PartitionSelection": "sfumato.mechanisms.partition_selection",
    "ThresholdSelection": "sfumato.mechanisms.threshold_selection",
    "StabilityHistogram": "sfumato.mechanisms.stability_histogram",
    "AboveThreshold": "sfumato.mechanisms.above_threshold",
    "TreeCounter": "sfumato.mechanisms.tree_counter",
    "monotone_argmax": "sfumato.mechanisms.argmax",
    "Sensitivity": "sfumato.sensitivity",
    "Poisson": "sfumato.sampling.poisson",
    "WithoutReplacement": "sfumato.sampling.without_replacement",
    "calibrate": "sfumato.loss.calibrate",
    "compare": "sfumato.loss.compare",
    "Bound": "sfumato.loss.bound",
    "PrivacyLoss": "sfumato.loss.base",
    "AddRemove": "sfumato.sensitivity",
    "ReplaceOne": "sfumato.sensitivity",
    "Relation": "sfumato.sensitivity",
    "sampling": "sfumato.sampling",
    "mechanisms": "sfumato.mechanisms",
    "noise": "sfumato.noise",
    "audit": "sfumato.audit",
    "plots": "sfumato.plots",
    "errors": "sfumato.errors",
}

__all__ = [
    "AboveThreshold",
    "AddRemove",
    "Bound",
    "BoundedLaplace",
    "BoundedMean",
    "BoundedSum",
    "Budget",
    "Chain",
    "Count",
    "Curator",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Following",
    "Gaussian",
    "Histogram",
    "JointLaplace",
    "Laplace",
    "Ledger",
    "Measured",
    "PartitionSelection",
    "PermuteAndFlip",
    "Poisson",
    "PrivacyLoss",
    "RandomizedResponse",
    "Relation",
    "ReplaceOne",
    "ReportNoisyMax",
    "Sensitivity",
    "StabilityHistogram",
    "StableArgmax",
    "Staircase",
    "ThresholdSelection",
    "TopK",
    "TreeCounter",
    "TruncatedLaplace",
    "WithoutReplacement",
    "argmax",
    "audit",
    "calibrate",
    "col",
    "compare",
    "count",
    "dependent",
    "errors",
    "groups",
    "ledger",
    "loss",
    "mechanisms",
    "monotone_argmax",
    "noise",
    "sampling",
]


def __getattr__(name: str) -> object:
    if name not in PLACES:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}; it has {', '.join(__all__)}")
    module = import_module(PLACES[name])
    return module if module.__name__ == f"sfumato.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
