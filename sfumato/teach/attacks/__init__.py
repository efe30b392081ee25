"""Attacks on interfaces that look harmless and on a curator, with the success rate that the claimed loss allows.

There is one file for each attack. `demonstrate(epsilon, seed)` runs it and returns its success rates; `chart(epsilon,
seed)` returns the data of a figure. The seed determines the synthetic data. It does not determine the noise, so rates
that depend on noise differ from run to run.
"""

from sfumato.teach.attacks import averaging, differencing, linkage, membership, reconstruction, refusals
from sfumato.teach.attacks.outcome import AttackResult, Chart, Demonstration, Line

Reached = AttackResult  # the name before version 0.2

__all__ = [
    "AttackResult", "Chart", "Demonstration", "Line", "Reached", "averaging", "differencing", "linkage", "membership",
    "reconstruction", "refusals",
]  # fmt: skip
