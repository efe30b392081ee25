"""Randomized response: its law from all bit strings, its price by enumeration, estimates without bias."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import RandomizedResponse
from sfumato.mechanisms.randomized_response import Truth
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
    from sfumato.noise.table import Words

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


@pytest.mark.parametrize(("eps", "k"), [(1.0, 2), (3.0, 2), (1.0, 8)])
def test_the_error_holds_and_is_not_wasteful(eps, k):
    """The exact tail of Bin(m, p) + Bin(n − m, q), convolved, for several m."""
    mechanism, n, confidence = RandomizedResponse(eps, k), 300, 0.95
    t = mechanism.error(confidence, people=n)
    missed = []
    for m in (0, 1, 75, 150, 299, 300):
        p, q = mechanism.truth, mechanism.lie
        tail = np.convolve(binomial(m, p), binomial(n - m, q))
        found = (np.arange(n + 1) - n * q) / (p - q)
        missed.append(tail[np.abs(found - m) > t].sum())
    assert max(missed) <= 1 - confidence
    smaller = 0.75 * t  # Chernoff's bound is not far from the truth
    found = (np.arange(n + 1) - n * mechanism.lie) / (mechanism.truth - mechanism.lie)
    assert (
        max(binomial(n, p)[np.abs(found - m) > smaller].sum() for m, p in ((0, mechanism.lie), (n, mechanism.truth)))
        > 0.02
    )


def binomial(n, p):
    found = np.ones(1)
    for _ in range(n):
        found = np.convolve(found, [1 - p, p])
    return found


def test_the_error_of_nobody_and_of_noise():
    assert RandomizedResponse(0.0).error(people=10) == math.inf
    assert RandomizedResponse(0.0).error(people=0) == 0
    many = RandomizedResponse(1.0).error(people=10**12)
    assert 1.9e6 < many < 3.2e6  # 1.96 standard deviations are 2.12e6


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
