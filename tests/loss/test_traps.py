"""Every trap we met and every failure we measured in other libraries, as a test of its own."""

import math

import mpmath as mp
import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import MixedRelations

L = sf.loss


def sampled(rate, sigma, k=1):
    return k * sf.Poisson(rate).amplify(L.GaussianLoss(1 / sigma))


def gaussian_delta(mu, eps):
    """The exact profile with 60 digits."""
    with mp.workdps(60):
        mu, eps = mp.mpf(mu), mp.mpf(eps)
        return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


def test_a_thousand_randomized_responses_do_not_cost_as_much_as_one():
    found = (1000 * L.RandomizedResponseLoss(0.1)).epsilon(1e-6)
    assert 19.3446714479 < found.lower <= found.upper < 19.3446714481  # a peer reports 0.1001


@pytest.mark.parametrize("delta", [1e-10, 1e-12, 1e-13, 1e-14, 1e-15, 1e-30, 1e-50, 1e-200])
def test_a_reported_epsilon_holds_at_tiny_deltas(delta):
    found = (10**4 * L.GaussianLoss(0.01)).epsilon(delta)  # a peer's ε has a true δ 14.6 times the target at 1e-14
    assert gaussian_delta(1, found.upper) <= mp.mpf(delta) * (1 + mp.mpf(10) ** -12)
    assert gaussian_delta(1, found.lower) >= mp.mpf(delta) * (1 - mp.mpf(10) ** -12)
    assert found.relative_gap < 1e-10


def test_the_lattice_holds_at_tiny_deltas_too():
    mixed = L.GaussianLoss(1.0) + L.LaplaceLoss(1e-9)  # nearly a Gaussian, but the lattice must do it
    for delta in (1e-12, 1e-20, 1e-30):
        found = mixed.epsilon(delta)
        assert gaussian_delta(1, found.upper) <= delta
        assert gaussian_delta(1, found.lower - 1e-8) >= delta
        assert found.relative_gap < 1e-4


def test_epsilon_is_never_negative():
    found = (1000 * L.GaussianLoss(1 / 50)).epsilon(1e-6)  # a peer answers −0.0048
    assert 2.9216 < found.lower <= found.upper < 2.9217


def test_the_central_limit_is_not_used_as_a_bound():
    found = sampled(0.01, 0.8, 1000).epsilon(1e-6)  # a peer's "gdp" accountant answers 2.83
    assert found.lower > 3.706


def test_nothing_repeated_or_sampled_away_costs_nothing():
    a = L.LaplaceLoss(1.0)
    for loss in (0 * a, sf.Poisson(0).amplify(a), L.GaussianLoss(0), L.LaplaceLoss(0), L.PureLoss(0), L.nothing()):
        assert loss.epsilon(0).upper == 0
        assert loss.delta(0).upper == 0
        assert loss.trade_off(0.3).lower == pytest.approx(0.7)
        assert loss.renyi(2).upper == 0
        assert loss.gdp().upper == 0
    assert (0 * a + a) == a


def test_sampling_everybody_changes_nothing():
    a = L.GaussianLoss(0.7)
    assert sf.Poisson(1).amplify(a) == a
    replaced = L.GaussianLoss(0.7, relation=sf.ReplaceOne)
    assert sf.WithoutReplacement(10, 10).amplify(replaced) == replaced
    everybody = L.PoissonSampledLoss(a, 1.0)
    eps = np.linspace(0, 5, 50)
    ours, theirs = everybody.delta(eps), a.delta(eps)
    assert np.all(ours.lower <= theirs.upper) and np.all(theirs.lower <= ours.upper)


def test_delta_at_epsilon_zero_is_total_variation():
    assert 0.462117157260009 in L.RandomizedResponseLoss(1).delta(0)
    assert L.GaussianLoss(1).delta(0).upper == pytest.approx(math.erf(1 / (2 * math.sqrt(2))), rel=1e-14)


@pytest.mark.parametrize("k", [10**4, 10**6])
def test_the_add_direction_lies_where_two_tolerances_and_the_remove_direction_say(k):
    loss = sampled(0.01, 0.8, k).add  # lumping the left tail lost 9e-6 on the wrong side at k = 10⁶
    rough, fine = loss.epsilon(1e-6, tolerance=1e-2), loss.epsilon(1e-6, tolerance=1e-4)
    assert rough.lower <= fine.upper and fine.lower <= rough.upper
    assert fine.relative_gap <= 2e-4
    assert fine.upper < sampled(0.01, 0.8, k).remove.epsilon(1e-6).lower


