"""Sampled sums, atom by atom: each answer holds a truth that is computed another way, from both sides."""

import dataclasses
import math
from itertools import product

import mpmath as mp
import numpy as np
import pytest

import sfumato.loss as L  # noqa: N812
from sfumato.loss.compose.choose_engine import engine
from sfumato.loss.compose.discretise import discretise
from sfumato.loss.compose.inner_table import tabulate_sum
from sfumato.loss.compose.nested import (
    Replaced,
    atoms,
    sampled_moments,
    sampled_sum,
    split_onto_lattice,
    through_sampling,
)
from sfumato.sampling import Poisson, WithoutReplacement
from sfumato.sensitivity import ReplaceOne


def sampled(rate=0.01, mu=1.25):
    return Poisson(rate).amplify(L.GaussianLoss(mu))


# ---- the whole composition, against atoms that can be listed -------------------------------------------------------


def coin(eps):
    """(P-mass, Q-mass) of both outcomes of binary randomized response."""
    p = 1 / (1 + mp.e ** (-eps))
    return [(p, 1 - p), (1 - p, p)]


def listed_truth(inner, rate, times):
    """Both profiles of `times` sampled sums of coins, by listing all outcomes with 40 digits."""
    one = [(mp.fprod(p for p, _ in path), mp.fprod(q for _, q in path)) for path in product(*map(coin, inner))]
    merged: dict[str, tuple[mp.mpf, mp.mpf]] = {}
    for p, q in one:  # outcomes of one loss are one
        key = mp.nstr(p / q, 25)
        before = merged.get(key, (mp.mpf(0), mp.mpf(0)))
        merged[key] = before[0] + p, before[1] + q
    step = [((1 - rate) * q + rate * p, q) for p, q in merged.values()]
    law = [(mp.fprod(p for p, _ in path), mp.fprod(q for _, q in path)) for path in product(step, repeat=times)]
    ahead = lambda t: mp.fsum(max(p - mp.e**t * q, 0) for p, q in law)  # noqa: E731
    back = lambda t: mp.fsum(max(q - mp.e**t * p, 0) for p, q in law)  # noqa: E731
    return ahead, back


@pytest.mark.parametrize(
    ("inner", "rate", "times"), [((0.3, 0.2), 0.1, 4), ((1.1, 0.47, 0.2), 0.35, 3), ((2.5, 0.9), 0.02, 5)]
)
def test_sampled_sums_of_coins_are_told_as_by_listing_all_outcomes(inner, rate, times):
    loss = times * Poisson(rate).amplify(sum((L.PureLoss(eps) for eps in inner), L.nothing()))
    assert sampled_sum(Poisson(rate).amplify(sum((L.PureLoss(eps) for eps in inner), L.nothing()))) is not None
    with mp.workdps(40):
        ahead, back = listed_truth([mp.mpf(eps) for eps in inner], mp.mpf(rate), times)
        t = np.linspace(0.0, 0.9 * loss.supremum()[0], 9)
        for truth, found in ((ahead, loss.forward(t)), (back, loss.backward(t))):
            for x, low, high in zip(t.tolist(), *(side.tolist() for side in found), strict=True):
                true = truth(mp.mpf(x))
                assert low <= true * (1 + mp.mpf("1e-25")) <= high * (1 + mp.mpf("1e-24"))
                if true > 1e-9:
                    assert high - low <= 2e-3 * true


# ---- continuous losses, against losses rounded down and up ---------------------------------------------------------


def rounded_laplaces(eps, h):
    """P[L in cell] of one Laplace answer, with L rounded to hℤ: index of the first point, masses if rounded down."""
    points = np.arange(math.floor(-eps / h) - 1, math.ceil(eps / h) + 2)
    edges = points * h
    tail = np.where(edges > eps, 0.0, np.where(edges <= -eps, 1.0, 1 - np.exp((edges - eps) / 2) / 2))  # P[L ≥ edge]
    return int(points[0]), np.append(-np.diff(tail), tail[-1])


