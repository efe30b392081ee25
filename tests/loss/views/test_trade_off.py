"""Whole curves: δ and the trade-off at many points at once say what they say one by one, and hold closed forms."""

import math
from itertools import product
from statistics import NormalDist

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.loss.views.trade_off import left_end, right_end
from tests import truth
from tests.configurations import Random, magnitude

L = sf.loss
seeds = st.integers(0, 10**6)
LOSSES = [
    L.GaussianLoss(1.0),
    L.LaplaceLoss(0.7),
    L.PureLoss(1.0),
    L.RandomizedResponseLoss(1.0, 3),
    L.ApproxLoss(0.5, 0.01),
    3 * L.PureLoss(1.0),
    L.GaussianLoss(0.5) + L.PureLoss(0.3),
    sf.Poisson(0.1).amplify(L.GaussianLoss(1.0)),
    sf.Poisson(0.1).amplify(L.GaussianLoss(1.0)).add,
]
LONGER = [20 * L.LaplaceLoss(0.1), 50 * sf.Poisson(0.1).amplify(L.GaussianLoss(0.7))]


# ---- closed forms ---------------------------------------------------------------------------------------------------


def gaussian(mu, a):
    """Φ(Φ⁻¹(1 − a) − μ): the threshold x with P[N > x] = a, by Newton on the logarithm."""
    x = mp.findroot(lambda x: mp.log(mp.erfc(x / mp.sqrt(2)) / 2) - mp.log(a), mp.sqrt(2) * mp.erfinv(1 - 2 * a))
    return mp.ncdf(x - mu)


def laplace(eps, a):
    """Three pieces: a test on either side of both centres, or between them."""
    if a < mp.exp(-eps) / 2:
        return 1 - mp.exp(eps) * a
    if a <= mp.mpf(1) / 2:
        return mp.exp(-eps) / (4 * a)
    return mp.exp(-eps) * (1 - a)


def coin(eps, a):
    """Two pieces, from (0, 1) over the corner 1/(1 + e^ε) to (1, 0)."""
    return max(1 - mp.exp(eps) * a, mp.exp(-eps) * (1 - a))


def holds(found, alphas, exact):
    with mp.workdps(40):
        for a, lower, upper in zip(alphas.tolist(), found.lower, found.upper, strict=True):
            value = exact(mp.mpf(a))
            assert mp.mpf(float(lower)) <= value <= mp.mpf(float(upper)), a


def arguments(r, *corners):
    """From tiny to nearly 1, and on both sides of each corner."""
    spread = [magnitude(r, 1e-12, 0.5) for _ in range(12)] + [1 - magnitude(r, 1e-9, 0.5) for _ in range(6)]
    close = [corner * (1 + sign * magnitude(r, 1e-9, 0.1)) for corner in corners for sign in (-1, 1) for _ in range(4)]
    return np.array([a for a in [*spread, *close] if 0 < a < 1])


@settings(max_examples=15)
@given(seed=seeds)
def test_trade_off_curves_hold_their_closed_forms(seed):
    r = Random(f"curves {seed}")
    eps, tolerance = magnitude(r, 0.02, 8), magnitude(r, 1e-6, 0.3)
    for loss, exact, corners in (
        (L.GaussianLoss(eps), lambda a: gaussian(mp.mpf(eps), a), ()),
        (L.LaplaceLoss(eps), lambda a: laplace(mp.mpf(eps), a), (math.exp(-eps) / 2, 0.5)),
        (L.PureLoss(eps), lambda a: coin(mp.mpf(eps), a), (1 / (1 + math.exp(eps)),)),
    ):
        alphas = arguments(r, *corners)
        holds(loss.trade_off(alphas, tolerance=tolerance), alphas, exact)


@settings(max_examples=15)
@given(seed=seeds)
def test_profiles_of_arrays_hold_their_closed_forms(seed):
    r = Random(f"profiles {seed}")
    eps = magnitude(r, 0.02, 8)
    points = np.array([0.0, *(eps * r.uniform(0, 2) for _ in range(10)), eps, 5e2])
    for loss, curve in ((L.GaussianLoss(eps), truth.gaussian(eps)), (L.LaplaceLoss(eps), truth.laplace(eps))):
        found = loss.delta(points)
        for t, lower, upper in zip(points.tolist(), found.lower, found.upper, strict=True):
            exact = truth.settled(lambda t=t, curve=curve: curve(mp.mpf(t)))
            assert mp.mpf(float(lower)) <= exact <= mp.mpf(float(upper))