def test_certainty_composes():
    loss = 1000 * L.ApproxLoss(0.0, 1e-3)
    with mp.workdps(40):  # the sides are one part in 10¹³ apart, and 15 digits of truth are less than that
        assert mp.mpf(1) - (1 - mp.mpf(1e-3)) ** 1000 in loss.delta(50.0)
    mixed = loss + L.GaussianLoss(1)
    assert mixed.delta(60.0).lower <= 1 - (1 - 1e-3) ** 1000 <= mixed.delta(60.0).upper
    assert mixed.epsilon(0.5).lower == math.inf
    assert mixed.epsilon(0.7).upper < 2


@pytest.mark.slow
def test_the_right_edge_of_a_bounded_loss_is_exact():
    loss = 3 * L.LaplaceLoss(0.5) + 2 * L.PureLoss(0.25)
    assert 2.0 in loss.epsilon(0)
    assert loss.delta(2.0 + 1e-9).upper == pytest.approx(0, abs=1e-12)
    assert loss.delta(1.9).lower > 0
    add = sampled(0.3, 1.0, 5).add
    assert add.epsilon(0).upper == pytest.approx(-5 * math.log(0.7), rel=1e-12)


def test_recurring_frequencies_are_summed():
    found = (100 * L.LaplaceLoss(0.1)).epsilon(1e-6)
    assert found.lower <= 4.6926674147 <= found.upper  # stopping at the first small frequency gave 4.692549


def test_large_epsilons_neither_overflow_nor_give_up():
    assert 800 in L.ApproxLoss(800, 1e-6).epsilon(1e-6)
    assert float(sampled(0.2, 0.5, 500).epsilon(1e-5)) == pytest.approx(166.5659, rel=1e-5)
    big = L.GaussianLoss(100).epsilon(1e-6)
    assert gaussian_delta(100, big.upper) <= 1e-6 * (1 + 1e-9)
    assert (2 * L.PureLoss(1000)).epsilon(0).upper == pytest.approx(2000)
    assert L.GaussianLoss(3).delta(5000.0).upper < 1e-290


def test_orders_near_one_are_near_the_kl_divergence():
    for loss in (L.GaussianLoss(1), L.LaplaceLoss(1), L.RandomizedResponseLoss(1), sampled(0.1, 1.0)):
        near = loss.renyi(1 + 1e-6)
        assert near.lower <= loss.kl().upper * (1 + 1e-4) and loss.kl().lower <= near.upper * (1 + 1e-4)


def test_relations_are_never_mixed():
    ours, theirs = L.GaussianLoss(1), L.GaussianLoss(1, relation=sf.ReplaceOne)
    for build in (
        lambda: ours + theirs,
        lambda: L.either(ours, theirs),
        lambda: sf.Poisson(0.1).amplify(theirs),
        lambda: sf.WithoutReplacement(10, 1).amplify(ours),
        lambda: L.PoissonSampledLoss(theirs, 0.1),
        lambda: L.PoissonSampledLoss(theirs, 0.1, relation=sf.ReplaceOne),
        lambda: L.WithoutReplacementLoss(ours, 10, 1),
        lambda: theirs.remove,
        lambda: ours.remove + ours,
        lambda: ours.remove + ours.add,
    ):
        with pytest.raises(MixedRelations, match=r"do:|direction|not about|different"):
            build()


def test_replacing_costs_twice_the_sensitivity():
    assert L.replace_one(L.GaussianLoss(0.5)) == L.GaussianLoss(1.0, relation=sf.ReplaceOne)


def test_a_renyi_curve_promises_no_more_than_the_mechanism_it_came_from():
    """D_a ≤ ρa holds for a Gaussian with μ² = 2ρ: what follows from the curve alone must cover that Gaussian."""
    eps = np.linspace(0, 8, 100)
    for rho in (1e-4, 0.02, 0.5, 3.0):
        exact = L.GaussianLoss(math.sqrt(2 * rho)).delta(eps).lower
        assert np.all(L.ZcdpLoss(rho).delta(eps).upper >= exact)
        assert L.ZcdpLoss(rho).gdp(1e-10).upper >= math.sqrt(2 * rho) * (1 - 1e-6)
    table = L.from_renyi(lambda a: float(L.LaplaceLoss(1).renyi(a).upper))
    assert np.all(table.delta(eps).upper >= L.LaplaceLoss(1).delta(eps).lower)


