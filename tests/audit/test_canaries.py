"""One-run audits of training: p-values are exact or worst-case, and only broken training is accused."""

import json
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import ndtri

import sfumato as sf
from sfumato.audit.canaries import Tangents, count_right, epsilon_lower_bound, p_value_of_epsilon, p_value_of_loss
from sfumato.errors import InvalidParameter
from tests.audit.noisy_training import Canary, MeanClipped, Training
from tests.noise.sources import Recorded


def tail(v, r, honest):
    """P(B ≥ v) in exact arithmetic, for a rational chance."""
    return sum(Fraction(math.comb(r, k)) * honest**k * (1 - honest) ** (r - k) for k in range(max(v, 0), r + 1))


@given(r=st.integers(1, 40), share=st.floats(0, 1), eps=st.floats(0, 5))
def test_without_delta_the_p_value_is_the_binomial_tail(r, share, eps):
    v = round(share * r)
    exact = float(tail(v, r, Fraction(1 / (1 + math.exp(-eps)))))
    assert exact <= p_value_of_epsilon(v, r, r, eps, 0.0) <= min(1.0, exact * (1 + 1e-8))


@given(r=st.integers(2, 12), share=st.floats(0.2, 1), eps=st.floats(0, 3), moved=st.floats(1e-3, 1))
def test_with_delta_it_covers_every_way_in_which_guesses_may_be_given_away(r, share, eps, moved):
    """Against a linear program over all laws of F with E[F] ≤ 2mδ."""
    v, m = max(1, round(share * r)), r + 3
    honest = Fraction(1 / (1 + math.exp(-eps)))
    reached = [float(tail(v - i, r, honest)) for i in range(m + 1)]
    law = linprog([-p for p in reached], A_ub=[list(range(m + 1))], b_ub=[moved], A_eq=[[1] * (m + 1)], b_eq=[1])
    assert p_value_of_epsilon(v, r, m, eps, moved / (2 * m)) >= -law.fun - 1e-9


@given(r=st.integers(1, 60), m=st.integers(60, 200), share=st.floats(0, 1), delta=st.floats(0, 1e-2))
def test_the_p_value_grows_with_epsilon_so_that_bisection_finds_the_end(r, m, share, delta):
    v = round(share * r)
    found = [p_value_of_epsilon(v, r, m, eps, delta) for eps in np.linspace(0, 6, 61)]
    assert all(a <= b + 1e-12 for a, b in pairwise(found))
    bound = epsilon_lower_bound(v, r, m, delta, 0.01)
    assert bound == 0 or p_value_of_epsilon(v, r, m, bound, delta) <= 0.01 < p_value_of_epsilon(
        v, r, m, bound + 1e-5, delta
    )


@pytest.mark.parametrize("eps", [0.5, 1.0, 2.0])
def test_coins_that_tell_the_truth_as_often_as_they_may_are_rarely_accused(eps):
    """Exactly: right guesses about randomized responses are binomial, so the chance of an alarm is a sum."""
    r, honest = 200, 1 / (1 + math.exp(-eps))
    alarms = [v for v in range(r + 1) if epsilon_lower_bound(v, r, r, 0.0, 0.01) > eps]
    chance = float(tail(min(alarms), r, Fraction(honest)))
    assert 0.001 < chance <= 0.01  # and not much less: the bound is sharp


def test_guesses_take_the_ends_of_the_scores():
    inside = np.array([True, False, True, False, True])
    order = np.argsort([5.0, 1.0, 4.0, 2.0, 3.0])
    assert [count_right(inside, order, r) for r in (1, 2, 3, 4, 5)] == [1, 2, 3, 4, 5]
    assert count_right(~inside, order, 4) == 0


def test_a_right_training_is_not_accused_and_a_wrong_one_is():
    """The right one is ε = 2.50 at δ = 1e-9; 1e-6 is the probability of a false alarm here."""
    canaries = [Canary(i) for i in range(600)]
    right, wrong = Training(600), MeanClipped(600)
    fine = sf.audit.one_run(right.train, canaries, right.score, loss=right.loss(), delta=1e-9, confidence=1 - 1e-6)
    assert not fine.violated and "no violation" in str(fine)
    broken = sf.audit.one_run(wrong.train, canaries, wrong.score, loss=wrong.loss(), delta=1e-9, confidence=1 - 1e-6)
    assert broken.violated and broken.epsilon.lower > broken.claimed
    assert broken.right > 0.99 * broken.guesses
    assert broken.epsilon.lower <= broken.ceiling
    seen = json.loads(broken.to_json())
    assert seen["violated"] and seen["canaries"] == 600


