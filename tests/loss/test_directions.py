"""Which way losses round: leaks, largest losses and repeated costs against exact rationals."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.loss import ApproxLoss, FinitePairLoss, GaussianLoss, LaplaceLoss, PureLoss, RenyiLoss, ZcdpLoss
from sfumato.loss.kinds.gated import GatedLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.loss.kinds.subsampled import mixed_top
from sfumato.loss.views.zcdp import cell_roof
from sfumato.sensitivity import Sensitivity

rates = st.one_of(st.floats(1e-6, 1.0, exclude_max=True), st.sampled_from([0.1, 0.3, 1 / 3, 2**-10]))
deltas = st.one_of(st.floats(1e-300, 0.9), st.sampled_from([1e-6, 1e-9, 0.1, 2**-20, 5e-324]))
counts = st.integers(1, 6)
moderate = st.one_of(st.floats(1e-90, 1e90), st.sampled_from([1.0, 0.1, 3e7, 2.0**60]))
sizes = st.one_of(st.floats(1e-100, 1e100), st.sampled_from([1.0, 0.1, 94906267.0, 3e7, 2.0**60]))


def leak(loss):
    return max(loss.leak())


# ---- what leaks -----------------------------------------------------------------------------------------------------


def test_a_sampled_leak_is_not_rounded_into_the_budget():
    loss = sf.Poisson(0.1).amplify(ApproxLoss(1.0, 1e-6))
    assert Fraction(0.1) * Fraction(1e-6) > Fraction(1e-7)
    assert loss.epsilon(1e-7).upper == math.inf
    assert loss.epsilon(math.nextafter(1e-7, 1)).upper < 0.16


@given(rates, deltas)
def test_a_leak_under_poisson_sampling_is_the_product_rounded_up(rate, delta):
    loss = sf.Poisson(rate).amplify(ApproxLoss(1.0, delta))
    exact, found = Fraction(rate) * Fraction(delta), leak(loss)
    assert Fraction(math.nextafter(found, 0.0)) < exact <= Fraction(found)
    assert loss.epsilon(found).upper < math.inf
    if Fraction(rate * delta) < exact:
        assert loss.epsilon(rate * delta).upper == math.inf


@given(st.integers(2, 10**9), st.data(), deltas)
def test_a_leak_without_replacement_is_the_product_rounded_up(n, data, delta):
    m = data.draw(st.integers(1, n - 1))
    loss = sf.sampling.WithoutReplacement(n, m).amplify(ApproxLoss(1.0, delta, relation=sf.ReplaceOne))
    exact, found = Fraction(m, n) * Fraction(delta), leak(loss)
    assert Fraction(math.nextafter(found, 0.0)) < exact <= Fraction(found)
    if Fraction(m / n * delta) < exact:
        assert loss.epsilon(m / n * delta).upper == math.inf


@given(st.lists(st.tuples(counts, deltas), min_size=1, max_size=3))
def test_repeated_leaks_are_never_below_one_minus_the_product(parts):
    loss = sum((k * ApproxLoss(0.5, delta) for k, delta in parts[1:]), parts[0][0] * ApproxLoss(0.5, parts[0][1]))
    exact = 1 - math.prod((1 - Fraction(delta)) ** k for k, delta in parts)
    assert Fraction(math.nextafter(leak(loss), 0.0)) < exact <= Fraction(leak(loss))


@given(deltas, deltas, rates)
def test_nested_leaks_are_never_below_and_no_more_than_a_rounding_above(outer, inner, rate):
    inside = sf.Poisson(rate).amplify(ApproxLoss(0.5, inner))
    exact = Fraction(outer) + (1 - Fraction(outer)) * Fraction(leak(inside))
    found = leak(LeakyLoss(inside, outer))
    assert Fraction(math.nextafter(found, 0.0)) < exact <= Fraction(found)


@given(deltas)
def test_a_leak_that_was_stated_is_the_leak(delta):
    """ε is finite at the very δ that was stated, and infinite below it."""
    gated = GatedLoss(PureLoss(0.5), (delta, 0.5), (1 - delta, 0.5), delta)
    listed = FinitePairLoss((delta, 1 - delta), (0.0, 1.0)) if 1 - delta < 1 else ApproxLoss(0.0, delta)
    for loss in (
        ApproxLoss(0.5, delta),
        LeakyLoss(PureLoss(0.5), delta),
        LeakyLoss(2 * LaplaceLoss(0.5), delta),
        gated,
    ):
        assert leak(loss) == delta
        assert loss.epsilon(delta).upper < math.inf
        assert loss.epsilon(math.nextafter(delta, 0.0)).upper == math.inf
    whole = Fraction(delta) + Fraction(1 - delta)
    assert Fraction(leak(listed)) >= Fraction(delta) / whole
    assert leak(listed) <= math.nextafter(delta, 1.0)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6).filter(lambda row: sum(row) > 0))
def test_what_a_listed_pair_leaks_is_rounded_up(row):
    p = [x / math.fsum(row) for x in row]
    q = [0.0, *p[1:-1], p[0] + p[-1]]
    loss = FinitePairLoss(tuple(p), tuple(q))
    zero = [i for i, x in enumerate(q) if x == 0]
    exact = sum((Fraction(p[i]) for i in zero), Fraction(0)) / sum(map(Fraction, p))
    assert exact <= Fraction(loss.leak()[0]) <= exact + Fraction(1, 10**15)


def test_many_small_leaks_are_compared_with_many_digits():
    with mpmath.workdps(400):
        for count, delta in ((10**9, 1e-16), (10**15, 1e-300), (10**15, 1e-17), (12345, 3e-5)):
            exact = 1 - (1 - mpmath.mpf(delta)) ** count
            found = mpmath.mpf(leak(count * ApproxLoss(1e-9, delta)))
            assert exact <= found <= exact * (1 + mpmath.mpf(2) ** -52)


# ---- largest losses -------------------------------------------------------------------------------------------------


@given(
    st.one_of(st.floats(1e-3, 699.0), st.floats(700.0, 1e6)), st.one_of(rates, st.sampled_from([1e-13, 1e-200, 1e-100]))
)
def test_the_largest_sampled_loss_is_never_below(top, rate):
    """Also where log(rate) takes nearly all of it away."""
    with mpmath.workdps(300):
        exact = mpmath.log(1 + mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(top)))
        assert exact <= mixed_top(top, rate) <= exact * (1 + mpmath.mpf("1e-9"))


@given(counts, st.floats(1e-9, 1e9))
def test_a_group_costs_the_product_rounded_up(k, size):
    exact = k * Fraction(size)
    for loss in (LaplaceLoss(size).group(k).eps, GaussianLoss(size).group(k).mu, ZcdpLoss(0.0, size).group(k).xi):
        assert Fraction(math.nextafter(loss, 0.0)) < exact <= Fraction(loss)


@given(counts, st.lists(st.floats(1e-9, 1e9), min_size=3, max_size=3).map(sorted))
def test_repeated_curves_are_rounded_up(k, divergences):
    curve = RenyiLoss((1.5, 2.0, 30.0), tuple(divergences)).renyi_curve().times(k)
    assert all(Fraction(found) >= k * Fraction(d) for found, d in zip(curve.divergences, divergences, strict=True))


@given(st.floats(1e-6, 1e3), st.floats(1e-9, 1e3), st.floats(1.001, 10.0), st.floats(1.0, 10.0))
def test_a_cell_of_a_renyi_curve_is_never_below_its_chord(a, at_a, wider, steeper):
    b, at_b = a * wider, at_a * wider * steeper  # convex, and 0 at 0
    found = cell_roof(a, at_a, b, at_b)
    slope = (Fraction(at_b) - Fraction(at_a)) / (Fraction(b) - Fraction(a))
    for i in range(33):
        s = Fraction(a) + (Fraction(b) - Fraction(a)) * i / 32
        assert (Fraction(at_a) + slope * (s - Fraction(a))) / (s * (s + 1)) <= Fraction(found)


# ---- zCDP without a slope -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("xi", [1e-3, 0.5, 3.0])
def test_zcdp_without_a_slope_is_pure(xi):
    """D_a ≤ ξ at every order is D_∞ ≤ ξ."""
    zcdp, pure, eps = ZcdpLoss(rho=0.0, xi=xi), PureLoss(xi), np.linspace(0, 1.2 * xi, 25)
    assert np.all(zcdp.worst(eps).upper <= pure.worst(eps).upper)
    for delta in (0.0, 1e-9, 1e-3):
        assert zcdp.epsilon(delta).upper <= pure.epsilon(delta).upper
        assert (7 * zcdp).epsilon(delta).upper <= (7 * pure).epsilon(delta).upper
    assert zcdp.zcdp().upper <= pure.zcdp().upper
    assert zcdp.renyi(2.0).upper <= pure.renyi(2.0).upper
    assert zcdp.group(3).epsilon(1e-9).upper <= 3 * xi * (1 + 1e-12)
    assert (zcdp + GaussianLoss(1.0)).epsilon(1e-6).upper <= (pure + GaussianLoss(1.0)).epsilon(1e-6).upper * (1 + 1e-6)
    sampled = [sf.Poisson(0.01).amplify(loss).epsilon(1e-9).upper for loss in (zcdp, pure)]
    assert sampled[0] <= sampled[1] * (1 + 1e-6)


# ---- sensitivities --------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**9), sizes)
def test_norms_that_follow_from_others_are_rounded_up_and_no_further(l0, linf):
    found, one = Sensitivity(l0=l0, linf=linf), Fraction(linf)
    assert Fraction(math.nextafter(found.l1, 0.0)) < l0 * one <= Fraction(found.l1)
    assert l0 * one**2 <= Fraction(found.l2) ** 2 <= l0 * one**2 * (1 + Fraction(1, 10**15))


@given(moderate, moderate, st.integers(1, 1000))
def test_rounding_to_a_lattice_adds_to_every_norm_rounded_up(size, step, coordinates):
    found, one, g = Sensitivity.of(size).rounded(step, coordinates), Fraction(size), Fraction(step)
    assert Fraction(found.linf) >= one + g
    assert Fraction(found.l1) >= min(one + coordinates * g, coordinates * (one + g))
    grown = Fraction(found.l2) - one
    assert grown**2 >= coordinates * g**2 or Fraction(found.l2) ** 2 >= coordinates * (one + g) ** 2


@given(sizes.filter(lambda x: 1e-12 < x < 1e12), st.floats(1e-3, 1e6))
def test_noise_is_priced_at_the_quotient_rounded_up(size, scale):
    exact = Fraction(size) / Fraction(scale)
    for loss in (sf.Gaussian(scale).loss(size).mu, sf.Laplace(scale).loss(size).eps):
        assert Fraction(math.nextafter(loss, 0.0)) < exact <= Fraction(loss)


@given(sizes.filter(lambda x: 1e-2 < x < 1e9), st.floats(1e-6, 9.0))
def test_noise_made_for_a_price_is_never_less_than_it_must_be(size, eps):
    assert Fraction(sf.Laplace.of(eps, size).scale) * Fraction(eps) >= Fraction(size)
    whole = math.ceil(Fraction(size))
    noise = sf.DiscreteLaplace.of(eps, size)
    assert Fraction(noise.scale) * Fraction(eps) >= whole
    assert noise.loss(size).supremum()[0] <= eps