# ---- one by one -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*LOSSES, *LONGER], ids=str)
def test_a_trade_off_curve_overlaps_the_single_answers(loss):
    alphas = np.array([1e-6, 0.1, 0.5, 0.9])
    found = loss.trade_off(alphas, tolerance=1e-3)
    assert np.all(found.lower <= found.upper)
    for a, lower, upper in zip(alphas.tolist(), found.lower, found.upper, strict=True):
        one = loss.trade_off(a, tolerance=1e-3)
        assert lower <= one.upper, a
        assert one.lower <= upper, a
        assert upper - lower <= max(2e-3 * upper, 2 * one.gap, 1e-12), a


@pytest.mark.parametrize("loss", [*LOSSES, *LONGER], ids=str)
def test_a_profile_overlaps_the_single_answers(loss):
    points = np.array([0.0, 0.05, 0.3, 0.7, 1.0, 2.5, 40.0, math.inf])
    found = loss.delta(points, tolerance=1e-4)
    assert np.all(found.lower <= found.upper)
    for t, lower, upper in zip(points.tolist(), found.lower, found.upper, strict=True):
        one = loss.delta(t, tolerance=1e-4)
        assert lower <= one.upper, t
        assert one.lower <= upper, t


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_order_and_repetition_do_not_matter(loss):
    """An unsorted array with repetitions: every entry still belongs to its argument."""
    mixed, order = np.array([0.3, 0.05, 0.9, 0.05, 0.3, 1e-4]), np.array([1e-4, 0.05, 0.3, 0.9])
    for ask in (loss.trade_off, loss.delta):
        found, rising = ask(mixed), ask(order)
        at = np.searchsorted(order, mixed)
        assert np.all(found.lower <= rising.upper[at])
        assert np.all(rising.lower[at] <= found.upper)
        assert found.lower[0] <= found.upper[4]
        assert found.lower[4] <= found.upper[0]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_curves_have_the_shape_they_must(loss):
    """Both fall, f(a) ≤ 1 − a, and neither side contradicts that."""
    alphas = np.linspace(0.0, 1.0, 21)
    f, profile = loss.trade_off(alphas, tolerance=1e-3), loss.delta(np.linspace(0, 5, 21), tolerance=1e-3)
    assert np.all(f.lower[1:] <= f.upper[:-1])
    assert np.all(profile.lower[1:] <= profile.upper[:-1])
    assert np.all(f.lower <= 1 - alphas)
    assert np.all((f.lower[:-2] + f.upper[2:]) / 2 >= f.lower[1:-1] - 1e-3)


# ---- ends and bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_ends_of_a_trade_off_curve(loss):
    """f(0) = 1 − leak, f(1) = 0."""
    leak = max(loss.leak())
    found = loss.trade_off(np.array([1.0, 0.0, 0.5]))
    assert found.lower[0] == 0
    assert found.upper[0] <= 1e-12
    assert found.lower[1] <= 1 - leak <= found.upper[1] + 1e-15
    assert found.lower[1] >= 1 - leak - 1e-3
    one, none = loss.trade_off(1.0), loss.trade_off(0.0)
    assert one.lower == 0
    assert one.upper <= 1e-12
    assert none.lower <= found.upper[1]
    assert found.lower[1] <= none.upper


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_empty_arrays_have_empty_answers(loss):
    for ask in (loss.trade_off, loss.delta):
        found = ask(np.array([]))
        assert len(found.lower) == len(found.upper) == 0


def test_lists_and_whole_numbers_will_do():
    loss = L.LaplaceLoss(1.0)
    assert loss.delta([0, 1]).upper[1] == loss.delta(1).upper
    assert np.array_equal(loss.trade_off([0.25, 0.5]).upper, loss.trade_off(np.array([0.25, 0.5])).upper)


@pytest.mark.parametrize("wrong", [[-0.1], [0.5, math.nan], [0.1, 1.1], ["a"], [None], [1j]], ids=str)
def test_levels_are_probabilities(wrong):
    with pytest.raises(InvalidParameter):
        L.LaplaceLoss(1.0).trade_off(wrong)


@pytest.mark.parametrize("wrong", [[-0.1], [0.5, math.nan], [-math.inf], ["a"], [None], [1j], [True]], ids=str)
def test_epsilons_are_numbers_from_zero_on(wrong):
    with pytest.raises(InvalidParameter):
        L.LaplaceLoss(1.0).delta(wrong)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1e-3, math.nan])
