"""Compositions that were once slow or loose: each answer holds a truth that is computed another way, and is sharp.

Speed is not tested here but measured (`make bench-calculus`): a test must not depend on a clock.
"""

import math
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

import sfumato.loss as L  # noqa: N812
from sfumato.ledger.budgets import Budget
from sfumato.loss.compose.choose_engine import engine
from sfumato.loss.compose.discretise import discretise
from sfumato.loss.compose.inner_table import replace_inner_sum
from sfumato.loss.compose.transforms.base import Refused
from sfumato.loss.compose.transforms.gaussian import DiscreteGaussianTransform
from sfumato.sampling import Poisson, WithoutReplacement
from sfumato.sensitivity import ReplaceOne

SHARP = 1e-3


def sampled(rate=0.01, mu=1.25):
    return Poisson(rate).amplify(L.GaussianLoss(mu))


def crosses(delta, goal, found, slip):
    """Does the true δ, known to a share `slip`, pass the goal between the two sides? And are they close?"""
    assert delta(found.lower) >= goal * (1 - slip)
    assert delta(found.upper) <= goal * (1 + slip)
    assert found.relative_gap <= SHARP


# ---- coins ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("eps", "k", "count", "delta"), [(0.264, 3, 3, 1.8e-4), (0.7, 5, 4, 1e-3), (0.05, 3, 6, 1e-9)])
def test_a_few_answers_with_three_losses_are_told_to_the_last_atom(eps, k, count, delta):
    with mp.workdps(40):
        e, wrong = mp.mpf(eps), 1 / (mp.e**eps + k - 1)
        one = [(e, mp.e**e * wrong), (mp.mpf(0), (k - 2) * wrong), (-e, wrong)]
        laws = [(mp.fsum(x for x, _ in path), mp.fprod(p for _, p in path)) for path in product(one, repeat=count)]

        def truth(t):
            return mp.fsum(p * (1 - mp.e ** (t - x)) for x, p in laws if x > t)

        crosses(truth, mp.mpf(delta), (count * L.RandomizedResponseLoss(eps, k)).epsilon(delta), mp.mpf("1e-12"))


@pytest.mark.parametrize("leak", [0.0, 1e-16])
def test_a_thousand_million_coins_are_told_by_bisection(leak):
    k, eps, goal = 10**9, 1e-5, 1e-6
    p = special.expit(eps)
    law, other = stats.binom(k, p), stats.binom(k, 1 - p)
    certain = -math.expm1(k * math.log1p(-leak))

    def truth(t):
        first = math.floor((t / eps + k) / 2)
        return certain + (1 - certain) * (law.sf(first) - math.exp(t) * other.sf(first))

    loss = k * (L.ApproxLoss(eps, leak) if leak else L.PureLoss(eps))
    crosses(truth, goal, loss.epsilon(goal), 1e-6)


def test_terms_that_a_binomial_sum_leaves_out_are_in_its_error():
    law = engine(10**6 * L.PureLoss(1e-3))
    total, error = law.finite(1.0)
    _, losses, pmf = law.law
    whole = math.fsum(-pmf * np.expm1(-np.maximum(losses - 1.0, 0.0)))
    assert abs(whole - total) <= error <= 1e-9 * total


def test_listed_outcomes_lie_on_their_points():
    part = discretise(L.RandomizedResponseLoss(0.264, 3), 0.132, 1e-12, 1e-12)
    assert (part.start, len(part.masses), part.stray) == (-2, 5, 0.0)
    assert part.masses.sum() == pytest.approx(1, abs=1e-13)
    assert part.slip <= 1e-14


# ---- sampled Gaussians ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [-0.5, 0.3, 2.5, 20.0])
@pytest.mark.parametrize("back", [False, True])
def test_moments_of_a_sampled_gaussian_hold_the_integral(s, back):
    rate, mu = 0.02, 1.3
    power = -s if back else s + 1
    with mp.workdps(30):
        body = lambda x: mp.npdf(x) * (1 - rate + rate * mp.e ** (mu * x - mp.mpf(mu) ** 2 / 2)) ** power  # noqa: E731
        truth = mp.log(mp.quad(body, [-12, -4, 0, 2, 4, 8, 16, 32, 48]))
    loss = sampled(rate, mu)
    found = (loss.reverse if back else loss).log_moment(s)
    assert found.lower <= truth <= found.upper
    assert found.gap <= 1e-7 * abs(truth)


