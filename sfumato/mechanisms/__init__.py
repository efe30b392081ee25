"""Mechanisms: what each does and what it costs, in one class, in one file."""

from sfumato.mechanisms.base import Mechanism, Processed
from sfumato.mechanisms.gaussian import Gaussian

__all__ = ["Gaussian", "Mechanism", "Processed"]
