"""The price of noise at a data-dependent scale: against closed forms, plain integration, published numbers and bars."""

import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest

import sfumato as sf
from sfumato import dependent as dep
from sfumato.loss.describe import from_json
from sfumato.mechanisms.dependent.shifted_pairs import directions, term_of_p, term_of_q
from sfumato.mechanisms.dependent.student_cauchy import largest_losses
from tests.mechanisms.dependent.families import EVERY, ORACLE

every = pytest.mark.parametrize(("noise", "shift", "dilation"), EVERY, ids=str)


def near(found, truth, rel=1e-5):
    """The truth, given to 14 digits or so, is inside and the two sides are close."""
    low, high = found
    return low * (1 - 1e-13) - 1e-18 <= truth <= high * (1 + 1e-13) + 1e-18 and high - low <= rel * high + 1e-12


# ---- single pairs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ORACLE["student_hockey_stick"]["values"], ids=str)
def test_student_profiles_hold_the_closed_form(row):
    ways = directions(dep.StudentNoise(row["d"]), float(row["u"]), float(row["l"]))
    for way, key in zip(ways, ("forward", "reverse"), strict=True):
        found = way.profile(np.array([float(row["eps"])]))
        assert near((found.lower[0], found.upper[0]), float(row[key]), 3e-4)


@pytest.mark.parametrize("row", ORACLE["student_mgf"]["values"], ids=str)
def test_student_moments_hold_rigorous_quadrature(row):
    """E_P e^{−2L} is the first moment of the reversed pair."""
    ahead, back = directions(dep.StudentNoise(row["d"]), float(row["u"]), float(row["l"]))
    z = float(row["z"])
    found = ahead.log_moment(z) if z > 0 else back.log_moment(-z - 1)
    assert near(found, math.log(float(row["M"])), 3e-5)


@pytest.mark.parametrize("row", ORACLE["student_pure_eps"]["values"], ids=str)
def test_largest_losses_of_student_noise_are_eigenvalues(row):
    d, t, s = row["d"], float(row["t"]), float(row["s"])
    closed = largest_losses(d, t, s)
    assert closed == pytest.approx((float(row["forward"]), float(row["reverse"])), rel=1e-14)
    for way, truth in zip(directions(dep.StudentNoise(d), s, t), closed, strict=True):
        assert truth <= way.top <= truth * (1 + 1e-8)
    assert directions(dep.StudentNoise(d), s, 0.0)[0].top == pytest.approx(float(row["same_scale"]), rel=1e-8)


@every
def test_profiles_and_moments_hold_plain_integration(noise, shift, dilation):
    """A trapezoid sum with many points, on which nothing else here depends."""
    x = np.linspace(-1, 1, 8001 if noise.grain > 1 else 100_001)
    z = np.sinh(12 * x) * 1e3 / math.sinh(12) * 40
    width = np.gradient(z)
    log_p = noise.log_density(np.abs(z))
    log_q = noise.log_density(np.abs(z - shift) * math.exp(-dilation)) - dilation
    for way, a, b in zip(directions(noise, shift, dilation), (log_p, log_q), (log_q, log_p), strict=True):
        for eps in (0.0, 0.02, 0.1, 0.4):
            truth = float((np.maximum(np.exp(a) - np.exp(eps + b), 0) * width).sum())
            found = way.profile(np.array([eps]))
            assert found.lower[0] - 3e-6 <= truth <= found.upper[0] + 3e-6
            assert found.upper[0] - found.lower[0] <= 2e-5 * noise.grain
        for s in (-0.5, 1.0, 2.5):
            truth = float((np.exp((1 + s) * a - s * b) * width).sum())
            low, high = way.log_moment(s)
            assert low - 1e-4 <= math.log(truth) <= high + 1e-4


