"""The Rényi accountant finds the best order, and never a smaller ε than the profile allows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.loss.views.renyi_accountant import renyi_accountant

targets = st.floats(-12, -0.1).map(lambda x: 10.0**x)


@given(mu=st.floats(0.05, 5), delta=targets)
def test_the_renyi_accountant_finds_the_best_order_of_a_gaussian(mu, delta):
    a = 1 + np.geomspace(1e-3, 1e4, 20_000)
    best = float((a * mu**2 / 2 + np.log((a - 1) / a) - (math.log(delta) + np.log(a)) / (a - 1)).min())
    found = renyi_accountant(GaussianLoss(mu), delta).upper
    assert found <= max(best, 0) * (1 + 1e-4) + 1e-6
    assert found >= GaussianLoss(mu).epsilon(delta).lower


def test_orders_that_are_given_are_the_only_ones():
    loss = 1000 * GaussianLoss(0.02)
    free, coarse = renyi_accountant(loss, 1e-6), renyi_accountant(loss, 1e-6, orders=[2, 64])
    assert coarse.upper > free.upper
    assert coarse.method == "order 2"
    assert free.upper == pytest.approx(3.1310, abs=1e-3)
    for wrong in ([], [1], [0.5, 2], [math.inf]):
        with pytest.raises(InvalidParameter, match="orders"):
            renyi_accountant(loss, 1e-6, orders=wrong)


def test_a_leak_has_no_renyi_epsilon():
    assert renyi_accountant(10 * ApproxLoss(0.1, 1e-9), 1e-6).upper == math.inf


def test_the_worse_direction_counts():
    loss = PoissonSampledLoss(PureLoss(1.0), 0.1)
    one_way = max(renyi_accountant(loss.remove, 1e-3).upper, renyi_accountant(loss.add, 1e-3).upper)
    assert renyi_accountant(loss, 1e-3).upper >= one_way * (1 - 1e-6)