def test_the_least_rho_of_sampled_gaussians_is_that_of_gaussians():
    found = (10_000 * sampled()).zcdp()
    assert found.lower <= 10_000 * 1.25**2 / 2 <= found.upper
    assert found.relative_gap <= SHARP


def test_one_trade_off_value_is_a_curve_of_one():
    loss = 10_000 * sampled()
    one, many = loss.trade_off(0.01), loss.trade_off(np.array([0.01, 0.3]))
    assert max(one.lower, many.lower[0]) <= min(one.upper, many.upper[0])
    t = np.linspace(0.0, 4.6, 400)
    known = loss.delta(t)
    assert one.upper >= float((1 - known.upper - np.exp(t) * 0.01).max())  # any test bounds the best one
    assert one.relative_gap <= SHARP


def test_a_rate_that_reveals_nothing_needs_no_engine():
    found = (1000 * sampled(1e-200)).epsilon(1e-6)
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_batches_without_replacement_and_a_gaussian():
    """The transform of the pair, written down afresh: L > 0 as for Poisson sampling, mirrored, and an atom at 0."""
    rate, mu, more, goal, theta = 0.0023, 1.85, 0.487, 1e-6, 2.4
    nodes, weights = np.polynomial.legendre.leggauss(400)
    x, w = mu / 2 + 12 * (nodes + 1), 12 * weights
    bell = w * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    loss = np.log1p(rate * np.expm1(mu * x - mu * mu / 2))
    z = theta + 1j * np.arange(0.0, 30.0, 0.05)
    one = np.exp(np.outer(z + 1, loss)) @ bell + np.exp(np.outer(-z, loss)) @ bell + 1 - bell @ (np.exp(loss) + 1)
    whole = one**30 * np.exp(more**2 * z * (z + 1) / 2) / (z * (z + 1))

    def truth(t):
        terms = (whole * np.exp(-z * t)).real * (0.05 / math.pi)
        return float(terms.sum() - terms[0] / 2)

    first, second = (L.GaussianLoss(m, relation=ReplaceOne) for m in (mu, more))
    crosses(truth, goal, (30 * WithoutReplacement(10_000, 23).amplify(first) + second).epsilon(goal), 1e-6)


# ---- sums inside samples --------------------------------------------------------------------------------------------


def five_laplaces(eps, cells):
    """Losses and probabilities of five Laplace answers: two atoms and a density, on a grid that keeps cell means."""
    h = 2 * eps / cells
    middle = -eps + h * (np.arange(cells) + 0.5)
    one = np.zeros(2 * cells + 1)  # points every h/2: atoms at the ends, cells at the middles
    one[1::2] = 0.25 * np.exp((middle - eps) / 2) * h
    one[0], one[-1] = 0.5 * math.exp(-eps), 0.5
    law = one
    for _ in range(4):
        law = np.convolve(law, one)
    return -5 * eps + h / 2 * np.arange(len(law)), law / law.sum()


