"""The contour engine against inversion integrals and enumerations in 40 digits and more (tests/truth.py)."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.loss.compose.choose_engine import engine, group_transforms
from sfumato.loss.compose.contour import Composition, Contour, Line, Saddle, Totals, plan
from sfumato.loss.compose.transforms.base import Refused
from sfumato.loss.compose.transforms.edges import TiltedEdges
from sfumato.loss.compose.transforms.gaussian import GaussianTransform
from sfumato.loss.compose.transforms.sampled_gaussian import SampledGaussianTransform
from tests import configurations as families
from tests import truth
from tests.configurations import Random, configuration, magnitude, violations

L = sf.loss
seeds = st.integers(0, 10**6)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("rate", "mu", "count", "t"), [(0.01, 1.25, 10**6, 268.0), (1e-4, 1.0, 10**9, 20.0), (0.3, 0.5, 1000, 40.0)]
)
def test_many_sampled_gaussians_against_a_plain_inversion(rate, mu, count, t, sign):
    loss = count * sf.Poisson(rate).amplify(L.GaussianLoss(mu))
    exact, slack = truth.settled_fold(rate, mu, sign, count, t), 1 + mp.mpf(10) ** -25
    for tolerance in (1e-2, 1e-5, 1e-10):
        found = (loss.remove if sign > 0 else loss.add).delta(t, tolerance=tolerance)
        assert found.method == "contour"
        assert found.lower <= exact * slack
        assert exact <= found.upper * slack
        assert found.relative_gap <= max(tolerance, 1e-7)


@settings(max_examples=8)
@given(seed=seeds)
def test_distinct_coins_face_by_face(seed):
    r = Random(f"distinct coins {seed}")
    scale = magnitude(r, 1e-3, 2)
    coins = [
        (scale * magnitude(r, 0.2, 3), r.choice([0.0, magnitude(r, 1e-15, 1e-2)])) for _ in range(r.randrange(2, 9))
    ]
    loss = sum(L.ApproxLoss(eps, leak) if leak else L.PureLoss(eps) for eps, leak in coins)
    top = sum(eps for eps, _ in coins)
    points = np.array([0.0, top * r.random(), top * r.random(), top * (1 - magnitude(r, 1e-6, 1)), 1.5 * top])
    found = loss.delta(points, tolerance=magnitude(r, 1e-7, 1e-2))
    for t, lower, upper in zip(points, found.lower, found.upper, strict=True):
        exact = truth.settled(lambda t=t: truth.distinct_coins(coins, float(t)))
        assert mp.mpf(float(lower)) <= exact <= mp.mpf(float(upper)), (coins, t)


@settings(max_examples=5)
@given(seed=seeds)
def test_coins_with_a_gaussian_or_a_laplace(seed):
    case = configuration(families.coins_and_curve, seed)
    assert not violations(case, [case.loss.forward(case.eps, 1e-5), case.loss.backward(case.eps, 1e-5)])


# ---- the theorems, on laws where both sides can be written down ------------------------------------------------------


def laid(parts, theta, width, reach, tau=0.0):
    """A contour with a window of our own choice."""
    mantissa, exponent = math.frexp(2 * math.pi / width)
    step = math.ldexp(math.floor(mantissa * 2**30), exponent - 30)
    saddle = Saddle(theta, 0.0, 1.0, -30.0, width, (2 * theta, theta / 2))
    line = Line(saddle, tau, step, math.ceil(reach / step) + 1, reach * np.geomspace(1.0, 1e6, 40))
    smoothing = [GaussianTransform(2 * tau)] if tau else []
    return Contour(line, Totals.together([Totals.of(part, line) for part in [*parts, *smoothing]]), 0.0, 0.0)


def alias_sum(curve, theta, width, t):
    """Σ_j e^{θjW}·δ(t + jW)."""
    reach = range(-math.ceil(90 / (theta * width)), math.ceil(60 / width))
    return mp.fsum(mp.exp(theta * j * width) * curve(t + j * width) for j in reach)


@pytest.mark.parametrize("width", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("theta", [0.5, 2.0])
def test_the_sum_over_nodes_is_the_sum_over_windows(theta, width):
    """Theorem 1 on a coin and a small Gaussian: aliases as large as the value itself, and still nothing is missed."""
    eps, mu = 0.7, 0.25

    def curve(u):
        return truth.with_curve([truth.coin(eps)[1:3]], truth.gaussian(mu), u)

    contour = laid(group_transforms([(1, L.PureLoss(eps)), (1, L.GaussianLoss(mu))]), theta, width, 60.0)
    window = 2 * mp.pi / mp.mpf(contour.line.step)
    for t in (0.0, 0.3, 0.7, 1.1):
        with mp.workdps(40):
            whole, exact = alias_sum(curve, mp.mpf(theta), window, mp.mpf(t)), curve(mp.mpf(t))
        found = math.exp(contour.log_moment - theta * t) * float(contour.sums(np.array([t]))[0, 0])
        assert math.isclose(found, whole, rel_tol=1e-12)
        enclosure = contour.delta(np.array([t]))
        assert enclosure.lower[0] <= exact <= min(whole, 1) <= enclosure.upper[0] * (1 + 1e-12)


def test_the_sum_over_nodes_of_a_bare_coin():
    """Theorem 1 and 2 on two atoms: what the dropped nodes weigh is within the tail."""
    eps, theta, width = 0.7, 1.0, 0.5
    contour = laid(group_transforms([(1, L.PureLoss(eps))]), theta, width, 2e4)

    def curve(u):
        return mp.fsum(gain for p, q in truth.coin(eps) if (gain := p - mp.exp(u) * q) > 0)

    for t in (0.0, 0.2, 0.69):
        scale = math.exp(contour.log_moment - theta * t)
        whole = alias_sum(curve, mp.mpf(theta), 2 * mp.pi / mp.mpf(contour.line.step), mp.mpf(t))
        found = scale * float(contour.sums(np.array([t]))[0, 0])
        assert abs(found - whole) <= scale * contour.tail
        assert contour.tail < 1e-4


@pytest.mark.parametrize("tau", [1e-6, 1e-2, 1.0])
def test_smoothing_bounds_a_single_atom_from_both_sides(tau):
    """Theorem 4 for S = s: F − 2τe^{τ/4}f ≤ (1 − e^{−s})₊ ≤ F, tight at s = 0."""
    with mp.workdps(40):
        tau = mp.mpf(tau)
        for s in (-3, -1, -1e-3, -1e-12, 0, 1e-12, 1e-3, 1, 3):
            s = mp.mpf(s) * mp.sqrt(tau)
            exact = max(1 - mp.exp(-s), mp.mpf(0))
            smooth = truth.gaussian(mp.sqrt(2 * tau))(-s)
            density = mp.npdf(-s, tau, mp.sqrt(2 * tau))
            most = 2 * tau * mp.exp(tau / 4) * density
            assert smooth - most <= exact <= smooth
            if s == 0:
                assert smooth - exact >= 0.9 * most * mp.exp(-tau / 2)


@pytest.mark.parametrize("tau", [1e-6, 1e-4, 1e-2])
def test_a_smoothed_contour_holds_a_lattice_law_next_to_its_atoms(tau):
    eps, count = 0.5, 4
    parts = group_transforms([(count, L.PureLoss(eps))])
    saddle = Composition(parts, 0.0, 0.0).towards(1.0, 1e-6)
    line = plan([*parts, GaussianTransform(2 * tau)], saddle, tau, 1.0)
    totals = Totals.together([Totals.of(part, line) for part in [*parts, GaussianTransform(2 * tau)]])
    contour = Contour(line, totals, 0.0, 0.0)
    points = np.array([x for atom in (0.0, 1.0) for x in (atom - 1e-9, atom, atom + 1e-9, atom + 0.1)][1:])
    found = contour.delta(points)
    for t, lower, upper in zip(points.tolist(), found.lower, found.upper, strict=True):
        exact = truth.settled(lambda t=t: truth.equal_coins(eps, count, t, 0.0))
        assert mp.mpf(float(lower)) <= exact <= mp.mpf(float(upper))
        assert upper - lower <= 20 * math.sqrt(tau) * upper


# ---- recurrences ----------------------------------------------------------------------------------------------------

MANY_LAPLACES = mp.mpf("9.9999999989749388558e-7")  # truth.equal_laplaces(.1, 100, 4.6926674147), which takes a while


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9])
def test_a_hundred_laplaces(tolerance):
    found = (100 * L.LaplaceLoss(0.1)).delta(4.6926674147, tolerance=tolerance)
    assert found.lower <= MANY_LAPLACES <= found.upper


def test_without_the_recurrences_a_hundred_laplaces_would_be_missed(monkeypatch):
    """A ceiling that only knows the first decay, as of a Gaussian with the same spread, lets the engine stop early."""
    composition = engine(100 * L.LaplaceLoss(0.1)).composition
    saddle = composition.towards(4.6926674147, 1e-7)
    monkeypatch.setattr(TiltedEdges, "log_ceiling", lambda _, omega: -((saddle.spread * omega) ** 2) / 2)
    found = composition.contour(4.6926674147, 1e-7).delta(np.array([4.6926674147]))
    assert not found.lower[0] <= MANY_LAPLACES <= found.upper[0]


# ---- answers --------------------------------------------------------------------------------------------------------

COINS = ((0.3, 0.0), (0.41, 0.0), (0.73, 0.0))


def mixed(mu):
    """Three distinct coins and a Gaussian."""
    loss = L.GaussianLoss(mu) + sum(L.PureLoss(eps) for eps, _ in COINS)
    pairs = lambda: [truth.coin(eps)[1:3] for eps, _ in COINS]  # noqa: E731
    return loss, lambda t: truth.settled(lambda: truth.with_curve(pairs(), truth.gaussian(mu), t))


def holds(exact, delta, found):
    """Is the least ε with δ(ε) ≤ delta between the two sides? By the truth at both."""
    if found.lower > 0:
        assert exact(found.lower) >= mp.mpf(delta)
    if math.isfinite(found.upper):
        assert exact(found.upper) <= mp.mpf(delta)


@pytest.mark.parametrize("delta", [1e-50, 1e-20, 1e-10, 1e-6, 1e-3, 0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("mu", [0.2, 1.0, 8.0])
def test_epsilon_from_the_least_delta_to_nearly_one(mu, delta):
    loss, exact = mixed(mu)
    found = loss.epsilon(delta)
    holds(exact, delta, found)
    assert found.relative_gap <= 1e-5


def bounded():
    """Three distinct coins and a Laplace, and the truth."""
    loss = L.LaplaceLoss(0.5) + sum(L.PureLoss(eps) for eps, _ in COINS)
    pairs = lambda: [truth.coin(eps)[1:3] for eps, _ in COINS]  # noqa: E731
    return loss, lambda t: truth.settled(lambda: truth.with_curve(pairs(), truth.laplace(0.5), t))


@pytest.mark.parametrize("below", [1e-9, 1e-6, 1e-3, 0.1, 0.5])
def test_delta_near_the_top_of_bounded_losses(below):
    loss, exact = bounded()
    t = (0.5 + sum(eps for eps, _ in COINS)) * (1 - below)
    found = loss.delta(t)
    assert found.lower <= exact(t) <= found.upper
    assert loss.delta(2.0).upper == 0


@pytest.mark.parametrize("delta", [1e-20, 1e-12, 1e-6, 1e-3])
def test_epsilon_near_the_top_of_bounded_losses(delta):
    loss, exact = bounded()
    holds(exact, delta, loss.epsilon(delta))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("rate", "mu"), [(0.7, 1.0), (0.5, 0.3), (0.999, 1.0), (1 - 1e-9, 0.5)])
def test_one_sampled_gaussian_on_a_contour(rate, mu, sign):
    """k = 1, where the closed form is the truth and the sum itself would never take a contour."""
    curve = truth.sampled_gaussian(rate, mu)[0 if sign > 0 else 1]
    composition = Composition([SampledGaussianTransform(rate, mu, sign)], 0.0, 0.0)
    top = math.log1p(rate * math.expm1(mu * mu / 2 + 3 * mu))
    top = top if sign > 0 else min(top, -math.log1p(-rate))
    for t in (0.1 * top, 0.4 * top):
        for sharp in (1e-2, 1e-4):
            found = composition.contour(t, sharp).delta(np.array([t]))
            assert found.lower[0] <= truth.settled(lambda t=t: curve(mp.mpf(t))) <= found.upper[0]


@pytest.mark.parametrize(
    "loss",
    [
        100 * L.LaplaceLoss(0.1),
        1000 * sf.Poisson(0.01).amplify(L.GaussianLoss(1.25)),
        L.GaussianLoss(0.3) + 3 * L.ApproxLoss(0.2, 1e-9) + L.PureLoss(0.33),
        5 * L.LaplaceLoss(0.2) + 30 * sf.Poisson(0.1).amplify(L.GaussianLoss(0.5)),
    ],
    ids=str,
)
def test_every_tolerance_tells_the_same_truth(loss):
    tolerances = (0.3, 1e-2, 1e-4, 1e-6, 1e-8)
    for ask in (lambda tol: loss.epsilon(1e-6, tolerance=tol), lambda tol: loss.delta(1.3, tolerance=tol)):
        found = [ask(tolerance) for tolerance in tolerances]
        assert max(bound.lower for bound in found) <= min(bound.upper for bound in found)


def test_more_delta_never_costs_more():
    loss = 100 * L.LaplaceLoss(0.1)
    found = [loss.epsilon(delta) for delta in (1e-6, np.nextafter(1e-6, 1), 1.001e-6)]
    assert found[1].lower <= found[0].upper
    assert found[2].upper < found[0].lower


# ---- which engine ---------------------------------------------------------------------------------------------------


def test_what_a_contour_refuses_the_lattice_answers(monkeypatch):
    loss, exact = mixed(0.55)

    def refuse(*_):
        raise Refused("on purpose")

    engine.cache_clear()
    monkeypatch.setattr(Composition, "contour", refuse)
    for t in (0.0, 0.5, 2.0):
        found = loss.delta(t, tolerance=1e-3)
        assert found.lower <= exact(t) <= found.upper
        assert found.relative_gap <= 1e-2
    holds(exact, 1e-4, loss.epsilon(1e-4, tolerance=1e-3))
    engine.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "method"),
    [
        (3 * L.GaussianLoss(1.0), "closed form"),
        (10 * L.PureLoss(0.1), "closed form"),
        (10 * L.LaplaceLoss(0.1), "contour"),
        (L.LaplaceLoss(0.1) + L.GaussianLoss(1.0), "contour"),
        (50 * sf.Poisson(0.1).amplify(L.GaussianLoss(1.0)), "contour"),
        (L.LaplaceLoss(0.1) + L.DiscreteGaussianLoss(2.0), "lattice"),
        (L.PureLoss(0.1) + L.PureLoss(0.2), "lattice"),
    ],
    ids=str,
)
def test_every_answer_names_its_engine(loss, method):
    for found in (loss.epsilon(1e-6), loss.delta(0.5), loss.trade_off(0.1)):
        assert method in found.method


# ---- what once went wrong -------------------------------------------------------------------------------------------


def test_a_value_that_underflows_is_not_zero():
    assert (L.GaussianLoss(1.0) + L.PureLoss(0.5)).delta(1000.0).upper > 0


@pytest.mark.parametrize("count", [10**7, 10**8])
def test_delta_near_one_where_contours_are_refused(count):
    """So many steps that ε is in the hundred thousands: almost everywhere δ is 1, without a contour."""
    loss = count * sf.Poisson(0.9).amplify(L.GaussianLoss(0.5))
    assert loss.delta(1.0).lower > 1 - 1e-5
    found = loss.remove.epsilon(1e-6)
    assert found.lower > 1e5
    assert loss.epsilon(1e-6).upper >= found.lower
    assert loss.remove.delta(found.upper).lower <= 1e-6
    assert loss.remove.delta(found.lower).upper >= 1e-6


def test_epsilon_near_the_top_at_a_tiny_delta():
    """The integrand is far beyond floats on one side of the answer: it must neither warn nor mislead."""
    loss = L.LaplaceLoss(0.5) + L.PureLoss(0.3) + L.PureLoss(0.41) + L.PureLoss(0.73)
    found = loss.epsilon(1e-50)
    assert 1.9 < found.lower <= found.upper <= 1.94 * (1 + 1e-12)


def test_long_contours_are_not_kept():
    """An engine is remembered: what it remembers in turn must be small."""
    loss = 3 * L.LaplaceLoss(0.3) + L.PureLoss(0.2)
    loss.delta(np.linspace(0.1, 0.9, 5))
    assert sum(len(contour.terms) for contour, _ in engine(loss).latest) <= 8 * 2000