def test_a_right_training_shows_something():
    """Or the audit would look at nothing: about 58 of 100 guesses are right. At the 1 % level, with recorded bits."""
    canaries, training = [Canary(i) for i in range(2000)], Training(2000, steps=1, sigma=1.0)
    found = sf.audit.one_run(training.train, canaries, training.score, loss=training.loss(), delta=1e-6)
    assert 0.5 < found.epsilon.lower < found.claimed
    assert max(map(len, str(found).splitlines())) <= 80


def test_scores_that_are_no_numbers_say_nothing():
    found = sf.audit.one_run(len, list(range(50)), lambda model, canary: math.nan, epsilon=0.0)
    assert found.epsilon.lower < 1
    exact = sf.audit.one_run(set, list(range(50)), lambda model, i: math.inf if i in model else -math.inf, epsilon=1.0)
    assert exact.violated and exact.right == exact.guesses


def failing(included):
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"train": failing}, "found:  ZeroDivisionError"),
        ({"score": lambda model, canary: "much"}, "found:  ValueError"),
        ({"canaries": [1, 2]}, "number of canaries"),
        ({"epsilon": 1.0, "loss": sf.loss.GaussianLoss(1)}, "either a loss or an epsilon"),
        ({"loss": sf.loss.GaussianLoss(1).remove}, "not one of its directions"),
        ({"delta": 2.0}, "delta"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_wrong_use_is_explained(words, told):
    use = {"train": len, "canaries": list(range(20)), "score": lambda model, canary: 0.0, **words}
    with pytest.raises(InvalidParameter, match=told):
        sf.audit.one_run(use.pop("train"), use.pop("canaries"), use.pop("score"), **use)


def test_where_delta_alone_allows_to_publish_the_canaries_nothing_is_said():
    found = sf.audit.one_run(set, list(range(1000)), lambda model, i: i in model, delta=1e-3)
    assert found.epsilon.lower == 0 and found.ceiling == 0 and not found.violated


def normal(shift, n, seed):
    return ndtri(np.random.default_rng(seed).random(n)) + shift


LOSSES = [sf.loss.PureLoss(1.0), sf.loss.GaussianLoss(0.7), sf.loss.ApproxLoss(0.5, 0.05), sf.loss.LaplaceLoss(2.0)]


def worst_law(right, guesses, canaries, f):
    """The largest P(right ≥ v) over all laws that keep R_{i+1} ≤ 1 − f(H_i), as a linear program over tangents."""
    rows, limits, j = [], [], np.arange(guesses + 1)
    for i in range(guesses):
        high, wrong = (j * (j >= i + 1) / canaries, (guesses - j) * (j >= i) / canaries)
        for at_zero, slope in zip(f.at_zero, f.slope, strict=True):
            rows.append(high - slope * wrong)  # 1 − R ≥ at_zero − slope·H
            limits.append(1 - at_zero)
    found = linprog(-(j >= right).astype(float), A_ub=rows, b_ub=limits, A_eq=[np.ones(guesses + 1)], b_eq=[1])
    return -found.fun


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize(("right", "guesses", "canaries"), [(5, 6, 6), (6, 6, 20), (7, 10, 12), (9, 14, 30)])
def test_the_recursion_is_the_worst_law_of_all(loss, right, guesses, canaries, monkeypatch):
    monkeypatch.setattr("sfumato.audit.canaries.LINES", 40)
    found = p_value_of_loss(right, guesses, canaries, loss)
    worst = worst_law(right, guesses, canaries, Tangents(loss))
    assert worst - 1e-7 <= found <= worst * 1.002 + 1e-7


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_tangents_lie_below_the_trade_off_function_and_near_it(loss):
    f = Tangents(loss)
    for alpha in (0.0, 1e-4, 0.01, 0.2, 0.5, 0.9, 1.0):
        truth = loss.trade_off(alpha)
        assert f(alpha) <= truth.upper + 1e-12
        assert f(alpha) >= truth.lower - 2e-3


@given(r=st.integers(1, 30), share=st.floats(0, 1), eps=st.floats(0.05, 3))
def test_it_covers_independent_coins(r, share, eps):
    v = round(share * r)
    exact = float(tail(v, r, Fraction(1 / (1 + math.exp(-eps)))))
    assert p_value_of_loss(v, r, r, sf.loss.PureLoss(eps)) >= exact * (1 - 1e-6)


def test_a_loss_tells_more_than_its_epsilon():
    """Scores 0.6 apart under a claim of μ = 0.25: refuted as a loss, not by its ε at δ; with recorded coins."""
    canaries = list(range(4000))
    scores = normal(0.0, 4000, 5)
    found = sf.audit.one_run(
        set,
        canaries,
        lambda inside, i: scores[i] + 0.6 * (i in inside),
        loss=sf.loss.GaussianLoss(0.25),
        source=Recorded("coins"),
    )
    assert found.violated and found.epsilon.lower < found.claimed and found.chance < 0.005
    assert "chance" in str(found)