def rounded_truth(eps, inner, rate, times, h, up, backward=False):
    """δ of sampled Laplace sums with every loss moved the same way: by plain convolution, no transform."""
    first, one = rounded_laplaces(eps, h)
    first = first + up
    law = one
    for _ in range(inner - 1):
        law = np.convolve(law, one)
    losses = h * (inner * first + np.arange(len(law)))
    if backward:  # Laplace noise is symmetric: the same masses are those of −L under Q
        mapped, masses = -np.log1p(rate * np.expm1(-losses)), law
    else:  # mass (1−q)Q + qP, and Q by Q = e^{−L}P of rounded losses, which again moves all one way
        p_mass, q_mass = law, law[::-1]  # Q of −l is P of l: Q-masses of the cells, mirrored
        size = len(law)
        q_losses = h * (-(inner * first) - np.arange(size)[::-1]) + (2 * inner * h if up else 0.0)
        mapped = np.concatenate([np.log1p(rate * np.expm1(losses)), np.log1p(rate * np.expm1(q_losses))])
        masses = np.concatenate([rate * p_mass, (1 - rate) * q_mass])
    index = (np.ceil if up else np.floor)(mapped / h).astype(int)
    step = np.bincount(index - index.min(), masses)
    total = step
    for _ in range(times - 1):
        total = np.convolve(total, step)
    places = h * (times * index.min() + np.arange(len(total)))
    return lambda t: float((total * -np.expm1(np.minimum(t - places, 0.0)))[places > t].sum())


@pytest.mark.parametrize("backward", [False, True])
def test_sampled_laplace_sums_lie_between_losses_rounded_down_and_up(backward):
    eps, inner, rate, times, h = 0.4, 3, 0.2, 4, 2.0**-11
    loss = times * Poisson(rate).amplify(inner * L.LaplaceLoss(eps))
    low, high = (rounded_truth(eps, inner, rate, times, h, up, backward) for up in (False, True))
    t = np.linspace(0.0, 0.4, 5)
    found = loss.backward(t) if backward else loss.forward(t)
    for x, lower, upper in zip(t.tolist(), *(side.tolist() for side in found), strict=True):
        assert lower <= high(x)
        assert upper >= low(x)
        assert upper - lower <= 1e-3 * upper
        assert high(x) - low(x) <= 0.1 * high(x) + 0.01


# ---- the inner law -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "count", "h", "weight"),
    [(sampled(), 10, 0.00136, 1.0), (sampled().reverse, 10, 0.0005, 0.0), (L.LaplaceLoss(0.3), 5, 0.002, 1.0),
     (L.GaussianLoss(0.5), 3, 0.01, 1.0), (L.GaussianLoss(0.5), 3, 0.01, 0.0)],
)  # fmt: skip
def test_every_mass_of_the_inner_law_is_held_by_a_plain_convolution(loss, count, h, weight):
    found = atoms(((count, loss),), h, 1e-13, 1e-7, weight)
    part = discretise(loss, h, 1e-13 / count, 1e-30 if weight and math.isinf(loss.supremum()[1]) else 1e-7 / count)
    law = part.masses
    for _ in range(count - 1):
        law = np.convolve(law, part.masses)
    places = np.round(found.losses / h).astype(int) - count * part.start
    inside = (places >= 0) & (places < len(law))
    plain = np.where(inside, law[np.clip(places, 0, len(law) - 1)], 0.0)
    plain_excess = 1 + 1e-9 + 3 * count * abs(part.excess)
    # both laws dominate, with masses that differ by rounding: never below, but for what profiles cannot tell
    assert np.all(found.masses * plain_excess + 1e-15 * plain.max() >= plain)
    for theta in (-1.0, 0.0, 1.0, 4.0):  # what is too much is in the noise, at any tilt
        unit = np.exp(theta * found.losses)
        surplus = float(((found.masses - plain * plain_excess)[1:] * unit[1:]).sum())
        assert surplus <= float((found.noise * unit).sum()) * math.e + 1e-12 * float((plain * unit).sum())


