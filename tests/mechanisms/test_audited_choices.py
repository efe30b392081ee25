"""Choices, streams, groups and responses that cost more than they say: the auditor notices.

That those which do not cheat are left alone is among the checks of every mechanism (tests/checks). Bits are recorded.
"""

from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.audit import audit
from tests.noise.sources import Recorded

SAMPLES = 2000
# name: a mechanism with x times the ε it should have, and two neighbours
CASES = {
    "Exponential": (lambda x: sf.Exponential(x, 1), [0, 0], [1, -1]),
    "PermuteAndFlip": (lambda x: sf.PermuteAndFlip(x, 1), [2, 0, 0, 0], [1, 1, 1, 1]),
    "ReportNoisyMax": (lambda x: sf.ReportNoisyMax(x, 1), [1, 0, 0, 0], [0, 1, 1, 1]),
    "TopK": (lambda x: sf.TopK(2, x, 1), [0, 0, 0], [1, 1, -1]),
    "StableArgmax": (lambda x: sf.StableArgmax(x, 0.05, 1), [4, 0], [3, 1]),
    "AboveThreshold": (lambda x: sf.AboveThreshold(x, 0), [0, 0, 0, 0], [1, 1, 1, -1]),
    "TreeCounter": (lambda x: sf.TreeCounter(3, sf.DiscreteLaplace(2 / x)), [0, 0, 0], [1, 0, 0]),
    "PartitionSelection": (lambda x: sf.PartitionSelection(x, 0.05, 2), {"a": 2, "b": 3}, {"a": 1, "b": 2}),
    "ThresholdSelection": (lambda x: sf.ThresholdSelection(2 / x, 0.05), {"a": 20}, {"a": 19}),
    "StabilityHistogram": (lambda x: sf.StabilityHistogram(1 / x, 0.05), {"a": 3}, {"a": 2}),
    "RandomizedResponse": (lambda x: sf.RandomizedResponse(x), True, False),
}


def recorded(mechanism, name):
    """The same mechanism, with bits that are the same in every run."""
    if isinstance(mechanism, sf.TreeCounter):
        return replace(mechanism, noise=recorded(mechanism.noise, name))
    return replace(mechanism, source=Recorded(name))


def attacked(name, factor):
    make, d0, d1 = CASES[name]
    mechanism = recorded(make(factor), f"audited {name} {factor}")
    return audit(mechanism.release, d0, d1, samples=SAMPLES, loss=make(1).loss())


@pytest.mark.parametrize("name", CASES)
def test_what_costs_more_is_noticed(name):
    assert attacked(name, 4 if name != "AboveThreshold" else 8).violated
