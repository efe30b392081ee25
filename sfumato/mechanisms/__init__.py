"""Mechanisms: what each does and what it costs, in one class, in one file."""

from sfumato.mechanisms.argmax import StableArgmax, argmax
from sfumato.mechanisms.base import Mechanism, Processed
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.noisy_max import ReportNoisyMax
from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.top_k import TopK

__all__ = [
    "Exponential",
    "Gaussian",
    "Mechanism",
    "PermuteAndFlip",
    "Processed",
    "RandomizedResponse",
    "ReportNoisyMax",
    "StableArgmax",
    "TopK",
    "argmax",
]