def test_masses_laid_on_a_lattice_keep_both_measures():
    rng = np.random.default_rng(3)
    places, masses, h = rng.normal(size=50), rng.random(50), 0.01
    start, (on,) = split_onto_lattice(places, (masses,), h)
    points = h * (start + np.arange(len(on)))
    assert on.sum() == pytest.approx(masses.sum(), rel=1e-14)
    assert (on * np.exp(-points)).sum() == pytest.approx((masses * np.exp(-places)).sum(), rel=1e-12)
    for t in (-1.0, 0.0, 0.3):  # and never lose a profile
        before = (masses * -np.expm1(np.minimum(t - places, 0.0))).sum()
        assert (on * -np.expm1(np.minimum(t - points, 0.0))).sum() >= before * (1 - 1e-14)


@pytest.mark.parametrize("rate", [0.1, 0.7])
def test_what_sampling_leaves_of_a_split_is_within_its_bounds(rate):
    """Two cells of width h, split as dots are, under the sampled pair: mean, variance and reach, by listing."""
    h, l = 0.02, (0.313, -0.127)  # noqa: E741
    below = [h * math.floor(x / h) for x in l]
    share = [math.expm1(a - x) / math.expm1(-h) for a, x in zip(below, l, strict=True)]
    before = math.exp(sum(l))  # P/Q of the outcome
    posterior = rate * before / (1 - rate + rate * before)
    g = lambda s: math.log1p(rate * math.expm1(s))  # noqa: E731
    mean = square = normal = 0.0
    for labels in product((0, 1), repeat=2):
        p = math.prod(s if up else 1 - s for s, up in zip(share, labels, strict=True))
        total = sum(a + h * up for a, up in zip(below, labels, strict=True))
        q = p * math.exp(sum(l) - total)
        mass, moved = posterior * p + (1 - posterior) * q, g(total) - g(sum(l))
        mean, square, normal = mean + mass * moved, square + mass * moved**2, normal + mass * math.exp(-moved)
    part = discretise(L.LaplaceLoss(0.4), h, 1e-12, 1e-9).splits
    two = through_sampling(type(part)(*(2 * value for value in part)))
    assert normal == pytest.approx(1.0, abs=1e-12)
    assert 0 <= mean <= two.drift
    assert square <= two.scatter


# ---- Rényi moments, read off the lattice ----------------------------------------------------------------------------


@pytest.mark.parametrize(("inner", "rate"), [((0.3, 0.2), 0.1), ((1.1, 0.47, 0.2), 0.35), ((2.5, 0.9), 0.02)])
def test_moments_of_sampled_coins_hold_those_of_all_outcomes(inner, rate):
    loss = Poisson(rate).amplify(sum((L.PureLoss(eps) for eps in inner), L.nothing()))
    with mp.workdps(40):
        q = mp.mpf(rate)
        paths = list(product(*(coin(mp.mpf(eps)) for eps in inner)))
        pairs = [(mp.fprod(p for p, _ in path), mp.fprod(p for _, p in path)) for path in paths]
        mixed = [((1 - q) * b + q * a, b) for a, b in pairs]
        for side, law in ((loss, mixed), (loss.reverse, [(b, a) for a, b in mixed])):
            found = sampled_moments(side)
            truth = mp.fsum(a * mp.log(a / b) for a, b in law)
            assert found.mean().lower <= truth <= found.mean().upper
            assert found.mean().relative_gap < 1e-3
            for s in (-0.7, -0.3, 1e-4, 0.4, 1.0, 2.5, 9.0, 40.0):
                truth = mp.log(mp.fsum(a * (a / b) ** mp.mpf(s) for a, b in law))
                assert found.log_moment(s).lower <= truth <= found.log_moment(s).upper
                assert found.log_moment(s).gap < 1e-3 * abs(truth)


def test_moments_between_whole_orders_agree_with_sums_at_whole_ones():
    """The binomial sum is another path; between whole orders convexity says what is possible."""
    loss = Poisson(0.1).amplify(10 * sampled())
    found = sampled_moments(loss)
    for s in (1, 2, 3):
        exact = loss.whole_moment(s)
        assert found.log_moment(float(s)).lower <= exact.upper
        assert found.log_moment(float(s)).upper >= exact.lower
        assert s == 3 or found.log_moment(float(s)).gap < 2e-3 * exact.upper  # large orders are about the far tail
    assert loss.renyi(1.5).relative_gap < 2e-3
    assert loss.renyi(1.5).upper <= loss.renyi(2.0).upper
    assert loss.kl().lower <= loss.renyi(1.5).upper


