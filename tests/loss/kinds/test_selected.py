"""The best of a random number of runs: exact enumeration of all orders of outcomes, against the price."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

import sfumato as sf
from sfumato.loss.kinds.run_counts import RunLaw

L = sf.loss
LAWS = [
    L.NegativeBinomialRuns.of_mean(20.0, -0.5),
    L.NegativeBinomialRuns.of_mean(20.0, 0.0),
    L.NegativeBinomialRuns.of_mean(5.0, 1.0),
    L.NegativeBinomialRuns.of_mean(1.01, 0.5),
    L.PoissonRuns(8.0),
]
each_law = pytest.mark.parametrize("law", LAWS, ids=str)


@cache
def chances(law: RunLaw, most: int = 40_000) -> np.ndarray:
    """P(K = 0), P(K = 1), … from the definition of the law."""
    if isinstance(law, L.PoissonRuns):
        logs = np.concatenate([[0.0], np.cumsum(np.log(law.rate / np.arange(1, 400)))]) - law.rate
        return np.exp(logs)
    k = np.arange(1, most)
    logs = np.cumsum(np.log((k - 1 + law.shape + (k == 1) * (1 - law.shape)) / k)) + k * math.log1p(-law.stop)
    weights = np.exp(logs)
    return np.concatenate([[0.0], weights / weights.sum()])


def generating(law: RunLaw, x: np.ndarray) -> np.ndarray:
    """E[x^K], summed."""
    p = chances(law)
    k = np.arange(p.size)
    return np.array([np.sum(p * v**k) if v > 0 else p[0] for v in x])


def best_law(law: RunLaw, p: np.ndarray) -> np.ndarray:
    """P(the best run has outcome i), where outcomes are sorted from the worst score to the best."""
    ends = np.minimum(np.concatenate([[0.0], np.cumsum(p)]), 1.0)
    return np.diff(generating(law, ends))


def hockey_stick(p: np.ndarray, q: np.ndarray, eps: float) -> float:
    return float(np.sum(np.maximum(p - math.exp(eps) * q, 0.0)))


@each_law
def test_the_mean_and_the_chance_to_be_missed_are_those_of_the_law(law):
    p = chances(law)
    assert math.isclose(float(np.dot(p, np.arange(p.size))), law.mean, rel_tol=1e-6)
    for share in (0.01, 0.05, 0.5, 1.0):
        assert math.isclose(
            law.miss_chance(share), float(generating(law, np.array([1 - share]))[0]), rel_tol=1e-6, abs_tol=1e-12
        )
    y = np.linspace(0.0, 0.9, 7)
    k = np.arange(p.size)
    slopes = [np.sum(p * k * np.power(1 - v, np.maximum(k - 1, 0))) for v in y]
    np.testing.assert_allclose(law.slope(y) * law.mean, slopes, rtol=1e-6)


PAIRS = [
    ((0.6, 0.4), (0.4, 0.6)),
    ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)),
    ((0.02, 0.48, 0.5, 0.0), (0.0, 0.5, 0.49, 0.01)),
    ((0.1, 0.2, 0.3, 0.4), (0.2, 0.15, 0.35, 0.3)),
    ((0.001, 0.009, 0.49, 0.5), (0.0001, 0.0099, 0.5, 0.49)),
]


@pytest.mark.parametrize("law", [LAWS[1], LAWS[2], LAWS[4]], ids=str)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_no_order_of_the_outcomes_costs_more_than_the_price(law, pair):
    eps = np.array([0.0, 0.1, 0.3, 0.7, 1.5, 3.0])
    loss = L.SelectedLoss(L.FinitePairLoss(*pair), law)
    ahead, back = loss.forward(eps).upper, loss.backward(eps).upper
    for order in itertools.permutations(range(len(pair[0]))):
        here, there = (best_law(law, np.array(side)[list(order)]) for side in pair)
        for i, e in enumerate(eps):
            assert hockey_stick(here, there, e) <= ahead[i] + 1e-9
            assert hockey_stick(there, here, e) <= back[i] + 1e-9


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_no_order_of_random_outcomes_costs_more_than_the_price(data):
    law = data.draw(st.sampled_from(LAWS))
    size = data.draw(st.integers(2, 7))
    weights = st.lists(st.floats(0.001, 1.0), min_size=size, max_size=size).map(np.array)
    here, there = data.draw(weights), data.draw(weights)
    here, there = here / here.sum(), there / there.sum()
    loss = L.SelectedLoss(L.FinitePairLoss(tuple(here), tuple(there)), law)
    order = data.draw(st.permutations(range(size)))
    eps = np.array([data.draw(st.floats(0.0, 4.0))])
    a, b = best_law(law, here[list(order)]), best_law(law, there[list(order)])
    assert hockey_stick(a, b, eps[0]) <= loss.forward(eps).upper[0] + 1e-9
    assert hockey_stick(b, a, eps[0]) <= loss.backward(eps).upper[0] + 1e-9


def worst_ranks(law: RunLaw, mu: float, eps: float) -> float:
    """The best attack of this kind on the best of runs with Gaussian noise: outcomes of large loss in the middle ranks.

    Lowest the losses above y but not above x, then those above x (the attacked event), at the top the small losses.
    """

    def pgf(x):
        return np.log1p(-(1 - law.stop) * x) / math.log(law.stop)

    z = np.linspace(-6, 6, 700)
    t, c = ndtr(z)[None, :], ndtr(z)[:, None]
    less = ndtr(ndtri(t) - mu), ndtr(ndtri(c) - mu)
    here, there = pgf(c) - pgf(np.maximum(c - t, 0.0)), pgf(less[1]) - pgf(np.maximum(less[1] - less[0], 0.0))
    return float(np.max(np.where(c >= t, here - math.exp(eps) * there, 0.0)))


def test_the_price_is_nearly_attained_with_gaussian_noise():
    law = L.NegativeBinomialRuns.of_mean(20.0)
    loss = L.SelectedLoss(L.GaussianLoss(0.3), law)
    for eps, at_least in ((0.0, 0.65), (1.0, 0.7), (1.6, 0.8), (2.0, 0.85)):
        attained, price = worst_ranks(law, 0.3, eps), loss.delta(eps).upper
        assert at_least * price < attained <= price


def test_the_best_run_is_not_as_private_as_one_run():
    """The attack above refutes who charges one run only."""
    law = L.NegativeBinomialRuns.of_mean(20.0)
    assert worst_ranks(law, 0.3, 1.0) > 200 * L.GaussianLoss(0.3).delta(1.0).upper


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0])
@pytest.mark.parametrize(("eps", "delta"), [(0.5, 1e-6), (1.0, 1e-6), (3.0, 1e-5)])
def test_twenty_candidates_cost_at_most_two_and_a_half_runs_and_less_than_the_renyi_price(shape, eps, delta):
    law = L.NegativeBinomialRuns.of_mean(20.0, shape)
    mu = float(sf.calibrate(L.GaussianLoss, epsilon=eps, delta=delta))
    found = float(L.SelectedLoss(L.GaussianLoss(mu), law).epsilon(delta))
    assert found <= 1.7 * eps
    assert found <= renyi_price(law, mu, delta)
    assert found < float((20 * L.GaussianLoss(mu)).epsilon(delta)) / 2.5


def renyi_price(law, mu: float, delta: float) -> float:
    """ε by Papernot & Steinke 2022, Theorem 2, for Gaussian noise: D_a ≤ ρa, in the best of their free orders."""
    rho, free = mu * mu / 2, np.geomspace(1.01, 1e4, 400)
    extra = float(np.min((1 + law.shape) * ((1 - 1 / free) * rho * free + math.log(1 / law.stop) / free)))
    return float(L.from_renyi(lambda a: rho * a + extra + math.log(law.mean) / (a - 1)).epsilon(delta))


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0])
def test_pure_runs_cost_two_plus_shape_times_epsilon_at_most(shape):
    loss = L.SelectedLoss(L.PureLoss(0.3), L.NegativeBinomialRuns.of_mean(400.0, shape))
    assert 0.85 * (2 + shape) * 0.3 < float(loss.epsilon(0.0)) <= (2 + shape) * 0.3 * (1 + 1e-4)


def test_one_run_for_sure_costs_one_run():
    loss = L.SelectedLoss(L.GaussianLoss(0.5), L.NegativeBinomialRuns(1 - 1e-6))
    for eps in (0.0, 0.5, 1.0):
        one = L.GaussianLoss(0.5).delta(eps).upper
        assert one <= loss.delta(eps).upper <= one * 1.02


def test_runs_that_cost_nothing_cost_nothing():
    loss = L.SelectedLoss(L.nothing(), LAWS[1])
    assert loss.delta(0.0).upper <= 1e-9 and loss.delta(0.01).upper == 0.0


def test_the_best_of_composed_runs_is_priced_from_their_composition():
    runs = 5 * L.RandomizedResponseLoss(0.2)
    loss = L.SelectedLoss(runs, L.NegativeBinomialRuns.of_mean(20.0))
    assert float(runs.epsilon(1e-6)) < float(loss.epsilon(1e-6)) < 2 * float(runs.epsilon(1e-6))


def test_two_tunings_add_up():
    one = L.SelectedLoss(L.GaussianLoss(0.3), LAWS[1])
    both = one + L.SelectedLoss(L.PureLoss(0.1), LAWS[2])
    assert float(one.epsilon(1e-6)) < float(both.epsilon(1e-6)) <= float(one.epsilon(1e-6)) + 0.3 + 1e-6


def test_nonsense_is_refused_in_words():
    for wrong in ({"inner": 3, "runs": LAWS[0]}, {"inner": L.PureLoss(1.0), "runs": 20}):
        with pytest.raises(sf.errors.InvalidParameter):
            L.SelectedLoss(**wrong)
    with pytest.raises(sf.errors.InvalidParameter, match="no law of shape"):
        L.NegativeBinomialRuns.of_mean(90_000.0, -0.9)
    for stop, shape in ((0.0, 0.0), (1.0, 0.0), (math.nan, 0.0), (0.5, -1.0), (0.5, 2.0)):
        with pytest.raises(sf.errors.InvalidParameter):
            L.NegativeBinomialRuns(stop, shape)
    with pytest.raises(sf.errors.MixedRelations):
        L.SelectedLoss(L.PureLoss(1.0), LAWS[0], relation=sf.ReplaceOne)