def test_batches_of_laplace_answers():
    rate, steps, goal, h = 0.1, 20, 1e-6, 2e-4
    losses, p = five_laplaces(0.3, 300)
    mixed = np.log1p(rate * np.expm1(losses))
    mass = (1 - rate) * p * np.exp(-losses) + rate * p
    place = mixed / h
    left = np.floor(place).astype(int)
    grid = np.zeros(1 << 16)
    up = np.expm1((left - place) * h) / math.expm1(-h)  # keeps both probabilities, as a fine lattice of ours would
    np.add.at(grid, left, mass * (1 - up))
    np.add.at(grid, left + 1, mass * up)
    law = np.fft.irfft(np.fft.rfft(grid) ** steps, len(grid))
    points = h * np.concatenate([np.arange(len(grid) // 2), np.arange(-(len(grid) // 2), 0)])

    def truth(t):
        return float((law * -np.expm1(np.minimum(t - points, 0.0)))[points > t].sum())

    found = (steps * Poisson(rate).amplify(5 * L.LaplaceLoss(0.3))).epsilon(goal)
    assert truth(found.lower) >= goal * (1 - 1e-3)
    assert truth(found.upper) <= goal * (1 + 1e-3)
    assert found.relative_gap <= 2 * SHARP


def test_a_table_in_the_place_of_a_sampled_sum_holds_it():
    coins = (L.PureLoss(eps, relation=ReplaceOne) for eps in (0.3, 0.3, 0.45, 0.2, 0.25))
    loss = WithoutReplacement(10, 1).amplify(sum(coins, L.nothing(ReplaceOne)))
    short = replace_inner_sum(loss, 20)
    assert short is not loss
    t = np.linspace(0.0, 0.29, 13)
    for ask in (L.PrivacyLoss.forward, L.PrivacyLoss.backward):
        name = ask.__name__
        whole, table = getattr(loss, name)(t), getattr(short, name)(t)
        assert np.all(table.lower <= whole.upper)
        assert np.all(table.upper >= whole.lower)


def test_losses_that_are_not_composed_need_no_table():
    loss = sampled()
    assert replace_inner_sum(loss, 20) is loss


# ---- discrete Gaussians ---------------------------------------------------------------------------------------------


def test_a_thousand_million_wide_discrete_gaussians_are_as_good_as_one_gaussian():
    mu, goal = math.sqrt(1e9) / 30_000, 1e-6
    truth = lambda t: float(special.ndtr(mu / 2 - t / mu) - math.exp(t) * special.ndtr(-mu / 2 - t / mu))  # noqa: E731
    crosses(truth, goal, (10**9 * L.DiscreteGaussianLoss(30_000, 1)).epsilon(goal), 1e-6)


@pytest.mark.parametrize(("sigma", "d"), [(3.0, 1), (4.5, 2), (12.0, 7)])
def test_the_transform_of_a_discrete_gaussian_holds_the_sum(sigma, d):
    theta = 1.7
    period = 2 * math.pi * sigma**2 / d
    omega = np.array([0.0, 0.05, 0.2, 0.49]) * period
    view = DiscreteGaussianTransform(sigma, d).tilt(theta)
    discs = view.discs(omega)
    with mp.workdps(50):
        s2 = mp.mpf(sigma) ** 2
        xs = [d + n for n in range(-60 * int(sigma), 60 * int(sigma) + 1)]
        total = mp.fsum(mp.e ** (-(mp.mpf(x - d) ** 2) / (2 * s2)) for x in xs)

        def moment(z):
            powers = (-(mp.mpf(x - d) ** 2) / (2 * s2) + z * mp.mpf(2 * x * d - d * d) / (2 * s2) for x in xs)
            return mp.fsum(mp.e**power for power in powers) / total

        base = moment(mp.mpf(theta))
        assert abs(mp.log(base) - view.log_moment) <= view.slip
        for w, log, radius in zip(omega, discs.log, discs.radius, strict=True):
            phi = moment(mp.mpc(theta, float(w))) / base * mp.e ** (-1j * mp.mpf(float(w)) * mp.mpf(view.centre))
            assert abs(phi - mp.e ** mp.mpc(complex(log))) <= radius
    with pytest.raises(Refused):
        view.discs(np.array([0.0, 0.6 * period]))


def test_mixed_discrete_gaussians_agree_with_their_lattice():
    """σ = 20 with d = 1 and 3 share a lattice, where sums are exact; with a Laplace answer they go to the contour."""
    loss = 40 * L.DiscreteGaussianLoss(20.0, 3) + L.DiscreteGaussianLoss(20.0, 1)
    exact = loss.epsilon(1e-5)
    more = (loss + L.LaplaceLoss(1e-7)).epsilon(1e-5)
    assert exact.relative_gap <= SHARP
    assert more.relative_gap <= SHARP
    assert more.upper >= exact.lower
    assert more.lower <= exact.upper + 1e-7


# ---- prices ---------------------------------------------------------------------------------------------------------


def test_the_price_of_a_sum_is_at_most_a_thousandth_above_the_least():
    loss = sum((L.LaplaceLoss(0.05 * i) for i in range(1, 4)), L.RandomizedResponseLoss(0.1))
    least = loss.gdp(max(loss.leak()), tolerance=1e-5)
    price = float(Budget(1.0, 1e-6).price(loss).real("gauss"))
    assert least.lower**2 <= price <= least.upper**2 * (1 + SHARP)
