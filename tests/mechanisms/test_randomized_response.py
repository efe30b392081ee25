"""Randomized response: its law from all bit strings, its price by enumeration, estimates without bias."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import RandomizedResponse
from sfumato.mechanisms.randomized_response import Tally, Truth, spread_out
from sfumato.noise.balls import ball, precision
from tests.mechanisms.oracle import assert_within, e, exact
from tests.noise.sources import RanOut, Recorded, Scripted, all_bit_strings


@exact
def law(eps, k, value):
    total = e(eps) + (k - 1)
    return {answer: (e(eps) if answer == value else arb(1)) / total for answer in range(k)}


@pytest.mark.parametrize(("eps", "k"), [(0.0, 2), (0.3, 2), (1.0, 2), (2.0, 3), (1.0, 7), (0.01, 3)])
def test_the_loss_is_that_of_the_law(eps, k):
    assert_within(
        RandomizedResponse(eps, k).loss(), [(law(eps, k, 0), law(eps, k, 1))], tight=None if eps == 0 else 0.999
    )


@pytest.mark.parametrize(("eps", "k", "value"), [(1.0, 2, 0), (1.0, 2, 1), (0.7, 3, 1), (1.5, 4, 3)])
def test_one_answer_has_its_law(eps, k, value):
    """Every string of up to 22 bits: found ≤ P ≤ found + left."""
    source = Scripted()
    mechanism = RandomizedResponse(eps, k, source=source)
    object.__setattr__(mechanism.honest, "words", tiny(mechanism))
    found, left = all_bit_strings(lambda: mechanism.release(value), source, 12)
    assert left < Fraction(1, 4) and set(found) == set(range(k))
    with precision(300):
        for answer, p in law(eps, k, value).items():
            assert ball(found[answer]) <= p <= ball(found[answer] + left)


def tiny(mechanism):
    from sfumato.noise.draw_table import Words

    return Words(guide=2, word=3, coin=2, step=1)


def test_the_chance_of_truth_is_certified_at_any_size():
    for eps, k in [(0, 2), (1e-90, 2), (1e90, 5), (0.5, 10**9)]:
        with precision(200):
            found = Truth(Fraction(eps), k).ball(200)
            assert found > 0 and not found > 1 and found.rad() < 1e-50


@pytest.mark.parametrize(
    ("value", "k", "answer"),
    [
        (True, 2, True),
        (np.True_, 2, True),
        (1, 2, 1),
        (5, 3, 2),
        (-5, 3, 0),
        (10**30, 4, 3),
        ([True, False], 2, [True, False]),
        (np.array([[True], [False]]), 2, [[True], [False]]),
        ([0, 1, 2, 9, -9], 3, [0, 1, 2, 2, 0]),
        (np.array([2**64 - 1], np.uint64), 4, [3]),
        (True, 3, 1),
        (np.array([], np.int64), 3, []),
    ],
)
def test_values_outside_are_moved_to_the_nearest_and_kinds_are_kept(value, k, answer):
    found = RandomizedResponse(200.0, k).release(value)  # lies with probability e^-200
    assert np.asarray(found).tolist() == answer
    if not isinstance(answer, list):
        assert type(found) is type(answer)
    elif answer:
        assert np.asarray(found).dtype == (np.bool_ if isinstance(np.ravel(answer)[0], np.bool_) else np.int64)


@pytest.mark.parametrize("value", [0.5, [0.0, 1.0], "yes", None, [[1], [1, 0]], math.nan])
def test_other_types_are_refused_before_a_bit_is_drawn(value):
    with pytest.raises(InvalidParameter, match="found:"):
        RandomizedResponse(1.0, source=Scripted()).release(value)
    with pytest.raises(RanOut):
        RandomizedResponse(1.0, source=Scripted()).release(1)


@pytest.mark.parametrize("arguments", [(-1,), (math.nan,), (math.inf,), (1, 1), (1, 2.5), (1, 10**10), ("1",)])
def test_wrong_parameters_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        RandomizedResponse(*arguments)


def test_the_relation_is_that_of_values_unless_said_otherwise():
    assert RandomizedResponse(1.0).loss() == sf.loss.RandomizedResponseLoss(1.0, relation=sf.ReplaceOne)
    assert RandomizedResponse(1.0, 4).loss(sf.AddRemove) == sf.loss.RandomizedResponseLoss(1.0, 4)


# ---- what the answers tell -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 5])
def test_estimates_are_unbiased_exactly(k):
    """E[count] = held·truth + (n − held)·lie, put through estimate's formula, is held."""
    mechanism, held = RandomizedResponse(0.8, k), np.arange(1, k + 1) * 100.0
    n = held.sum()
    counts = held * mechanism.truth + (n - held) * mechanism.lie
    assert (counts - n * mechanism.lie) / (mechanism.truth - mechanism.lie) == pytest.approx(held)
    answers = np.repeat(np.arange(k), np.arange(1, k + 1))
    direct = (np.arange(1, k + 1) - answers.size * mechanism.lie) / (mechanism.truth - mechanism.lie)
    assert mechanism.estimate(answers) == pytest.approx(direct)
    assert mechanism.estimate(answers).sum() == pytest.approx(answers.size)


