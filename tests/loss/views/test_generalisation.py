"""What losses imply about over-fitting: small cases by enumeration, and simulated mechanisms that over-fit."""

import itertools
import math

import numpy as np
import pytest

import sfumato as sf

L = sf.loss
PURE = L.PureLoss(0.8, relation=sf.ReplaceOne)


def coin_flips(eps: float):
    """P(y | x): each person's bit by randomized response."""
    keep = math.exp(eps) / (1 + math.exp(eps))
    return lambda x, y: math.prod(keep if a == b else 1 - keep for a, b in zip(x, y, strict=True))


def noisy_count(eps: float):
    """P(y | x): the number of ones plus discrete Laplace noise, on −30 … 33 (what is cut off is below 1e-10)."""
    q = math.exp(-eps)
    return lambda x, y: (1 - q) / (1 + q) * q ** abs(y - sum(x))


def all_or_nothing(eps: float, delta: float):
    """P(y | x): with probability delta everything is shown, else coins."""
    coins = coin_flips(eps)
    return lambda x, y: delta * (y[1] == x) if y[0] else (1 - delta) * coins(x, y[1])


BITS = list(itertools.product((0, 1), repeat=3))
CASES = {
    "coins": (coin_flips(0.8), BITS, PURE),
    "a noisy count": (noisy_count(0.8), list(range(-30, 34)), PURE),
    "all or nothing": (
        all_or_nothing(0.5, 1e-7), [(shown, bits) for shown in (0, 1) for bits in BITS],
        L.ApproxLoss(0.5, 1e-7, relation=sf.ReplaceOne),
    ),
}  # fmt: skip


def joint_and_product(law, outputs, ones: float):
    """The laws of (data, output) and of (fresh data, output), for three people of whom each is 1 with this chance."""
    prior = np.array([math.prod(ones if b else 1 - ones for b in x) for x in BITS])
    joint = prior[:, None] * np.array([[law(x, y) for y in outputs] for x in BITS])
    return joint, prior[:, None] * joint.sum(axis=0)[None, :]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ones", [0.5, 0.1])
def test_exact_information_of_small_cases_is_below_the_bounds(case, ones):
    law, outputs, loss = CASES[case]
    joint, product = joint_and_product(law, outputs, ones)
    found = loss.generalisation(3)
    seen = joint > 0
    exact = float(np.sum(joint[seen] * np.log(joint[seen] / product[seen])))
    assert 0 < exact <= found.mutual_information().upper
    for beta in (1e-3, 0.05, 0.3):
        k = found.max_information(beta).upper
        assert float(np.sum(np.maximum(joint - math.exp(k) * product, 0.0))) <= beta


@pytest.mark.parametrize("case", CASES)
def test_exact_over_fitting_of_small_cases_is_below_the_bound(case):
    """The statistic that over-fits most, for each output; the largest expected over-fitting of all."""
    law, outputs, loss = CASES[case]
    joint, product = joint_and_product(law, outputs, 0.5)
    share = np.array([sum(x) / 3 for x in BITS])
    gaps = np.abs(((joint - product) * share[:, None]).sum(axis=0))  # of "is 1", and of "is 0" where that is higher
    assert 0 < gaps.sum() <= loss.generalisation(3).expectation().upper


def test_the_expected_over_fitting_is_attained():
    """A set that contains each value by a coin: people are in it more often than anybody else.

    200 runs of 1,000 people among 20,000 values: the mean gap has a deviation below 0.0012.
    """
    eps, people, values, rng = 0.5, 1000, 20_000, np.random.default_rng(1)
    keep = math.exp(eps) / (1 + math.exp(eps))
    gaps = []
    for _ in range(200):
        data = rng.integers(0, values, people)
        present = np.zeros(values, bool)
        present[data] = True
        inside = rng.random(values) < np.where(present, keep, 1 - keep)
        gaps.append(inside[data].mean() - inside.mean())
    bound = (2 * L.RandomizedResponseLoss(eps, relation=sf.ReplaceOne)).generalisation(people).expectation().upper
    assert bound == pytest.approx(math.tanh(eps / 2), rel=1e-6)
    assert 0.93 * bound < np.mean(gaps) < bound


def test_a_mechanism_that_over_fits_stays_within_the_bounds_with_high_probability():
    """Noisy scores of 100 useless features, and the best is chosen; 300 times.

    A mechanism that keeps to the bounds exceeds one of them at most 30 times on average, and 55 times with probability
    below 1e-5.
    """
    n, sigma, rng = 20_000, 200.0, np.random.default_rng(2)
    found = (100 * L.GaussianLoss(1 / sigma, relation=sf.ReplaceOne)).generalisation(n)  # each count moves by 1
    gap, answer = found.high_probability(0.1).upper, found.answers(0.1, error=4 * sigma / n, miss=6.4e-5).upper
    assert max(gap, answer) < 0.2
    counts = rng.binomial(n, 0.5, (300, 100))
    noisy = counts + rng.normal(0, sigma, counts.shape)
    best = np.argmax(noisy, axis=1)[:, None]
    gaps = np.take_along_axis(counts, best, 1) / n - 0.5
    answers = np.take_along_axis(noisy, best, 1) / n - 0.5
    assert np.sum(np.abs(gaps) > gap) < 55 and np.sum(np.abs(answers) > answer) < 55
    assert 0.0005 < gaps.mean() <= found.expectation().upper


def test_smaller_losses_and_larger_data_over_fit_less():
    few, many = (PURE.generalisation(n) for n in (100, 1000))
    assert many.high_probability(0.05).upper < few.high_probability(0.05).upper
    small = L.PureLoss(0.1, relation=sf.ReplaceOne).generalisation(1000)
    assert small.high_probability(0.05).upper < many.high_probability(0.05).upper
    assert small.answers(0.05).upper < many.answers(0.05).upper
    assert small.answers(0.05).upper <= small.answers(0.05, error=0.01, miss=1e-4).upper
    assert small.expectation().upper < many.expectation().upper


def test_the_theorem_of_jung_and_others_is_never_better():
    for loss in (PURE, L.GaussianLoss(0.1, relation=sf.ReplaceOne), L.ApproxLoss(0.2, 1e-6, relation=sf.ReplaceOne)):
        found = loss.generalisation(1000).answers(0.05).upper
        for eps in (0.05, 0.1, 0.2, 0.4, 0.8, 1.5):
            delta = loss.delta(eps).upper
            assert found <= min(1.0, math.expm1(eps) + 2 * (2 * delta / 0.05)) * (1 + 1e-6)


def test_nothing_is_promised_where_everything_may_leak():
    loss = L.ApproxLoss(0.1, 0.5, relation=sf.ReplaceOne).generalisation(10)
    assert loss.high_probability(0.05).upper == 1.0 and loss.max_information(0.05).upper == math.inf
    assert loss.mutual_information().upper == math.inf and loss.answers(0.05).upper == 1.0


def test_add_remove_losses_are_converted_at_their_price_and_one_direction_is_refused():
    assert L.GaussianLoss(0.1).generalisation(9).loss == L.GaussianLoss(0.2, relation=sf.ReplaceOne)
    with pytest.raises(sf.errors.MixedRelations, match="do:"):
        L.GaussianLoss(0.1).remove.generalisation(9)
    for wrong in (0, -1, 1.5, math.nan, "9"):
        with pytest.raises(sf.errors.InvalidParameter):
            PURE.generalisation(wrong)
    for wrong in (0.0, 1.0, math.nan, -0.1):
        with pytest.raises(sf.errors.InvalidParameter):
            PURE.generalisation(9).high_probability(wrong)
