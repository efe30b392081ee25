"""The contour engine against inversion integrals and enumerations in 40 digits and more (tests/truth.py)."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from tests import truth
from tests.configurations import Random, magnitude

L = sf.loss
seeds = st.integers(0, 10**6)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("rate", "mu", "count", "t"), [(0.01, 1.25, 10**6, 268.0), (1e-4, 1.0, 10**9, 20.0), (0.3, 0.5, 1000, 40.0)]
)
def test_many_sampled_gaussians_against_a_plain_inversion(rate, mu, count, t, sign):
    loss = count * sf.Poisson(rate).amplify(L.GaussianLoss(mu))
    exact, slack = truth.settled_fold(rate, mu, sign, count, t), 1 + mp.mpf(10) ** -25
    for tolerance in (1e-2, 1e-5, 1e-10):
        found = (loss.remove if sign > 0 else loss.add).delta(t, tolerance=tolerance)
        assert found.method == "contour"
        assert found.lower <= exact * slack
        assert exact <= found.upper * slack
        assert found.relative_gap <= max(tolerance, 1e-7)


@settings(max_examples=25)
@given(seed=seeds)
def test_distinct_coins_face_by_face(seed):
    r = Random(f"distinct coins {seed}")
    scale = magnitude(r, 1e-3, 2)
    coins = [
        (scale * magnitude(r, 0.2, 3), r.choice([0.0, magnitude(r, 1e-15, 1e-2)])) for _ in range(r.randrange(2, 9))
    ]
    loss = sum(L.ApproxLoss(eps, leak) if leak else L.PureLoss(eps) for eps, leak in coins)
    top = sum(eps for eps, _ in coins)
    points = np.array([0.0, top * r.random(), top * r.random(), top * (1 - magnitude(r, 1e-6, 1)), 1.5 * top])
    found = loss.delta(points, tolerance=magnitude(r, 1e-7, 1e-2))
    for t, lower, upper in zip(points, found.lower, found.upper, strict=True):
        exact = truth.settled(lambda t=t: truth.distinct_coins(coins, float(t)))
        assert mp.mpf(float(lower)) <= exact <= mp.mpf(float(upper)), (coins, t)