@pytest.mark.parametrize(("noise", "shift", "dilation"), [case for case in EVERY if case[0].grain == 1], ids=str)
def test_a_larger_shift_costs_more(noise, shift, dilation):
    """Lemma 1, and that a coarser grain is no less certain."""
    eps = np.linspace(0, 1, 9)
    small, large = (directions(noise, s, dilation, 4.0) for s in (0.6 * shift, shift))
    for one, two in zip(small, large, strict=True):
        assert np.all(one.profile(eps).lower <= two.profile(eps).upper)
    fine = directions(noise, shift, dilation)
    for one, two in zip(fine, large, strict=True):
        assert np.all(one.profile(eps).lower <= two.profile(eps).upper)
        assert np.all(two.profile(eps).lower <= one.profile(eps).upper)


def test_without_dilation_light_noise_is_what_it_always_was():
    eps = np.linspace(0, 1.5, 31)
    for loss, known in (
        (dep.SmoothLoss(dep.GaussianNoise(), 0.5, 0.0), sf.loss.GaussianLoss(0.5)),
        (dep.SmoothLoss(dep.LaplaceNoise(), 0.5, 0.0), sf.loss.LaplaceLoss(0.5)),
    ):
        found, truth = loss.delta(eps), known.delta(eps)
        assert np.all(found.lower <= truth.upper) and np.all(truth.lower <= found.upper)
        assert np.all(found.upper - found.lower <= 1e-5)


# ---- the envelope ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ORACLE["noise_pure_dp"]["box_grid"]["values"], ids=lambda row: row["name"])
def test_pure_epsilon_over_the_reachable_pairs(row):
    """The search on a grid of the older numbers finds no more, and nearly as much."""
    noise = {"c": dep.CauchyNoise(2), "g": dep.CauchyNoise(4), "T": dep.StudentNoise(3)}[row["name"][0]]
    loss = dep.SmoothLoss(noise, row["s"], row["t"], 4)
    assert row["tight"][0] - 1e-9 <= max(loss.supremum()) <= row["tight"][0] * (1 + 1e-7)
    assert loss.epsilon(0.0).upper == max(loss.supremum()) and loss.delta(row["wide"][0]).upper == 0


def test_more_rungs_cost_no_more_where_the_ends_bind_and_never_less():
    eps = np.linspace(0, 2, 21)
    one, four = (dep.SmoothLoss(dep.StudentNoise(6), 0.69, 0.2, r).delta(eps) for r in (1, 4))
    assert np.all(four.upper >= one.upper) and np.all(four.upper <= one.upper * (1 + 1e-4))


@pytest.mark.parametrize("row", [r for r in ORACLE["certified_gaussian_domination"]["values"] if r["d"]], ids=str)
def test_the_price_on_a_gaussian_ledger_is_the_certified_one(row):
    loss = dep.SmoothLoss(dep.StudentNoise(row["d"]), float(row["s_certified"]), float(row["t"]), 4)
    assert loss.gdp(1e-9).upper ** 2 == pytest.approx(float(row["mu2"]), rel=1e-5)


@pytest.mark.parametrize("row", ORACLE["certified_zcdp"]["values"][:6], ids=str)
def test_the_zcdp_slope_is_the_certified_one(row):
    loss = dep.SmoothLoss(dep.StudentNoise(row["d"]), float(row["s_certified"]), float(row["t"]))
    assert loss.zcdp().upper == pytest.approx(float(row["rho"]), rel=3e-3)


@pytest.mark.parametrize(
    ("rho", "t", "sigma", "s"), [(0.5, 0.1, 0.4, 1.078786), (0.5, 0.2, 0.5, 1.109369), (0.05, 0.05, 0.5, 0.33366)]
)
def test_arsinh_normal_noise_has_its_numeric_slope_with_proof(rho, t, sigma, s):
    found = dep.SmoothLoss(dep.ArsinhNormalNoise(sigma), s, t).zcdp()
    assert found.lower <= rho * (1 + 2e-4) and found.upper == pytest.approx(rho, rel=2e-4)


@pytest.mark.parametrize("noise", [dep.ArsinhNormalNoise(0.3), dep.UniformLogNormalNoise(0.3)], ids=str)
def test_the_tail_limit_of_zcdp_binds_where_sigma_is_small(noise):
    """t²/2σ² = 0.5 while the shift costs next to nothing: no finite order reaches the limit, the bound must."""
    rho = dep.SmoothLoss(noise, 0.002, 0.3).zcdp()
    assert 0.5 <= rho.upper <= 0.55