# ---- batches without replacement ------------------------------------------------------------------------------------


def replaced(n=20, m=3):
    inner = 4 * L.LaplaceLoss(0.3, relation=ReplaceOne) + L.GaussianLoss(0.4, relation=ReplaceOne)
    return WithoutReplacement(n, m).amplify(inner)


def test_batches_of_sums_have_the_diluted_profile():
    """One batch: the law's profile lies above that of the definition, and close to it."""
    loss = replaced()
    assert isinstance(sampled_sum(loss), Replaced)
    law = discretise(loss, 2**-9, 1e-20, 1e-12)
    for t in (0.0, 0.01, 0.1, 0.4):
        high = float((law.masses * np.maximum(-np.expm1(t - law.losses), 0.0)).sum()) + law.infinite
        truth = loss.forward(np.array([t]), 1e-8)
        assert truth.lower[0] <= high <= truth.upper[0] * 1.001
        reflected = float((law.masses * np.maximum(-np.expm1(-t - law.losses), 0.0)).sum()) + law.infinite
        assert reflected == pytest.approx(-math.expm1(-t) + math.exp(-t) * high, abs=1e-9)


def test_batches_of_sums_agree_with_their_tables():
    loss = replaced()
    table = dataclasses.replace(loss, inner=tabulate_sum(loss.inner, 1e-4))
    t = np.array([0.0, 0.05, 0.3, 1.0])
    found, other = (10 * loss).forward(t), (10 * table).forward(t)
    assert np.all(found.lower <= other.upper)
    assert np.all(found.upper >= other.lower)
    assert np.all(found.upper - found.lower <= 1e-3 * found.upper)
    for found, other in ((loss.mean(), table.mean()), (loss.log_moment(0.7), table.log_moment(0.7))):
        assert found.lower <= other.upper
        assert found.upper >= other.lower
        assert found.relative_gap < 1e-3


# ---- which path ----------------------------------------------------------------------------------------------------


def test_sampled_sums_agree_with_their_tables():
    """Another path: the inner profile at many nodes, and what convexity says between them."""
    inner = 10 * sampled()
    loss = Poisson(0.1).amplify(inner)
    table = dataclasses.replace(loss, inner=tabulate_sum(inner, 1e-4))
    t = np.array([0.0, 0.01, 0.05, 0.2, 0.6])
    assert engine(20 * loss).method == engine(20 * table).method == "lattice"
    for found, other in (
        ((20 * loss).forward(t), (20 * table).forward(t)),
        ((20 * loss).backward(t[:3]), (20 * table).backward(t[:3])),
    ):
        assert np.all(found.lower <= other.upper)
        assert np.all(found.upper >= other.lower)


def test_long_sums_and_single_losses_take_another_path():
    assert sampled_sum(Poisson(0.1).amplify(5000 * L.LaplaceLoss(0.01))) is None
    assert sampled_sum(sampled()) is None
    assert sampled_sum(L.LaplaceLoss(1.0)) is None


def test_a_batch_in_a_batch_in_a_batch_is_at_most_its_parts():
    """Two levels of sampling: at most the loss without the outer one, at least what the profile is diluted to."""
    twice = 3 * Poisson(0.3).amplify(2 * Poisson(0.4).amplify(2 * L.LaplaceLoss(0.5)))
    once = 3 * (2 * Poisson(0.4).amplify(2 * L.LaplaceLoss(0.5)))
    t = np.array([0.0, 0.1, 0.4])
    assert np.all(twice.forward(t).lower <= once.forward(t).upper)
    single = Poisson(0.3).amplify(2 * Poisson(0.4).amplify(2 * L.LaplaceLoss(0.5)))
    assert np.all(twice.forward(t).upper >= single.forward(t).lower)
