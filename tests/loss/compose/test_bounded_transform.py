"""Sampled losses on an interval: the transform and its certificates against 40 digits, compositions against lists."""

import math
from dataclasses import replace
from itertools import product

import mpmath as mp
import numpy as np
import pytest

import sfumato.loss as L  # noqa: N812
from sfumato.loss.compose.binomial import Binomial
from sfumato.loss.compose.choose_engine import engine
from sfumato.loss.compose.contour import Composition
from sfumato.loss.compose.contour_engine import ContourEngine
from sfumato.loss.compose.transforms.bounded import POINT, SIZES, WEIGHT, gauss
from sfumato.loss.numeric import ULP
from sfumato.sampling import Poisson

LOSSES = [L.LaplaceLoss(0.3), L.LaplaceLoss(2.5), L.BoundedRangeLoss(1.2), L.PureLoss(0.7), L.LaplaceLoss(1e-4)]


def moment(loss, rate, sign, z):
    """E_Q[G^s] with mpmath, from the definition of each loss."""
    eps, q = mp.mpf(loss.eps), mp.mpf(rate)
    s = z + 1 if sign > 0 else -z
    g = lambda x: (1 - q + q * mp.e**x) ** s  # noqa: E731
    if isinstance(loss, L.PureLoss):
        return (mp.e**-eps * g(eps) + g(-eps)) / (1 + mp.e**-eps)
    if isinstance(loss, L.LaplaceLoss):
        return (mp.e**-eps * g(eps) + g(-eps)) / 2 + mp.quad(
            lambda x: mp.e ** (-(x + eps) / 2) * g(x) / 4, [-eps, 0, eps]
        )
    return mp.quad(lambda x: mp.e ** (-(x + eps) / 2) * g(x), [-eps, 0, eps]) / (2 * (1 - mp.e**-eps))


@pytest.mark.parametrize("size", SIZES)
def test_points_and_weights_are_those_of_gauss(size):
    x, w = gauss(size)
    with mp.workdps(40):
        for point, weight in zip(x[: size // 2].tolist(), w[: size // 2].tolist(), strict=True):
            root = mp.findroot(lambda t: mp.legendre(size, t), mp.mpf(point), tol=1e-35, verify=False)
            slope = size * (root * mp.legendre(size, root) - mp.legendre(size - 1, root)) / (root**2 - 1)
            true = 2 / ((1 - root**2) * slope**2)
            assert abs(root - point) <= POINT
            assert abs(true - weight) <= WEIGHT * true


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("rate", [0.01, 0.6])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_transform_holds_the_moment_and_every_disc(loss, rate, sign):
    for theta, count in ((0.3, 1), (7.0, 5), (40.0, 10**6)):
        term = replace(loss.bounded_transform(), rate=rate, sign=sign).times(count)
        view = term.tilt(theta)
        step = 2.0**-3 / (count**0.5 * view.length)
        omega = step * np.array([0, 1, 2, 5, 11])
        discs = view.discs(omega)
        with mp.workdps(40):
            true = moment(loss, rate, sign, mp.mpf(theta))
            assert abs(count * mp.log(true) - mp.mpf(view.log_moment)) <= view.slip * (1 + 1e-9)
            for w, log, radius in zip(omega.tolist(), discs.log.tolist(), discs.radius.tolist(), strict=True):
                phi = moment(loss, rate, sign, mp.mpc(theta, w)) / true
                whole = mp.e ** (count * mp.log(phi) - mp.mpc(0, 1) * mp.mpf(w) * mp.mpf(view.centre))
                # phases are measured from the centre, which Contour widens by 4 ulps of the drift
                slack = 4 * ULP * w * view.drift + 1e-30
                assert abs(whole - mp.e ** mp.mpc(log)) <= radius + slack


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("rate", [0.05, 1.0])
@pytest.mark.parametrize("theta", [0.5, 12.0])
def test_no_later_value_exceeds_a_ceiling(loss, rate, theta):
    view = replace(loss.bounded_transform(), rate=rate).tilt(theta)
    omega = np.geomspace(0.01, 300.0, 200) / view.length
    log_ceiling = view.log_ceiling(omega)
    assert np.all(np.diff(log_ceiling) <= 1e-15)
    with mp.workdps(20):
        true = moment(loss, rate, 1, mp.mpf(theta))
        for i in range(0, 200, 18):
            phi = abs(moment(loss, rate, 1, mp.mpc(theta, float(omega[i])))) / true
            assert mp.log(phi) <= log_ceiling[i] + 1e-12


@pytest.mark.parametrize(("eps", "count"), [(1e-5, 10**9), (1e-3, 10**6), (0.05, 1000)])
def test_coins_on_this_contour_agree_with_the_binomial_sum(eps, count):
    loss = L.PureLoss(eps)
    composition = Composition([loss.bounded_transform().times(count)], 0.0, 0.0)
    found = ContourEngine(composition, count * eps, Binomial(eps, count, 0.0), lambda: 0.0).least(1e-6, 1e-5)
    true = (count * loss).epsilon(1e-6)
    assert true.method == "closed form"
    assert found is not None
    assert found.lower <= true.upper
    assert found.upper >= true.lower
    assert found.gap <= 1e-4 * found.upper


@pytest.mark.parametrize("count", [10**11, 10**12])
def test_very_many_coins_are_nearly_a_gaussian(count):
    """√k·ε = 0.1: within 1e-4 of the Gaussian with that μ, since their third moments vanish like ε."""
    loss = count * L.PureLoss(0.1 / math.sqrt(count))
    found, bell = loss.epsilon(1e-6), L.GaussianLoss(0.1).epsilon(1e-6)
    assert found.gap <= 1e-3 * found.upper
    assert found.lower == pytest.approx(bell.lower, rel=1e-4)
    assert found.upper == pytest.approx(bell.upper, rel=1e-4)


@pytest.mark.parametrize(("eps", "rate", "count"), [(1.2, 0.3, 6), (0.4, 0.05, 8), (3.0, 0.6, 4)])
def test_sampled_coins_are_told_as_by_listing_all_outcomes(eps, rate, count):
    loss = count * Poisson(rate).amplify(L.PureLoss(eps))
    with mp.workdps(40):
        p = 1 / (1 + mp.e ** (-mp.mpf(eps)))
        q = mp.mpf(rate)
        step = [((1 - q) * b + q * a, b) for a, b in ((p, 1 - p), (1 - p, p))]
        law = [(mp.fprod(a for a, _ in path), mp.fprod(b for _, b in path)) for path in product(step, repeat=count)]
        t = np.linspace(0.0, 0.8 * loss.supremum()[0], 7)
        for found, pairs in ((loss.forward(t), law), (loss.backward(t), [(b, a) for a, b in law])):
            for x, low, high in zip(t.tolist(), *(side.tolist() for side in found), strict=True):
                true = mp.fsum(max(a - mp.e ** mp.mpf(x) * b, 0) for a, b in pairs)
                assert low <= true * (1 + mp.mpf("1e-30")) <= high * (1 + mp.mpf("1e-30"))


@pytest.mark.parametrize("inner", [L.LaplaceLoss(0.3), L.BoundedRangeLoss(0.8)], ids=str)
def test_the_contour_agrees_with_the_lattice(inner):
    loss = 200 * Poisson(0.1).amplify(inner)
    found = engine(loss)
    assert isinstance(found, ContourEngine)
    t = np.linspace(0.0, 2.0, 9)
    for direction in (loss, loss.reverse):
        here, there = engine(direction).forward(t), engine(direction).otherwise.forward(t)
        assert np.all(here.lower <= there.upper)
        assert np.all(here.upper >= there.lower)
