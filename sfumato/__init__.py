"""sfumato: differential privacy priced in one exact currency.

The names below are loaded when first used, so that `import sfumato` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from sfumato import audit, dependent, errors, groups, learn, ledger, local, loss, mechanisms, noise, plots, sampling  # noqa: F401  # plots needs an extra, so it is not in __all__
    from sfumato.aggregates.builder import col, count
    from sfumato.client import connect
    from sfumato.curator import Curator
    from sfumato.ledger.budgets import Budget
    from sfumato.ledger.ledger import Ledger
    from sfumato.loss.base import PrivacyLoss
    from sfumato.loss.bound import Bound
    from sfumato.loss.views.calibrate import calibrate
    from sfumato.mechanisms.additive.bounded_laplace import BoundedLaplace as BoundedLaplace
    from sfumato.mechanisms.additive.bounded_statistics import BoundedMean as BoundedMean
    from sfumato.mechanisms.additive.bounded_statistics import BoundedSum as BoundedSum
    from sfumato.mechanisms.additive.bounded_statistics import Count as Count
    from sfumato.mechanisms.additive.bounded_statistics import Histogram as Histogram
    from sfumato.mechanisms.additive.discrete_gaussian import DiscreteGaussian
    from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
    from sfumato.mechanisms.additive.gaussian import Gaussian
    from sfumato.mechanisms.additive.joint_laplace import JointLaplace as JointLaplace
    from sfumato.mechanisms.additive.laplace import Laplace
    from sfumato.mechanisms.additive.staircase import Staircase as Staircase
    from sfumato.mechanisms.additive.truncated_laplace import TruncatedLaplace as TruncatedLaplace
    from sfumato.mechanisms.base import Following as Following
    from sfumato.mechanisms.base import Measured as Measured
    from sfumato.mechanisms.choice.argmax import StableArgmax as StableArgmax
    from sfumato.mechanisms.choice.argmax import argmax as argmax
    from sfumato.mechanisms.choice.argmax import monotone_argmax as monotone_argmax
    from sfumato.mechanisms.choice.exponential import Exponential
    from sfumato.mechanisms.choice.noisy_max import ReportNoisyMax as ReportNoisyMax
    from sfumato.mechanisms.choice.permute_and_flip import PermuteAndFlip as PermuteAndFlip
    from sfumato.mechanisms.choice.top_k import TopK as TopK
    from sfumato.mechanisms.composition import Chain as Chain
    from sfumato.mechanisms.keys.partition_selection import PartitionSelection as PartitionSelection
    from sfumato.mechanisms.keys.threshold_selection import StabilityHistogram as StabilityHistogram
    from sfumato.mechanisms.keys.threshold_selection import ThresholdSelection as ThresholdSelection
    from sfumato.mechanisms.randomized_response import RandomizedResponse
    from sfumato.mechanisms.streams.above_threshold import AboveThreshold as AboveThreshold
    from sfumato.mechanisms.streams.tree_counter import TreeCounter as TreeCounter
    from sfumato.sampling.balls_in_bins import BallsInBins as BallsInBins
    from sfumato.sampling.fixed_cycles import FixedCycles as FixedCycles
    from sfumato.sampling.poisson import Poisson
    from sfumato.sampling.shuffled_epochs import ShuffledEpochs as ShuffledEpochs
    from sfumato.sampling.without_replacement import WithoutReplacement
    from sfumato.sensitivity import AddRemove, ReplaceOne, Sensitivity
    from sfumato.sensitivity import Relation as Relation
    from sfumato.teach.classical.compare import compare
    from sfumato.teach.classical.composition_theorems import advanced_composition as advanced_composition
    from sfumato.teach.classical.composition_theorems import basic_composition as basic_composition
    from sfumato.teach.classical.composition_theorems import optimal_composition as optimal_composition

PLACES = {
    "Curator": "sfumato.curator",
    "connect": "sfumato.client",
    "col": "sfumato.aggregates.builder",
    "count": "sfumato.aggregates.builder",
    "Budget": "sfumato.ledger.budgets",
    "Ledger": "sfumato.ledger.ledger",
    "learn": "sfumato.learn",
    "ledger": "sfumato.ledger",
    "dependent": "sfumato.mechanisms.dependent",
    "groups": "sfumato.mechanisms.groups",
    "local": "sfumato.local",
    "loss": "sfumato.loss",
    "Gaussian": "sfumato.mechanisms.additive.gaussian",
    "Measured": "sfumato.mechanisms.base",
    "Following": "sfumato.mechanisms.base",
    "Chain": "sfumato.mechanisms.composition",
    "Count": "sfumato.mechanisms.additive.bounded_statistics",
    "BoundedSum": "sfumato.mechanisms.additive.bounded_statistics",
    "BoundedMean": "sfumato.mechanisms.additive.bounded_statistics",
    "Histogram": "sfumato.mechanisms.additive.bounded_statistics",
    "BoundedLaplace": "sfumato.mechanisms.additive.bounded_laplace",
    "DiscreteGaussian": "sfumato.mechanisms.additive.discrete_gaussian",
    "DiscreteLaplace": "sfumato.mechanisms.additive.discrete_laplace",
    "JointLaplace": "sfumato.mechanisms.additive.joint_laplace",
    "Laplace": "sfumato.mechanisms.additive.laplace",
    "Staircase": "sfumato.mechanisms.additive.staircase",
    "TruncatedLaplace": "sfumato.mechanisms.additive.truncated_laplace",
    "Exponential": "sfumato.mechanisms.choice.exponential",
    "RandomizedResponse": "sfumato.mechanisms.randomized_response",
    "PermuteAndFlip": "sfumato.mechanisms.choice.permute_and_flip",
    "ReportNoisyMax": "sfumato.mechanisms.choice.noisy_max",
    "TopK": "sfumato.mechanisms.choice.top_k",
    "StableArgmax": "sfumato.mechanisms.choice.argmax",
    "argmax": "sfumato.mechanisms.choice.argmax",
    "PartitionSelection": "sfumato.mechanisms.keys.partition_selection",
    "ThresholdSelection": "sfumato.mechanisms.keys.threshold_selection",
    "StabilityHistogram": "sfumato.mechanisms.keys.threshold_selection",
    "AboveThreshold": "sfumato.mechanisms.streams.above_threshold",
    "TreeCounter": "sfumato.mechanisms.streams.tree_counter",
    "monotone_argmax": "sfumato.mechanisms.choice.argmax",
    "Sensitivity": "sfumato.sensitivity",
    "Poisson": "sfumato.sampling.poisson",
    "WithoutReplacement": "sfumato.sampling.without_replacement",
    "BallsInBins": "sfumato.sampling.balls_in_bins",
    "ShuffledEpochs": "sfumato.sampling.shuffled_epochs",
    "FixedCycles": "sfumato.sampling.fixed_cycles",
    "calibrate": "sfumato.loss.views.calibrate",
    "compare": "sfumato.teach.classical.compare",
    "basic_composition": "sfumato.teach.classical.composition_theorems",
    "advanced_composition": "sfumato.teach.classical.composition_theorems",
    "optimal_composition": "sfumato.teach.classical.composition_theorems",
    "Bound": "sfumato.loss.bound",
    "PrivacyLoss": "sfumato.loss.base",
    "AddRemove": "sfumato.sensitivity",
    "ReplaceOne": "sfumato.sensitivity",
    "Relation": "sfumato.sensitivity",
    "sampling": "sfumato.sampling",
    "mechanisms": "sfumato.mechanisms",
    "noise": "sfumato.noise",
    "audit": "sfumato.audit",
    "plots": "sfumato.teach.figures",
    "errors": "sfumato.errors",
}

PACKAGES = {
    "audit", "dependent", "errors", "groups", "learn", "ledger", "local", "loss", "mechanisms", "noise", "plots",
    "sampling",
}  # fmt: skip

# The names that a newcomer meets. Every other name of PLACES, and every mechanism, is there too: sf.TopK.
__all__ = [
    "AddRemove",
    "Bound",
    "Budget",
    "Curator",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Ledger",
    "Poisson",
    "PrivacyLoss",
    "RandomizedResponse",
    "ReplaceOne",
    "Sensitivity",
    "WithoutReplacement",
    "audit",
    "calibrate",
    "col",
    "compare",
    "connect",
    "count",
    "dependent",
    "errors",
    "groups",
    "learn",
    "ledger",
    "local",
    "loss",
    "mechanisms",
    "noise",
    "sampling",
]


def __getattr__(name: str) -> object:
    if name not in PLACES:
        for package in ("sfumato.mechanisms", "sfumato.sampling") if name[:1].isupper() else ():
            if hasattr(found := import_module(package), name):  # a mechanism or a sampling scheme that no list names
                return getattr(found, name)
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}; it has {', '.join(__all__)}")
    module = import_module(PLACES[name])
    return module if name in PACKAGES else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