def test_moments_of_high_order_do_not_underflow_to_nothing():
    loss = sf.Poisson(0.01).amplify(L.GaussianLoss(1.25))
    for s, truth in ((20, 231.416426094), (50, 1757.32382051), (80, 4689.48121493)):
        found = loss.log_moment(float(s))
        assert found.lower <= truth * (1 + 1e-11) and truth * (1 - 1e-11) <= found.upper
    middle = loss.log_moment(79.5)
    assert middle.lower <= 4629.08848753 * (1 + 1e-11) and middle.upper >= 4629.08848753 * (1 - 1e-11)


@pytest.mark.slow
def test_sampling_a_renyi_curve_covers_sampling_the_mechanism():
    curve = sf.Poisson(0.02).amplify(L.ZcdpLoss(0.5))
    exact = sf.Poisson(0.02).amplify(L.GaussianLoss(1.0))
    assert (500 * curve).epsilon(1e-6).upper >= (500 * exact).epsilon(1e-6).lower
    assert (500 * curve).epsilon(1e-6).upper < 2 * (500 * exact).epsilon(1e-6).upper
    for order in (2, 5, 20):
        assert curve.renyi(order).upper >= exact.renyi(order).lower


def test_anything_adds_to_anything_of_one_relation():
    parts = [
        L.GaussianLoss(0.3),
        L.LaplaceLoss(0.2),
        L.DiscreteGaussianLoss(3.0),
        L.DiscreteLaplaceLoss(4.0, 2),
        L.RandomizedResponseLoss(0.3, 5),
        L.PureLoss(0.1),
        L.ApproxLoss(0.1, 1e-8),
        L.StaircaseLoss(0.3, 0.2),
        L.BoundedRangeLoss(0.3),
        L.FinitePairLoss((0.5, 0.3, 0.2), (0.4, 0.35, 0.25)),
        L.ZcdpLoss(0.001),
        sf.Poisson(0.1).amplify(L.GaussianLoss(0.5)),
        sf.Poisson(0.2).amplify(2 * L.LaplaceLoss(0.3)),
        L.either(L.GaussianLoss(0.1), L.LaplaceLoss(0.1)),
        L.from_profile(lambda e: L.LaplaceLoss(0.2).delta(e).upper, top=0.2),
    ]
    whole = sum(parts)
    found = whole.epsilon(1e-6)
    without = sum(parts[:10]).epsilon(1e-6)
    assert 0 < without.lower <= without.upper < found.upper < sum(p.epsilon(1e-8).upper for p in parts)
    assert without.relative_gap < 1e-4


def test_a_renyi_curve_stays_sound_at_huge_epsilons():
    for rho in (600.0, 1000.0):  # interpolating in e^ε overflowed from 709 on
        exact = L.GaussianLoss(math.sqrt(2 * rho))
        assert L.ZcdpLoss(rho).epsilon(1e-6).upper >= exact.epsilon(1e-6).lower
        assert L.ZcdpLoss(rho).delta(900.0).upper >= exact.delta(900.0).lower
    assert (50 * L.ZcdpLoss(20)).epsilon(0.5).upper >= 999


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "alpha", "truth"),
    [
        ((0.27981597894912674, 0.1606047764256487), 0.604416447841394, 0.2761261),
        ((3.7933515801521707, 0.03768514017613647, 2.412810137282038), 0.013136015146235807, 0.0560648),
    ],
)
def test_a_trade_off_holds_the_neyman_pearson_value(parts, alpha, truth):
    found = sum(L.PureLoss(eps) for eps in parts).trade_off(alpha, tolerance=1e-4)
    assert found.lower <= truth + 5e-8 and truth - 5e-8 <= found.upper
    assert found.gap < 1e-4


def test_a_leak_does_not_lift_the_lower_side():
    p, q = (
        (0.010008508501628844, 0.9899905604908078, 9.310075634023892e-07),
        (0.010083516384019945, 0.9899164836159801, 0.0),
    )
    k, eps = 149, 0.01115
    found = (k * L.FinitePairLoss(p, q)).remove.delta(eps)
    with mp.workdps(50):
        a, b, c = (mp.mpf(x) for x in p)
        u, v, _ = (mp.mpf(x) for x in q)
        whole, other = a + b + c, u + v
        a, b, c, u, v = a / whole, b / whole, c / whole, u / other, v / other
        terms = [
            mp.binomial(k, i) * (a**i * b ** (k - i) - mp.exp(mp.mpf(eps)) * u**i * v ** (k - i)) for i in range(k + 1)
        ]
        truth = mp.fsum(t for t in terms if t > 0) + 1 - (1 - c) ** k
    assert found.lower <= truth <= found.upper


