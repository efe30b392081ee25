"""The auditor attacks choices, streams, groups and responses where they cost most: it finds nothing, and finds cheats.

Sources are recorded, so outcomes are the same in every run; with fresh bits each audit would raise a false alarm with a
chance below 0.001.
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
    "Exponential, monotone": (lambda x: sf.Exponential.monotone(x, 1), [0, 0], [1, 0]),
    "PermuteAndFlip": (lambda x: sf.PermuteAndFlip(x, 1), [2, 0, 0, 0], [1, 1, 1, 1]),
    "ReportNoisyMax": (lambda x: sf.ReportNoisyMax(x, 1), [1, 0, 0, 0], [0, 1, 1, 1]),
    "TopK": (lambda x: sf.TopK(2, x, 1), [0, 0, 0], [1, 1, -1]),
    "StableArgmax": (lambda x: sf.StableArgmax(x, 0.05, 1), [4, 0], [3, 1]),
    "StableArgmax of another": (lambda x: sf.StableArgmax(x, 0.05, 1), [1, 0, 0], [0, 1, 0]),
    "AboveThreshold": (lambda x: sf.AboveThreshold(x, 0), [0, 0, 0, 0], [1, 1, 1, -1]),
    "AboveThreshold, monotone": (lambda x: sf.AboveThreshold.monotone(x, 0, 2), [0, 0, 0], [1, 1, 1]),
    "TreeCounter": (lambda x: sf.TreeCounter(3, sf.DiscreteLaplace(2 / x)), [0, 0, 0], [1, 0, 0]),
    "PartitionSelection": (lambda x: sf.PartitionSelection(x, 0.05, 2), {"a": 2, "b": 3}, {"a": 1, "b": 2}),
    "PartitionSelection of one": (lambda x: sf.PartitionSelection(x, 0.05), {"a": 1}, {}),
    "ThresholdSelection": (lambda x: sf.ThresholdSelection(2 / x, 0.05), {"a": 20}, {"a": 19}),
    "ThresholdSelection of one": (lambda x: sf.ThresholdSelection(2 / x, 0.05), {"a": 1}, {}),
    "StabilityHistogram": (lambda x: sf.StabilityHistogram(1 / x, 0.05), {"a": 3}, {"a": 2}),
    "RandomizedResponse": (lambda x: sf.RandomizedResponse(x), True, False),
    "RandomizedResponse of five": (lambda x: sf.RandomizedResponse(x, 5), 0, 4),
}
SEEN = [name for name in CASES if " of " not in name and "monotone" not in name]


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
def test_nothing_costs_more_than_it_says(name):
    assert not attacked(name, 1).violated


@pytest.mark.parametrize("name", SEEN)
def test_what_costs_more_is_noticed(name):
    assert attacked(name, 4 if name != "AboveThreshold" else 8).violated
