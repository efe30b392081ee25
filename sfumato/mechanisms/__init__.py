"""Mechanisms: what each does and what it costs, in one class, in one file.

A mechanism that the list below does not name is found by its class: all modules are imported then.
"""

from typing import TYPE_CHECKING

from sfumato.mechanisms.additive.bounded_laplace import BoundedLaplace
from sfumato.mechanisms.additive.bounded_statistics import BoundedMean, BoundedSum, Count, Histogram
from sfumato.mechanisms.additive.discrete_gaussian import DiscreteGaussian
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.joint_laplace import JointLaplace
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.additive.staircase import Staircase
from sfumato.mechanisms.additive.truncated_laplace import TruncatedLaplace
from sfumato.mechanisms.base import Following, Measured, Mechanism, Processed
from sfumato.mechanisms.choice.argmax import StableArgmax, argmax, monotone_argmax
from sfumato.mechanisms.choice.exponential import Exponential
from sfumato.mechanisms.choice.noisy_max import ReportNoisyMax
from sfumato.mechanisms.choice.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.choice.top_k import TopK
from sfumato.mechanisms.composition import Chain
from sfumato.mechanisms.keys.partition_selection import PartitionSelection
from sfumato.mechanisms.keys.threshold_selection import StabilityHistogram, ThresholdSelection
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.streams.above_threshold import AboveThreshold
from sfumato.mechanisms.streams.tree_counter import TreeCounter

__all__ = [
    "AboveThreshold",
    "BoundedLaplace",
    "BoundedMean",
    "BoundedSum",
    "Chain",
    "Count",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Following",
    "Gaussian",
    "Histogram",
    "JointLaplace",
    "Laplace",
    "Measured",
    "Mechanism",
    "PartitionSelection",
    "PermuteAndFlip",
    "Processed",
    "RandomizedResponse",
    "ReportNoisyMax",
    "StabilityHistogram",
    "StableArgmax",
    "Staircase",
    "ThresholdSelection",
    "TopK",
    "TreeCounter",
    "TruncatedLaplace",
    "argmax",
    "monotone_argmax",
]

if not TYPE_CHECKING:  # type checkers read the list above, so that a misspelt name stays an error

    def __getattr__(name):
        from sfumato.mechanisms.base import shipped_mechanisms

        found = {kind.__name__: kind for kind in shipped_mechanisms()} if name[:1].isupper() else {}  # no module is so
        if name not in found:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return found[name]
