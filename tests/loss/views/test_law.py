"""The privacy loss as a random variable, against closed forms, exact sums and draws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

import sfumato as sf
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.loss.views.law import slopes

L = sf.loss
POINTS = np.array([-0.93, -0.3, -1e-3, 0.0, 0.2, 0.71, 0.99])


def laplace_tail(eps: float, t: float) -> float:
    """P[L > t] of Laplace noise by the law in the docstring of LaplaceLoss: atoms at both ends, a density between."""
    if t >= eps:
        return 0.0
    if t < -eps:
        return 1.0
    with mp.workdps(30):
        return float(mp.mpf("0.5") + (1 - mp.e ** ((mp.mpf(t) - eps) / 2)) / 2)


@pytest.mark.parametrize("eps", [0.01, 1.0, 4.0])
def test_the_law_of_laplace_noise_is_known(eps):
    found = L.LaplaceLoss(eps).law.exceeds(POINTS * eps)
    truth = np.array([laplace_tail(eps, t) for t in POINTS * eps])
    assert np.all((found.lower <= truth) & (truth <= found.upper)) and np.max(found.upper - found.lower) < 1e-5


@settings(max_examples=15, deadline=None)
@given(mu=st.floats(0.01, 6), t=st.floats(-3, 3))
def test_slopes_of_the_profile_agree_with_the_normal_law(mu, t):
    """The tabulated twin knows only the profile; the closed form is Φ(μ/2 − t/μ), here with 40 digits."""
    with mp.workdps(40):
        truth = float(mp.ncdf(mp.mpf(mu) / 2 - mp.mpf(t) / mu))
    exact = L.GaussianLoss(mu).law.exceeds(t)
    low, high = slopes(L.GaussianLoss(mu), np.array([t]))
    assert exact.lower <= truth <= exact.upper
    assert low[0] <= truth <= high[0] and high[0] - low[0] < 1e-4


@pytest.mark.parametrize("pair", [L.FinitePairLoss((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)), L.RandomizedResponseLoss(1.0, 3)])
def test_the_law_of_listed_outcomes_is_their_sum(pair):
    losses, masses, _ = pair.outcomes()
    for t in (-2.0, -0.5, 0.1, 0.6, 5.0):
        truth = masses[losses > t].sum()
        found = pair.law.exceeds(t)
        assert found.lower - 1e-14 <= truth <= found.upper + 1e-14 and found.gap < 1e-12


EXAMPLES = [
    L.GaussianLoss(1.0),
    L.LaplaceLoss(0.7),
    L.ApproxLoss(0.5, 1e-3),
    sf.Poisson(0.1).amplify(L.GaussianLoss(1.0)),
    5 * L.GaussianLoss(0.2) + 3 * L.RandomizedResponseLoss(0.3),
]
each = pytest.mark.parametrize("loss", EXAMPLES, ids=str)


@each
def test_delta_is_the_difference_of_both_tails(loss):
    """P[L > ε] − e^ε·Q[L > ε], as lectures write it: Q[L > ε] is the other direction's P[L < −ε]."""
    for eps in (0.0137, 0.1237, 0.4321):
        ahead, back = loss.law.exceeds(eps), loss.reverse.law.cdf(-eps)
        delta = loss.remove.delta(eps) if loss.relation is sf.AddRemove else loss.delta(eps)
        assert ahead.lower - math.exp(eps) * back.upper <= delta.upper
        assert delta.lower <= ahead.upper - math.exp(eps) * back.lower


@each
def test_the_law_is_a_distribution_and_its_quantiles_invert_it(loss):
    t = np.linspace(-2, 2, 41)
    found, cdf = loss.law.exceeds(t), loss.law.cdf(t)
    assert np.all((found.lower >= 0) & (found.lower <= found.upper) & (found.upper <= 1))
    assert np.all(found.lower[1:] <= found.upper[:-1])
    assert np.all(cdf.lower <= 1 - found.lower + 1e-15) and np.all(1 - found.upper <= cdf.upper)
    for share in (0.1, 0.5, 0.9):
        q = loss.law.quantile(share)
        assert loss.law.cdf(q.upper + 1e-9).upper >= share
        assert loss.law.cdf(q.lower - 1e-6).lower <= share


@each
def test_draws_follow_the_law(loss):
    """Dvoretzky–Kiefer–Wolfowitz: with 40,000 draws the largest distance exceeds 0.0136 once in a million."""
    drawn = loss.law.sample(40_000, np.random.default_rng(5))
    t = np.linspace(-1.517, 1.483, 31)
    found = loss.law.exceeds(t)
    share = (drawn[:, None] > t).mean(axis=0)
    assert np.all(found.lower - 0.0137 <= share) and np.all(share <= found.upper + 0.0137)


def test_the_other_direction_is_the_law_of_the_reversed_pair():
    loss = L.FinitePairLoss((0.6, 0.4), (0.1, 0.9))
    assert loss.law.exceeds(1.0).lower == pytest.approx(0.6) and loss.law.reverse.exceeds(0.5).lower == pytest.approx(
        0.9
    )
    assert loss.add.law.exceeds(0.5).lower == pytest.approx(0.9)


def test_a_leak_is_an_infinite_loss():
    law = L.ApproxLoss(0.5, 1e-3).law
    assert law.quantile(1.0).upper == math.inf and law.quantile(0.9995).lower == math.inf
    assert law.exceeds(100.0).upper == pytest.approx(1e-3)
    assert np.isinf(law.sample(20_000, np.random.default_rng(1))).any()


def test_what_has_no_law_says_so():
    with pytest.raises(OutOfReach, match="known by bounds only"):
        L.ZcdpLoss(0.1).law.sample(10, np.random.default_rng(0))
    with pytest.raises(InvalidParameter, match="NaN"):
        L.GaussianLoss(1.0).law.exceeds(math.nan)
    with pytest.raises(InvalidParameter, match="share"):
        L.GaussianLoss(1.0).law.quantile(0.0)
