"""Stated laws are probability laws, and agree with the laws that the samplers are built from."""

import math

import pytest

import sfumato as sf
from sfumato.audit.exhibits import all_exhibits
from sfumato.audit.stated_laws import stated_law

KNOWN = [
    one for one in all_exhibits() if stated_law(one.mechanism, one.d0) is not None and stated_law(one.mechanism, one.d1)
]


@pytest.mark.parametrize("exhibit", KNOWN, ids=lambda one: f"{one.name[:60]} {one.d0}")
def test_stated_chances_are_a_law(exhibit):
    law = stated_law(exhibit.mechanism, exhibit.d0)
    assert math.fsum(law.chances) == pytest.approx(1, abs=1e-12)
    assert (law.chances >= 0).all()


@pytest.mark.parametrize(
    "noise",
    [sf.Laplace(3.0), sf.Gaussian(3.0, 0.5), sf.DiscreteGaussian(2.0), sf.DiscreteLaplace(2.0), sf.Staircase(0.5, 4.0)],
    ids=repr,
)
def test_stated_chances_are_those_of_the_exact_laws(noise):
    """Which come from balls, by another way."""
    law, exact = stated_law(noise, 0), noise.law()
    for k in (0, 1, 5, 20):
        tail = 2 * math.fsum(law.chances[len(law.chances) // 2 + k + 1 :])
        assert tail == pytest.approx(float(exact.beyond(k, 128)), rel=1e-9, abs=1e-15)
