"""How many right guesses a whole privacy loss allows: the recursion against a linear program."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import ndtri

import sfumato as sf
from sfumato.audit import guesses as guesses_of
from tests.noise.sources import Recorded


def tail(v, r, honest):
    """P(B ≥ v) in exact arithmetic, for a rational chance."""
    return sum(Fraction(math.comb(r, k)) * honest**k * (1 - honest) ** (r - k) for k in range(max(v, 0), r + 1))


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
    monkeypatch.setattr("sfumato.audit.guesses.LINES", 40)
    found = guesses_of.p_value(right, guesses, canaries, loss)
    worst = worst_law(right, guesses, canaries, guesses_of.Tangents(loss))
    assert worst - 1e-7 <= found <= worst * 1.002 + 1e-7


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_tangents_lie_below_the_trade_off_function_and_near_it(loss):
    f = guesses_of.Tangents(loss)
    for alpha in (0.0, 1e-4, 0.01, 0.2, 0.5, 0.9, 1.0):
        truth = loss.trade_off(alpha)
        assert f(alpha) <= truth.upper + 1e-12
        assert f(alpha) >= truth.lower - 2e-3


@given(r=st.integers(1, 30), share=st.floats(0, 1), eps=st.floats(0.05, 3))
def test_it_covers_independent_coins(r, share, eps):
    v = round(share * r)
    exact = float(tail(v, r, Fraction(1 / (1 + math.exp(-eps)))))
    assert guesses_of.p_value(v, r, r, sf.loss.PureLoss(eps)) >= exact * (1 - 1e-6)


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
