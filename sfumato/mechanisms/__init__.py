"""Mechanisms: what each does and what it costs, in one class, in one file."""

from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.argmax import StableArgmax, argmax, monotone_argmax
from sfumato.mechanisms.base import Mechanism, Processed
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