def test_curves_check_their_tolerance(tolerance):
    for ask in (L.LaplaceLoss(1.0).delta, L.LaplaceLoss(1.0).trade_off):
        with pytest.raises(InvalidParameter):
            ask(np.array([0.1]), tolerance=tolerance)


# ---- what once went wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [L.PureLoss(1.0), L.RandomizedResponseLoss(1.0, 3), 3 * L.PureLoss(1.0)], ids=str)
def test_a_curve_of_an_atomic_law_overlaps_the_single_answers(loss):
    """Three points that touch a kink from one side prove nothing about the other."""
    alphas = np.array([0.01, 0.1, 0.2])
    found = loss.trade_off(alphas)
    assert np.all(found.lower <= found.upper)
    for a, lower, upper in zip(alphas.tolist(), found.lower, found.upper, strict=True):
        one = loss.trade_off(a)
        assert lower <= one.upper
        assert one.lower <= upper


def test_a_profile_of_bounded_losses_below_and_beyond_their_top():
    loss = 20 * L.LaplaceLoss(0.1)
    found = loss.delta(np.linspace(0, 5, 21), tolerance=1e-3)
    assert np.all(found.lower <= found.upper)
    assert np.all(found.upper[9:] == 0)  # from ε = 2.25 on nothing is left


@pytest.mark.parametrize("look", [L.LaplaceLoss(1.0).trade_off, L.LaplaceLoss(1.0).delta], ids=["alpha", "epsilon"])
def test_a_ragged_list_is_bad_input(look):
    with pytest.raises(InvalidParameter):
        look([[0.1], [0.2, 0.3]])


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("a", [1e-6, 0.01, 0.5, 0.99, 1 - 1e-6])
def test_the_stretch_that_is_searched_holds_the_best_test(mu, a):
    """N(μ, 1) against N(0, 1): a test with false alarms a cuts where the loss is μ·Φ⁻¹(1 − a) − μ²/2."""
    loss, cut = L.GaussianLoss(mu), mu * NormalDist().inv_cdf(1 - a) - mu * mu / 2
    assert -left_end(loss, 1 - a) <= cut <= right_end(loss, a)


def test_a_trade_off_of_many_steps_agrees_with_the_profile():
    """f(a) = max over ε of 1 − δ(ε) − e^ε·a: every ε gives a lower bound of it, and none is above the upper side."""
    loss = 14_062 * sf.Poisson(256 / 60_000).amplify(L.GaussianLoss(1 / 2.2644))
    for a in (1e-6, 0.01, 0.3):
        found, eps = loss.trade_off(a), np.linspace(0.0, 1.5, 301)
        profile = loss.delta(eps)
        best = (1 - profile.upper - np.exp(eps) * a).max()
        assert best <= found.upper and found.gap <= 1e-4 * found.upper
        assert found.lower <= 1 - a


def test_without_false_alarms_only_certainty_tells():
    for loss, leak in ((L.GaussianLoss(100.0), 0.0), (L.ApproxLoss(0.5, 1e-3), 1e-3), (10 * L.LaplaceLoss(0.3), 0.0)):
        assert loss.trade_off(0.0).lower <= 1 - leak <= loss.trade_off(0.0).upper
        assert loss.trade_off(0.0).gap < 1e-12
        assert (loss.trade_off(1.0).lower, loss.trade_off(1.0).upper) == (0.0, 0.0)


def test_sums_of_coins_hold_the_trade_off_of_all_outcomes():
    """Neyman and Pearson: outcomes in the order of their likelihood ratio, the last one by a further coin."""
    sizes = (0.5, 0.3, 0.123)
    loss = sum((L.PureLoss(eps) for eps in sizes), L.nothing())
    ps = [1 / (1 + math.exp(-eps)) for eps in sizes]
    law = [(math.prod(path), math.prod(1 - p for p in path)) for path in product(*((p, 1 - p) for p in ps))]
    law.sort(key=lambda pair: pair[1] / pair[0])
    p, q = (np.append(0.0, np.cumsum(side)) for side in zip(*law, strict=True))
    for a in (1e-4, 0.05, 0.3, 0.77):
        found, truth = loss.trade_off(a), 1 - float(np.interp(a, q, p))
        assert found.lower - 1e-12 <= truth <= found.upper + 1e-12
        assert found.gap < 2e-5 * truth