def test_orders_without_limit_are_covered():
    """The bound on orders beyond 1001 is above the curve there."""
    loss = dep.SmoothLoss(dep.ArsinhNormalNoise(0.4), 1.0, 0.2)
    beyond = loss.rho_beyond(1001.0)
    assert 0.2**2 / (2 * 0.4**2) <= beyond <= 0.14
    for order in (1001.0, 3e3, 1e5):
        assert loss.renyi(order).lower / order <= beyond


def test_light_noise_has_a_profile_and_a_price_with_slack_but_no_zcdp():
    loss = dep.SmoothLoss(dep.GaussianNoise(), 0.1, 0.01)
    assert loss.zcdp().upper == math.inf and loss.gdp(0.0).upper == math.inf
    assert 0.1 <= loss.gdp(1e-9).upper <= 0.16
    assert loss.leak()[0] < 1e-44


def test_descriptions_say_which_noise():
    loss = 3 * dep.SmoothLoss(dep.CauchyNoise(4.0), 0.1, 0.1, 2)
    assert from_json(loss.to_json()) == loss
    assert '"part":"CauchyNoise","power":4.0' in loss.to_json()
    assert str(loss).startswith("3 × Smooth(CauchyNoise(power=4), shift=0.1")
    for broken in ('"part":"Nonsense"', '"part":7', '"part":"Noise"'):
        with pytest.raises(sf.errors.UnknownDescription):
            from_json(loss.to_json().replace('"part":"CauchyNoise"', broken))


# ---- bars ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "noise", "shift", "bar"),
    [
        (0.1, dep.StudentNoise(13), 1.0848, 1.01),
        (0.2, dep.ArsinhNormalNoise(0.5), 1.1093, 1.07),
        (0.5, dep.ArsinhNormalNoise(0.8), 1.194, 1.43),
    ],
)
def test_variance_against_a_gaussian_at_the_same_scale_in_zcdp(t, noise, shift, bar):
    assert dep.SmoothLoss(noise, shift, t, 4).zcdp().upper <= 0.5
    assert noise.variance / shift**2 <= bar


@pytest.mark.parametrize(
    ("t", "noise", "shift", "bar"),
    [
        (0.02, dep.StudentNoise(50), 0.70874, 1.04),
        (0.05, dep.StudentNoise(22), 0.70787, 1.10),
        (0.1, dep.ArsinhNormalNoise(0.4), 0.6979, 1.22),
        (0.2, dep.ArsinhNormalNoise(0.6), 0.6954, 1.56),
    ],
)
def test_variance_against_a_gaussian_at_the_same_scale_on_the_ledger(t, noise, shift, bar):
    assert dep.SmoothLoss(noise, shift, t, 4).gdp(1e-9).upper ** 2 <= 0.5
    assert noise.variance / shift**2 * 0.5 <= bar


def test_prices_rise_with_shift_and_dilation():
    prices = [
        dep.SmoothLoss(dep.StudentNoise(8), s, t, 1, 4.0).gdp(1e-9).upper
        for s, t in ((0.3, 0.02), (0.3, 0.1), (0.6, 0.1))
    ]
    assert all(a < b for a, b in pairwise(prices))


@pytest.mark.parametrize("s", [-1 + 2.0**-40, -0.9, -0.5, -0.3, -1e-9, 1e-12, 0.5, 40.0])
def test_terms_of_moments_do_not_cancel(s):
    """Against f(x) = x^{1+s} − (1 + s)x + s in long arithmetic, for losses that are not near 0."""
    with mp.workdps(60):
        for size in (0.01, 0.3, 5.0, 50.0, 2000.0):
            order, L = 1 + mp.mpf(s), mp.mpf(size)
            of_p = mp.exp((order - 1) * L) - order + (order - 1) * mp.exp(-L)
            of_q = mp.exp(-order * L) - order * mp.exp(-L) + order - 1
            assert float(term_of_q(s, np.array([-size]))[0]) == pytest.approx(float(of_q), rel=1e-10)
            if s < 0:
                assert float(term_of_p(s, np.array([size]))[0]) == pytest.approx(float(of_p), rel=1e-10)