def test_divergences_below_order_one_keep_their_digits():
    assert pytest.approx(L.PureLoss(80).renyi(0.5).upper, rel=1e-12) == 78.6137056388801
    assert L.PureLoss(80).renyi(0.5).lower == pytest.approx(80 - 2 * math.log(2), rel=1e-12)
    small = sf.Poisson(1e-4).amplify(L.GaussianLoss(0.05)).hellinger()
    assert small.lower <= 3.1289083e-12 * (1 + 1e-7) and small.upper >= 3.1289083e-12 * (1 - 1e-7)
    assert small.relative_gap < 1e-6


def test_a_billion_equal_responses_know_their_own_rounding():
    eps, k = 2.0, 10**9
    with mp.workdps(60):
        p = 1 / (1 + mp.exp(-mp.mpf(eps)))
        mean, sd = k * p, mp.sqrt(k * p * (1 - p))
        i = int(mean + 20 * sd)
        at = float((2 * i - k) * eps)
        term = mp.exp(
            mp.loggamma(k + 1)
            - mp.loggamma(i + 2)
            - mp.loggamma(k - i)
            + (i + 1) * mp.log(p)
            + (k - i - 1) * mp.log(1 - p)
        )
        total, j, t = mp.mpf(0), i + 1, mp.mpf(at)
        while term > total * mp.mpf(10) ** -25:
            total += term * (1 - mp.exp(t - (2 * j - k) * mp.mpf(eps)))
            term *= mp.mpf(k - j) / (j + 1) * p / (1 - p)
            j += 1
    found = (k * L.PureLoss(eps)).delta(at)
    assert found.lower <= total <= found.upper
    assert found.relative_gap < 1e-7


def test_a_class_of_mechanisms_never_crosses_its_own_bounds():
    sampled_range = sf.Poisson(0.5).amplify(L.BoundedRangeLoss(1.0))
    for order in (1.5, 2.5, 3.0, 7.5):
        found = sampled_range.renyi(order)
        assert found.lower <= found.upper <= order / 8 * 1.0001
    assert L.BoundedRangeLoss(1.0).zcdp().upper == pytest.approx(1 / 8, rel=1e-9)


def test_large_renyi_divergences_are_not_capped():
    inner = L.RenyiLoss((2.0,), (800.0,), relation=sf.ReplaceOne)
    assert sf.WithoutReplacement(100, 50).amplify(inner).renyi(2).upper >= 798.6


def test_high_orders_of_wide_losses_are_covered():
    inner = L.LaplaceLoss(690, relation=sf.ReplaceOne)
    found = sf.WithoutReplacement(2, 1).amplify(inner).log_moment(1e4)
    assert found.lower <= 6893067.142 * (1 + 1e-9) and found.upper >= 6893067.142 * (1 - 1e-9)


def test_the_largest_loss_has_a_lower_side_of_its_own():
    tiny = L.FinitePairLoss((0.5 + 1e-9, 0.5 - 1e-9), (0.5, 0.5)).epsilon(0)
    assert tiny.lower <= 1.9999999414e-9 <= tiny.upper
    rare = L.PoissonSampledLoss(L.PureLoss(35), 1e-15).epsilon(0)
    assert rare.lower <= 0.9502 and rare.upper >= 0.9500
    stick = L.PureLoss(1).hockey_stick(math.e * (1 - 3e-16))
    assert stick.lower <= 2.777e-16 <= stick.upper


def test_discrete_noise_of_extreme_width_is_enclosed():
    assert L.DiscreteLaplaceLoss(1e17, 3).delta(0.0).upper >= 1e-17
    assert math.isfinite(L.DiscreteGaussianLoss(0.01, 1).renyi(1.5).upper)
    scale, d, eps = 2596.5605351737213, 14, 0.005349880904687568
    with mp.workdps(50):
        r = 1 / mp.mpf(scale)
        truth = max(0, 1 - mp.exp(mp.mpf(eps) - d * r)) / (1 + mp.exp(-r))
    found = L.DiscreteLaplaceLoss(scale, d).delta(eps)
    assert found.lower <= truth <= found.upper
