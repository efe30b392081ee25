"""The least μ and the least ρ of a loss: never below the truth, which mpmath gives, and not far above."""

import math

import mpmath as mp
import numpy as np
import pytest

import sfumato as sf
from sfumato.loss.kinds.discrete_gaussian import beyond, log_tails
from sfumato.loss.views.gdp import edge_prices

L = sf.loss


def upper_quantile(p: mp.mpf) -> mp.mpf:
    """The z above which a normal number lies with this probability."""
    if p > mp.mpf("0.5"):
        return -upper_quantile(1 - p)
    start = math.sqrt(max(0.0, -2 * float(mp.log(2 * p))))
    return mp.findroot(lambda z: mp.log(mp.erfc(z / mp.sqrt(2)) / 2) - mp.log(p), start)


@pytest.mark.parametrize("eps", [0.5, 5.0, 20.0, 30.0, 35.0])
def test_an_edge_of_a_profile_is_never_priced_below_its_two_points(eps):
    """Of randomized response, where P̄ is within a few roundings of 1."""
    delta = math.tanh(eps / 2)
    profile = np.array([delta, 0.0])
    _, prices = edge_prices(np.array([0.0, eps]), profile, profile, 0.0)
    with mp.workdps(60):
        q = mp.mpf(delta) / mp.expm1(eps)
        assert mp.mpf(float(prices[-1])) >= upper_quantile(q) - upper_quantile(delta + q)


@pytest.mark.parametrize(("eps", "more"), [(1e-15, 1e-6), (1e-10, 1e-6), (700.0, 0.01), (1e6, 0.01)])
def test_the_price_of_a_tiny_or_huge_epsilon_is_near_that_of_randomized_response(eps, more):
    """2Φ⁻¹(e^ε/(1 + e^ε)); these ε are outside of what the search over profiles takes."""
    with mp.workdps(40):
        least = mp.sqrt(mp.pi / 2) * eps if eps < 1 else 2 * upper_quantile(1 / (1 + mp.exp(eps)))
    assert least * (1 - mp.mpf("1e-15")) <= L.PureLoss(eps).gdp(0.0).upper <= least * (1 + mp.mpf(more))


@pytest.mark.parametrize(("sigma", "shift"), [(0.6, 1), (2.0, 1), (5.0, 3)])
def test_a_price_of_discrete_gaussian_noise_is_not_taken_where_the_inequality_fails(sigma, shift):
    """μa + μ²/2 ≥ (2yd + d²)/2σ² + log T(y), with a = z(S(y)) itself and not a bound of it."""
    end = math.ceil(8 * sigma + shift + 8)
    logs, log_ratio = log_tails(sigma, end)
    y = end - 1 - shift
    with mp.workdps(40):
        weight = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(y + 40 * math.ceil(sigma))]
        a = upper_quantile(mp.fsum(weight[y:]) / (2 * mp.fsum(weight) - 1))
        right = mp.mpf(2 * y * shift + shift**2) / (2 * mp.mpf(sigma) ** 2) + mp.log(mp.fsum(weight[y:]) / weight[y])
        least = mp.sqrt(a * a + 2 * right) - a
    taken = [float(least) * (1 + x) for x in np.linspace(-0.3, 0.5, 200)
             if beyond(sigma, shift, float(least) * (1 + x), y, log_ratio, float(logs[y]))]  # fmt: skip
    assert taken and min(taken) >= least


def test_the_least_rho_of_one_direction_does_not_count_the_other():
    pair = L.FinitePairLoss((0.9, 0.1), (0.5, 0.5))
    remove, add = pair.remove.zcdp(), pair.add.zcdp()
    assert remove.upper < add.lower
    assert pair.zcdp().lower == add.lower


def test_the_least_rho_of_what_may_be_either_loss_is_not_above_that_of_the_worse():
    """Large orders are not bounded here, which says nothing from below."""
    gaussian = L.GaussianLoss(0.5)
    assert L.either(gaussian, L.LaplaceLoss(0.5)).zcdp().lower <= gaussian.zcdp().upper


@pytest.mark.parametrize(
    "loss", [L.ZcdpLoss(0.1), L.ZcdpLoss(0.02, 0.05), L.RenyiLoss((1.5, 4.0), (0.1, 0.3))], ids=str
)
def test_what_is_only_bounded_from_above_may_be_nothing(loss):
    """A loss of 0 keeps these promises, so its price of 0 is the least that they may stand for."""
    assert loss.zcdp().lower == 0 < loss.zcdp().upper
