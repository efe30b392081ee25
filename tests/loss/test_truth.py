"""Profiles against independent truth: definitions in 50-digit arithmetic, enumeration, quadrature (tests/truth.py).

The truth must lie within [lower, upper], compared as exact numbers: parameters are floats, and nothing else is
forgiven. A failing example is a seed: configuration(family, seed) rebuilds it.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.loss.compose.lattice import Lattice
from tests import configurations as families
from tests import truth
from tests.configurations import configuration, violations

L = sf.loss
seeds = st.integers(0, 10**6)


def inside(lower, exact, upper):
    """Is the exact number between two floats?"""
    return mp.mpf(float(lower)) <= exact <= mp.mpf(float(upper))


# ---- one mechanism --------------------------------------------------------------------------------------------------


def check(family, seed, tolerance=1e-5):
    case = configuration(family, seed)
    loss = case.loss
    assert not violations(case, [loss.forward(case.eps, tolerance), loss.backward(case.eps, tolerance)])


@settings(max_examples=50)
@given(seed=seeds)
@example(seed=1442)  # μ = 5e16: μ/2 − ε/μ is known only to ±10
def test_gaussian_profiles(seed):
    check(families.one_gaussian, seed)


@settings(max_examples=33)
@given(seed=seeds)
def test_several_gaussians(seed):
    check(families.several_gaussians, seed)


@settings(max_examples=33)
@given(seed=seeds)
def test_laplace_profiles(seed):
    check(families.one_laplace, seed)


@settings(max_examples=12)
@given(seed=seeds)
def test_bounded_range_profiles(seed):
    check(families.one_bounded_range, seed)


@pytest.mark.slow
@settings(max_examples=25)
@given(seed=seeds)
def test_discrete_gaussian_profiles(seed):
    check(families.one_discrete_gaussian, seed)


@settings(max_examples=20)
@given(seed=seeds)
def test_sampled_gaussian_profiles_in_both_directions(seed):
    check(families.one_sampled_gaussian, seed)


@settings(max_examples=100)
@given(seed=seeds)
def test_pairs_with_a_list_of_outcomes(seed):
    """Randomized response, (ε, δ), k-ary, staircase, discrete Laplace, sampled ones, and random pairs."""
    check(families.one_finite, seed)


@pytest.mark.parametrize(
    "loss",
    [
        L.GaussianLoss(0.02),
        L.GaussianLoss(1.0),
        L.GaussianLoss(8.0),
        L.LaplaceLoss(0.1),
        L.DiscreteGaussianLoss(3.0, 2),
        L.DiscreteLaplaceLoss(5.0, 3),
        L.BoundedRangeLoss(1.0),
        L.PureLoss(0.5),
        L.RandomizedResponseLoss(1.0, 5),
        L.ApproxLoss(1.0, 1e-6),
        L.StaircaseLoss(1.0, 0.3),
        L.PoissonSampledLoss(L.GaussianLoss(1.0), 0.01),
        1000 * L.RandomizedResponseLoss(0.1),
        500 * L.ApproxLoss(0.05, 1e-10),
    ],
    ids=str,
)
def test_closed_forms_are_sharp_to_eight_digits(loss):
    top = min(max(loss.supremum()), loss.epsilon(1e-12).upper, 50.0)
    found = loss.delta(np.linspace(0.0, 0.95 * top, 40))
    assert np.all(found.upper - found.lower <= 1e-8 * found.upper)
    for delta in (0.01, 1e-5, 1e-9):
        assert loss.epsilon(delta).relative_gap <= 1e-8


@pytest.mark.parametrize("mu", [1e-3, 0.2, 1.0, 7.0, 100.0])
@pytest.mark.parametrize("delta", [0.3, 1e-6, 1e-12, 1e-30, 1e-100, 1e-250])
def test_the_epsilon_of_a_gaussian_is_where_the_truth_says(mu, delta):
    found = L.GaussianLoss(mu).epsilon(delta)
    curve = truth.gaussian(mu)
    assert truth.settled(lambda: curve(mp.mpf(found.upper))) <= mp.mpf(delta)
    assert found.lower == 0 or truth.settled(lambda: curve(mp.mpf(found.lower))) >= mp.mpf(delta)
    assert found.gap <= 1e-8 * found.upper + 1e-12


# ---- equal mechanisms, exactly --------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=25)
@given(seed=seeds)
def test_equal_coins_are_binomial(seed):
    check(families.equal_coins, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("eps", "k", "t"),
    [
        (0.01, 10**6, 60.0),
        (0.003, 10**6, 25.0),
        (3.0, 10**5, 280_000.0),
        (12.0, 10**6, 11_999_850.0),  # what is left over at each step, 1 − p, is tiny and must keep its digits
        (16.0, 849_154, 13_586_420.0),
        (30.0, 3, 61.0),
        (60.0, 5, 170.0),
        (800.0, 3, 900.0),
    ],
)
def test_many_or_strong_coins_stay_binomial(eps, k, t):
    found = (k * L.PureLoss(eps)).delta(t)
    exact = truth.settled(lambda: truth.equal_coins(eps, k, t))
    assert inside(found.lower, exact, found.upper)
    assert found.relative_gap <= 1e-6


@pytest.mark.slow
@settings(max_examples=6)
@given(seed=seeds)
def test_equal_laplaces_against_the_exact_convolution(seed):
    check(families.equal_laplaces, seed)


@pytest.mark.parametrize(("k", "eps"), [(2, 1.0), (3, 0.4), (12, 0.25), (30, 0.1)])
def test_laplaces_far_out_and_near_the_edge(k, eps):
    loss = k * L.LaplaceLoss(eps)
    points = np.array([0.013, 0.31, 0.7, 0.97]) * k * eps  # between atoms: at one, a lower bound is first order only
    found = loss.delta(points, tolerance=1e-6)
    for t, lower, upper in zip(points, found.lower, found.upper, strict=True):
        assert inside(lower, truth.settled(lambda t=t: truth.equal_laplaces(eps, k, float(t))), upper)
    assert np.all(found.upper - found.lower <= 1e-4 * found.upper)


# ---- different mechanisms together ----------------------------------------------------------------------------------


def thinned(case, count=4):
    """Fewer points: every tilt costs a transform."""
    keep = np.unique(np.linspace(0, len(case.eps) - 1, count).astype(int))
    return families.Configuration(case.family, case.terms, case.exact, case.eps[keep])


@pytest.mark.slow
@settings(max_examples=15)
@given(seed=seeds)
def test_finite_products_by_enumeration_on_the_lattice(seed):
    """The engine itself, also where the sum would have a closed form; one direction per seed."""
    case = thinned(configuration(families.several_finite, seed))
    ahead, back = case.terms, tuple((count, loss.reverse) for count, loss in case.terms)
    way = seed % 2
    found = Lattice(back if way else ahead).forward(case.eps, 1e-4)
    wrong = [
        (float(eps), float(lower), float(upper), mp.nstr(case.both(eps)[way], 20))
        for eps, lower, upper in zip(case.eps, found.lower, found.upper, strict=True)
        if not inside(lower, case.both(eps)[way], upper)
    ]
    assert not wrong, (case.terms, "backward" if way else "forward")


@pytest.mark.slow
@settings(max_examples=8)
@given(seed=seeds)
def test_finite_products_by_enumeration_through_sums(seed):
    case = thinned(configuration(families.several_finite, seed))
    found = case.loss.delta(case.eps, tolerance=1e-4)
    for eps, lower, upper in zip(case.eps, found.lower, found.upper, strict=True):
        assert inside(lower, case.worse(eps), upper), (case.terms, eps)


@pytest.mark.slow
@settings(max_examples=12)
@given(seed=seeds)
def test_a_curve_and_finite_pairs_through_sums(seed):
    """A Gaussian, Laplace, bounded-range or sampled Gaussian loss with coins, staircases, random pairs …"""
    case = thinned(configuration(families.with_finite, seed), 3)
    loss = case.loss
    assert not violations(case, [loss.forward(case.eps, 1e-4), loss.backward(case.eps, 1e-4)])


@settings(max_examples=15)
@given(seed=seeds)
def test_the_epsilon_of_a_product_is_where_the_truth_says(seed):
    case = configuration(families.several_finite, seed)
    goal = float(case.worse(float(case.eps[len(case.eps) // 2])))
    if not 1e-12 < goal < 1:
        return
    found = case.loss.epsilon(goal)
    assert math.isinf(found.upper) or case.worse(found.upper) <= mp.mpf(goal)
    assert found.lower == 0 or math.isinf(found.lower) or case.worse(found.lower) >= mp.mpf(goal)


@pytest.mark.parametrize(
    ("mu", "eps", "t"),
    [(0.5, 0.3, 0.0), (0.5, 0.3, 0.7), (1.0, 2.0, 5.0), (0.1, 0.1, 0.9), (3.0, 0.5, 30.0), (2.0, 1.0, 23.0)],
)
def test_a_gaussian_and_a_laplace_by_quadrature(mu, eps, t):
    found = (L.GaussianLoss(mu) + L.LaplaceLoss(eps)).delta(t)
    with mp.workdps(40):
        exact = truth.gaussian_and_laplace(mu, eps, t)
    assert inside(found.lower, exact, found.upper)
    assert found.relative_gap <= 1e-4


@pytest.mark.parametrize(
    ("rate", "mu", "t"), [(0.1, 1.0, 0.1), (0.1, 1.0, 0.3), (0.5, 0.5, 0.2), (0.01, 2.0, 1.0), (0.3, 1.5, 4.0)]
)
def test_two_sampled_gaussians_by_quadrature(rate, mu, t):
    loss = 2 * sf.Poisson(rate).amplify(L.GaussianLoss(mu))
    with mp.workdps(20):
        exact = truth.sampled_gaussians(rate, mu, mp.mpf(t), 2)
    for direction, value in zip((loss.remove, loss.add), exact, strict=True):
        found = direction.delta(t)
        slack = value * mp.mpf(10) ** -14  # of the quadrature at 20 digits
        assert found.lower <= value + slack
        assert value - slack <= found.upper
        assert found.gap <= 1e-4 * found.upper + 1e-15


def test_three_sampled_gaussians_against_a_double_integral_worked_out_once():
    """truth.sampled_gaussians(0.1, 1.0, 0.3, fold=3) with 15 digits: it takes half a minute, so its answer is kept."""
    loss = 3 * sf.Poisson(0.1).amplify(L.GaussianLoss(1.0))
    for direction, value in ((loss.remove, 0.018355058342676294), (loss.add, 2.7971514343606902e-09)):
        found = direction.delta(0.3)
        assert found.lower <= value * (1 + 1e-12)
        assert value * (1 - 1e-12) <= found.upper
        assert found.relative_gap <= 2e-4  # the add direction is asked just before its end, 3·log(1/0.9) = 0.316


# ---- other views ----------------------------------------------------------------------------------------------------

ORDERS = (0.01, 0.5, 0.999, 1 - 1e-9, 1.0, 1 + 1e-9, 1.001, 1.5, 2.0, 7.3, 64.5, 500.0)


def divergence(pair, order):
    """D_order of a finite pair, from its definition; order 1 is Σ p log p/q."""
    a = mp.mpf(order)
    if any(p > 0 and q == 0 for p, q in pair) and a >= 1:
        return mp.inf
    both = [(p, q) for p, q in pair if p > 0 and q > 0]
    if a == 1:
        return mp.fsum(p * mp.log(p / q) for p, q in both)
    total = mp.fsum(p**a * q ** (1 - a) for p, q in both)
    return mp.log(total) / (a - 1) if total > 0 else mp.inf


@pytest.mark.slow
@settings(max_examples=25)
@given(seed=seeds)
def test_divergences_of_pairs_with_a_list_of_outcomes(seed):
    loss, pair = families.finite_loss(families.Random(f"divergence {seed}"), 1e-6, 20.0)
    for order in ORDERS:
        exact = truth.settled(
            lambda order=order: max(divergence(pair(), order), divergence(truth.reverse(pair()), order))
        )
        found = loss.renyi(order)
        assert found.lower <= exact <= found.upper, (loss, order, found.lower, found.upper, mp.nstr(exact, 20))


@pytest.mark.parametrize(("rate", "mu"), [(0.1, 1.0), (0.01, 2.0), (0.5, 0.3)])
@pytest.mark.parametrize("order", [0.5, 1.0, 1.001, 1.5, 3.0, 8.4, 40.0])
def test_divergences_of_a_sampled_gaussian_by_quadrature(rate, mu, order):
    q, m, a = mp.mpf(rate), mp.mpf(mu), mp.mpf(order)

    def ratio(x):
        return 1 - q + q * mp.exp(m * x - m * m / 2)

    def integral(f):
        return mp.quad(lambda x: mp.npdf(x) * f(ratio(x)), [-30, -8, 0, m, a * m, a * m + 8, a * m + 30])

    with mp.workdps(30):
        if order == 1:
            exact = max(integral(lambda r: r * mp.log(r)), integral(lambda r: -mp.log(r)))
        else:
            exact = max(mp.log(integral(lambda r: r**a)), mp.log(integral(lambda r: r ** (1 - a)))) / (a - 1)
            if order < 1:
                exact = max(mp.log(integral(lambda r, e=e: r**e)) / (a - 1) for e in (a, 1 - a))
    found = sf.Poisson(rate).amplify(L.GaussianLoss(mu)).renyi(order)
    slack = abs(exact) * mp.mpf(10) ** -15  # of the quadrature
    assert found.lower <= exact + slack
    assert exact - slack <= found.upper
    assert found.relative_gap <= 1e-4


def strongest(pair, level):
    """Least type II error at a type I error, for P against Q: Neyman–Pearson with randomisation."""
    ranked = sorted(pair, key=lambda row: row[0] / row[1] if row[1] else mp.inf, reverse=True)
    power, used = mp.mpf(0), mp.mpf(0)
    for p, q in ranked:
        share = mp.mpf(1) if used + q <= level else (level - used) / q
        power, used = power + share * p, used + share * q
        if share < 1:
            break
    return 1 - power


@settings(max_examples=26)
@given(seed=seeds)
def test_trade_offs_lie_between_every_test_and_every_tangent(seed):
    r = families.Random(f"trade-off {seed}")
    loss, pair = families.finite_loss(r, 1e-3, 8.0)
    with mp.workdps(60):
        ahead = pair()
    back = truth.reverse(ahead)
    for level in (0.0, r.random() * 1e-3, r.random(), 1 - r.random() * 1e-3):
        found = loss.trade_off(level)
        with mp.workdps(60):
            tests = [strongest(way, mp.mpf(level)) for way in (ahead, back)]
            slopes = [p / q for p, q in ahead if p and q] + [q / p for p, q in ahead if p and q]
            worst = [max(mp.fsum(max(p - x * q, 0) for p, q in way) for way in (ahead, back)) for x in slopes]
            tangents = [1 - h - x * mp.mpf(level) for x, h in zip(slopes, worst, strict=True)]
        assert found.lower <= min(tests), (loss, level)
        assert found.upper >= max([*tangents, mp.mpf(0)]), (loss, level)


@pytest.mark.parametrize("mu", [0.01, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("level", [0.0, 1e-12, 1e-3, 0.05, 0.5, 0.99, 1.0])
def test_the_trade_off_of_a_gaussian(mu, level):
    with mp.workdps(40):
        exact = mp.mpf(1 - level) if level in (0, 1) else mp.ncdf(-mp.sqrt(2) * mp.erfinv(2 * mp.mpf(level) - 1) - mu)
    found = L.GaussianLoss(mu).trade_off(level)
    assert inside(found.lower, exact, found.upper)
    assert found.gap <= 1e-9


@pytest.mark.parametrize(
    "loss", [L.RandomizedResponseLoss(0.3), L.RandomizedResponseLoss(3.0), L.LaplaceLoss(1.0)], ids=str
)
def test_the_least_rho_is_the_supremum_of_the_renyi_curve(loss):
    def curve(order):
        a, e = mp.mpf(order), mp.mpf(loss.eps)
        if isinstance(loss, L.LaplaceLoss):
            return mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (a - 1)
        yes = 1 / (1 + mp.exp(-e))
        return mp.log(yes**a * (1 - yes) ** (1 - a) + (1 - yes) ** a * yes ** (1 - a)) / (a - 1)

    with mp.workdps(40):
        least = max(
            curve(1 + mp.mpf(10) ** (x / mp.mpf(10))) / (1 + mp.mpf(10) ** (x / mp.mpf(10))) for x in range(-80, 30)
        )
    found = loss.zcdp()
    assert found.upper >= least
    assert found.lower <= least * (1 + mp.mpf("1e-3"))  # the orders above are a grid
    assert found.upper <= least * (1 + mp.mpf("1e-3"))
