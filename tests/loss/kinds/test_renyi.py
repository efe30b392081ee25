"""Losses known by a Rényi curve: truncated CDP, and zCDP along a path of unequal steps."""

import math
from itertools import pairwise

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.groups.proportional_gaussian import ScaledPair
from sfumato.teach.classical import smooth_noise_prices

L = sf.loss


def test_truncated_cdp_lies_between_its_conversion_at_one_order_and_zcdp():
    loss = L.TcdpLoss(0.1, 8.0)
    assert float(loss.renyi(8.0)) == pytest.approx(0.8) and loss.renyi(8.1).upper == math.inf
    for eps in (0.5, 3.0, 9.0):
        found = loss.delta(eps).upper
        assert found >= L.ZcdpLoss(0.1).delta(eps).upper * 0.99  # orders are tabulated differently
        one = math.exp(7 * (0.8 - eps)) * (1 - 1 / 8) ** 7 / 8  # Canonne, Kamath & Steinke at the order 8
        assert found <= one * (1 + 1e-9)


def test_truncated_cdp_covers_noise_in_proportion_to_the_count():
    """Algorithm 2 of the open problem: its exact profile, by normal distribution functions, is below."""
    mechanism = sf.groups.ProportionalGaussian(0.1)
    loss = mechanism.truncated_loss(100, 0.5 * 100**2 / 199)
    assert loss.rho == pytest.approx(0.0101552, rel=1e-4)  # the table of docs/theorems/groups.md
    for eps in (0.2, 0.5, 1.0):
        assert mechanism.delta(100, eps).upper <= loss.delta(eps).upper


@pytest.mark.parametrize("size", [2, 3, 5])
def test_groups_of_truncated_cdp_hold_for_a_chain_of_scaled_normal_laws(size):
    """People leave a group of 400 one by one; the divergence between the ends is known in closed form."""
    x, r, omega = 400, 0.3, 120.0
    steps = [ScaledPair(x - i, x - i - 1, r) for i in range(size)]
    rho = max(pair.renyi(a) / a for pair in steps for a in np.linspace(1.01, omega, 60))
    group = L.TcdpLoss(rho, omega).group(size)
    assert isinstance(group, L.TcdpLoss) and group.omega <= omega / size
    ends = ScaledPair(x, x - size, r)
    for order in np.linspace(1.01, group.omega, 20):
        assert ends.renyi(order) <= group.rho * order
    assert L.TcdpLoss(0.1, 3.0).group(3).delta(5.0).upper == 1.0
    assert L.TcdpLoss(0.1, 3.0).group(1) == L.TcdpLoss(0.1, 3.0)
    assert L.TcdpLoss(0.1, 3.0).group(0).delta(0.0).upper == 0.0


def test_steps_of_normal_laws_attain_the_bound_of_a_path():
    for steps in ((0.3, 0.1), (1.0, 0.2, 0.05), (0.7,)):
        found = L.zcdp_chain(*(mu * mu / 2 for mu in steps)).rho
        assert found == pytest.approx(sum(steps) ** 2 / 2, rel=1e-14) and found >= sum(steps) ** 2 / 2 * (1 - 1e-15)
    assert L.zcdp_chain(0.1, 0.1, 0.1).rho == pytest.approx(L.ZcdpLoss(0.1).group(3).rho)
    assert L.zcdp_chain().rho == 0


def test_a_path_of_a_dilation_and_a_shift_is_the_published_bound_on_smooth_noise():
    """Lemmas 19 and 20 along a path are Proposition 3 of Bun & Steinke 2019, formula by formula."""
    for sigma, s, t in ((0.3, 0.2, 0.1), (1.0, 0.05, 0.4)):
        dilated = float(smooth_noise_prices.laplace_log_normal_dilated(sigma, t, 1.0))
        shifted = math.exp(3 * sigma**2) * s * s / 2
        found = L.zcdp_chain(dilated, shifted).rho
        assert found == pytest.approx(float(smooth_noise_prices.laplace_log_normal(sigma, s, t)), rel=1e-12)


def test_unequal_steps_of_randomized_response_stay_below_the_path():
    """Three biased coins in a row: every step's and the whole path's zCDP are computed from their own outcomes."""
    biases = (0.5, 0.6, 0.63)
    coins = [(b, 1 - b) for b in biases]
    rhos = [L.FinitePairLoss(a, b).zcdp().upper for a, b in pairwise(coins)]
    assert L.FinitePairLoss(coins[0], coins[-1]).zcdp().lower <= L.zcdp_chain(*rhos).rho


def test_orders_that_do_not_exist_are_refused():
    with pytest.raises(InvalidParameter, match="omega"):
        L.TcdpLoss(0.1, 1.0)
    with pytest.raises(InvalidParameter, match="rho"):
        L.zcdp_chain(-0.1)
