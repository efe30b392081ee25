"""The auditor attacks additive noise at the moves that cost most: it finds nothing, and finds noise that is too small.

Sources are recorded, so outcomes are the same in every run; with fresh bits each audit would raise a false alarm with a
chance below 0.001.
"""

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit import audit
from tests.noise.sources import Recorded

SAMPLES = 1 << 14
CASES = {
    "Gaussian": (lambda x, s: sf.Gaussian(2 * x, source=s), 0, 1),
    "Gaussian about reals": (lambda x, s: sf.Gaussian(2 * x, source=s), 0.25, 1.25),
    "Laplace": (lambda x, s: sf.Laplace(2 * x, source=s), 0, 1),
    "Laplace about reals": (lambda x, s: sf.Laplace(2 * x, step=0.25, source=s), 0.1, 1.1),
    "DiscreteGaussian": (lambda x, s: sf.DiscreteGaussian(2 * x, source=s), 0, 1),
    "DiscreteLaplace": (lambda x, s: sf.DiscreteLaplace(2 * x, source=s), 0, 1),
    "Staircase": (lambda x, s: sf.Staircase(0.5 / x, 1, source=s), 0, 1),
    "TruncatedLaplace": (lambda x, s: sf.TruncatedLaplace(2 * x, 5, source=s), 0, 1),
    "BoundedLaplace": (lambda x, s: sf.BoundedLaplace(2 * x, 0, 9, source=s), 0, 1),
    "at the end of 64 bits": (lambda x, s: sf.DiscreteLaplace(2 * x, source=s), 2**63 - 2, 2**63 - 1),
}


class Many:
    """A mechanism on one number, many times at once."""

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def release(self, value):
        return self.mechanism.release(value)

    def many(self, value, count):
        return self.mechanism.release(np.full(count, value))


def attacked(name, size, claimed):
    make, d0, d1 = CASES[name]
    mechanism = make(size, Recorded(f"audited {name} {size}"))
    samples = SAMPLES if name != "BoundedLaplace" else SAMPLES // 4
    return audit(Many(mechanism), d0, d1, samples=samples, loss=make(claimed, None).loss(1))


@pytest.mark.parametrize("name", CASES)
def test_no_noise_costs_more_than_it_says(name):
    assert not attacked(name, 1, 1).violated


@pytest.mark.parametrize("name", [name for name in CASES if name != "at the end of 64 bits"])
def test_a_third_of_the_noise_is_noticed(name):
    assert attacked(name, 1 / 3, 1).violated
