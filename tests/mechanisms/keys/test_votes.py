"""The threshold of votes that a unit shares evenly by its keys: exact for every number of keys, and the least."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from sfumato.aggregates.price import Mu, Pure
from sfumato.mechanisms.keys.threshold_selection import threshold, threshold_of_votes

WHOLE, MOST = 2**20, 100


def normal_tail(t, sigma):
    """P(rounded Gaussian ≥ t)."""
    with mp.workdps(60):
        return mp.erfc((mpf(t) - mpf("0.5")) / (mpf(sigma) * mp.sqrt(2))) / 2


def laplace_tail(t, scale):
    """P(discrete Laplace ≥ t), t ≥ 1."""
    with mp.workdps(60):
        a = mp.exp(-1 / mpf(scale))
        return a**t / (1 + a)


def leak(tail, tau, t, squares):
    """1 − (1 − P(v_t + N ≥ τ))^t."""
    vote = math.isqrt(WHOLE**2 // t) if squares else WHOLE // t
    with mp.workdps(60):
        return 1 - (1 - tail(tau - vote)) ** t


@pytest.mark.parametrize("delta", [1e-3, 5e-7, 1e-12])
@pytest.mark.parametrize("price", [Mu(0.05), Mu(0.5), Mu(4.0), Pure(0.1), Pure(2.0)])
def test_a_threshold_of_votes_holds_for_every_number_of_keys_and_is_the_least(price, delta):
    noise = price.scaled_noise(WHOLE, 1.0)
    tau = threshold_of_votes(noise.law(), delta, MOST, WHOLE, price.squares)
    tail = (lambda t: normal_tail(t, noise.sigma)) if price.squares else (lambda t: laplace_tail(t, noise.scale))
    assert all(leak(tail, tau, t, price.squares) <= mpf(delta) for t in range(1, MOST + 1))
    assert any(leak(tail, tau - 1, t, price.squares) > mpf(delta) for t in range(1, MOST + 1))


def test_a_threshold_for_one_key_is_too_low_for_many():
    noise, delta = Mu(0.2).scaled_noise(WHOLE, 1.0), 5e-7
    one = threshold_of_votes(noise.law(), delta, 1, WHOLE, True)
    assert one == threshold(noise.law(), delta, 1) - 1 + WHOLE
    assert leak(lambda t: normal_tail(t, noise.sigma), one, MOST, True) > delta


def test_a_threshold_for_many_keys_with_small_votes_is_too_low_for_one():
    """Votes of 1/√L for everybody have a lower threshold; one key with a vote of 1 would come out too often."""
    noise, delta = Mu(2.0).scaled_noise(WHOLE, 1.0), 5e-7
    small = math.isqrt(WHOLE**2 // MOST) + threshold(noise.law(), delta, MOST) - 1
    assert leak(lambda t: normal_tail(t, noise.sigma), small, 1, True) > delta


def test_unequal_votes_of_the_same_norm_would_leak_more():
    """Why a unit's votes are equal: one near 1 and 99 near 0 leak more than δ at this threshold."""
    noise, delta = Mu(1.0).scaled_noise(WHOLE, 1.0), 5e-7
    tau = threshold_of_votes(noise.law(), delta, MOST, WHOLE, True)
    votes = [Fraction(9985, 10000), *[Fraction(55, 10000)] * 99]
    assert sum(v**2 for v in votes) <= 1
    with mp.workdps(60):
        kept = mpf(1)
        for vote in votes:
            kept *= 1 - normal_tail(tau - int(vote * WHOLE), noise.sigma)
        assert 1 - kept > mpf(delta) * mpf("1.2")


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("keys, others", [(1, 0), (2, 1), (3, 3), (4, 0)])
def test_the_profile_of_shown_keys_is_at_most_delta_and_that_of_the_noise(squares, keys, others):
    """Every output (which of all keys are shown) of two small data sets, enumerated; one unit has `keys` of its own and
    `others` that somebody else has, too."""
    price, delta = (Mu(1.0), 0.02) if squares else (Pure(1.0), 0.02)
    noise = price.scaled_noise(WHOLE, 1.0)
    tau = threshold_of_votes(noise.law(), delta, 4, WHOLE, squares)
    t = min(4, keys + others)
    vote = math.isqrt(WHOLE**2 // t) if squares else WHOLE // t

    def shown(votes):
        if tau - votes < 1:
            return 1 - float(
                normal_tail(votes - tau + 1, noise.sigma) if squares else laplace_tail(votes - tau + 1, noise.scale)
            )
        return float(normal_tail(tau - votes, noise.sigma) if squares else laplace_tail(tau - votes, noise.scale))

    mine, shared = min(keys, t), t - min(keys, t)
    p = np.array([1.0])
    q = np.array([1.0])
    for i in range(mine + shared):
        other = 0 if i < mine else 3 * WHOLE
        chances = [shown(other + vote), shown(other) if other else 0.0]  # nobody's key is never shown
        p, q = (np.concatenate([law * chance, law * (1 - chance)]) for law, chance in zip((p, q), chances, strict=True))
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        allowed = delta + (1 - delta) * float(price.loss().delta(epsilon).upper)
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= allowed + 1e-12
        assert np.maximum(q - math.exp(epsilon) * p, 0).sum() <= allowed + 1e-12
