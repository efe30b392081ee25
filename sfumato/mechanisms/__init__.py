"""Mechanisms: what each does and what it costs, in one class, in one file."""

from sfumato.mechanisms.base import Mechanism, Processed
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.randomized_response import RandomizedResponse

__all__ = ["Exponential", "Gaussian", "Mechanism", "Processed", "RandomizedResponse"]