@pytest.mark.parametrize(("eps", "k"), [(1.0, 2), (3.0, 2), (1.0, 8), (0.01, 2), (6.0, 1000)])
@pytest.mark.parametrize(("n", "confidence"), [(1, 0.9), (2, 0.5), (9, 0.99), (40, 0.95), (41, 0.999999)])
def test_the_error_is_the_least_for_all_that_may_be_true(eps, k, n, confidence):
    """The exact law of Bin(m, p) + Bin(n − m, q), convolved coin by coin, for every m."""
    mechanism = RandomizedResponse(eps, k)
    p, q, t = mechanism.truth, mechanism.lie, mechanism.error(confidence, people=n)
    found = (np.arange(n + 1) - n * q) / (p - q)
    laws = [np.convolve(binomial(m, p), binomial(n - m, q)) for m in range(n + 1)]

    def missed(radius):
        return max(law[np.abs(found - m) > radius].sum() for m, law in enumerate(laws))

    assert missed(t) <= 1 - confidence < missed(t - 1e-9 * n / (p - q))


def test_every_answer_of_four_people_is_counted():
    """All strings of truths and lies, one by one, and all that may be true."""
    mechanism, n = RandomizedResponse(1.5, 3), 4
    for confidence in (0.3, 0.6, 0.9):
        t, worst = mechanism.error(confidence, people=n), 0.0
        for values in product(range(3), repeat=n):
            missed = 0.0
            for answers in product(range(3), repeat=n):
                chance = math.prod(
                    mechanism.truth if a == v else mechanism.lie for a, v in zip(answers, values, strict=True)
                )
                missed += chance * (abs(mechanism.estimate(answers)[0] - values.count(0)) > t)
            worst = max(worst, missed)
        assert worst <= 1 - confidence


@pytest.mark.parametrize(("eps", "k", "above"), [(1.0, 2, 1.16), (4.0, 2, 1.6), (1.0, 30, 1.5)])
def test_the_error_of_many_holds_and_is_not_wasteful(eps, k, above):
    mechanism, n = RandomizedResponse(eps, k), 3000
    t, missed, p, q = mechanism.error(0.95, people=n), {1.0: 0.0, above: 0.0}, mechanism.truth, mechanism.lie
    found = (np.arange(n + 1) - n * q) / (p - q)
    for m in (0, 1, 700, 1500, 2999, 3000):
        law = np.convolve(binomial(m, p), binomial(n - m, q))
        missed = {by: max(most, law[np.abs(found - m) > t / by].sum()) for by, most in missed.items()}
    assert missed[1.0] <= 0.05 < missed[above]


@pytest.mark.parametrize(("eps", "k"), [(1.0, 2), (0.1, 2), (3.0, 5), (8.0, 100)])
def test_the_bound_for_many_is_above_what_all_cases_give(eps, k):
    for n in (1, 7, 500):
        for miss in (0.5, 0.05, 1e-9):
            tally = Tally.of_response(eps, k, n)
            assert tally._largest_error_bounded(miss) >= tally._largest_error_tried(miss) - tally.doubt


def binomial(n, p):
    found = np.ones(1)
    for _ in range(n):
        found = np.convolve(found, [1 - p, p])
    return found


def test_people_are_tried_far_ones_first_and_all_of_them():
    for n in (0, 1, 2, 37):
        order = list(spread_out(n))
        assert sorted(order) == list(range(n + 1)) and len(set(order)) == n + 1


def test_errors_are_missed_as_often_as_said():
    """4,000 recorded rounds of 40 people; 5 standard deviations above the promise: by chance below 1e-6."""
    mechanism = RandomizedResponse(1.0, 4, source=Recorded("tallies"))
    values, rounds = np.arange(40) % 4, 4000
    t = mechanism.error(0.9, people=40)
    wrong = sum(abs(mechanism.estimate(mechanism.release(values))[0] - 10) > t for _ in range(rounds))
    assert wrong <= rounds * 0.1 + 5 * math.sqrt(rounds * 0.09)


def test_the_error_of_nobody_and_of_noise():
    assert RandomizedResponse(0.0).error(people=10) == math.inf
    assert RandomizedResponse(0.0).error(people=0) == 0
    many = RandomizedResponse(1.0).error(people=10**12)
    assert many == pytest.approx(1.959964 * math.sqrt(10**12 * 0.1966119) / 0.4621172, rel=1e-4)
    assert RandomizedResponse(1000.0).error(people=10**6) < 0.1 and RandomizedResponse(1000.0).error(people=9) < 1e-12
    assert RandomizedResponse(1.0).error(0.0, people=5000) < 20


@pytest.mark.parametrize("answers", [[2], [-1], [0.5], [[0, 1]], ["x"]])
def test_answers_that_cannot_be_are_refused(answers):
    with pytest.raises(InvalidParameter):
        RandomizedResponse(1.0).estimate(answers)


def test_a_million_answers_come_back():
    """On recorded bits; a true law fails with probability below 1e-6."""
    values = np.arange(10**6) % 5 == 0
    mechanism = RandomizedResponse(1.0, source=Recorded("a million"))
    found = mechanism.estimate(mechanism.release(values))[1]
    assert abs(found - 200_000) < mechanism.error(1 - 1e-6, people=10**6)
