"""Pairs of finite distributions, against sums with 60 digits over the outcomes."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.loss.describe import from_json
from sfumato.loss.kinds.coins import ApproxLoss, RandomizedResponseLoss
from sfumato.loss.kinds.finite import FinitePairLoss, running_sums
from sfumato.loss.numeric import ULP
from sfumato.sensitivity import Relation

weights = st.one_of(st.just(0.0), st.floats(1e-3, 1), st.floats(-250, 0).map(lambda x: 10.0**x))
moments = st.one_of(st.floats(-0.99, -1e-9), st.floats(1e-9, 50))


def distribution(values):
    total = math.fsum(values)
    return tuple(value / total for value in values)


@st.composite
def pairs(draw, least=2):
    """Probabilities of all sizes, also 0, and pairs that hardly differ."""
    size = draw(st.integers(least, 6))
    p = draw(st.lists(weights, min_size=size, max_size=size))
    near = st.floats(-10, -0.5).map(lambda x: 10.0**x)
    close = st.lists(near, min_size=size, max_size=size).map(lambda d: [a * (1 + b) for a, b in zip(p, d, strict=True)])
    q = draw(st.one_of(st.lists(weights, min_size=size, max_size=size), close))
    assume(math.fsum(p) > 1e-3 and math.fsum(q) > 1e-3)
    return distribution(p), distribution(q)


def exactly(p, q):
    """The pair divided by its sums."""
    with mp.workdps(60):
        laws = [[mp.mpf(x) for x in law] for law in (p, q)]
        return [[x / mp.fsum(law) for x in law] for law in laws]


def hockey_stick(p, q, eps):
    with mp.workdps(60):
        (p, q), a = exactly(p, q), mp.exp(mp.mpf(eps))
        return mp.fsum(max(x - a * y, mp.mpf(0)) for x, y in zip(p, q, strict=True))


def log_moment(p, q, s):
    with mp.workdps(60):
        p, q = exactly(p, q)
        value = mp.fsum(x * (x / y) ** mp.mpf(s) for x, y in zip(p, q, strict=True) if x > 0 and y > 0)
        return mp.log(value) if value > 0 else -mp.inf


def test_the_pair_may_be_listed_in_any_order_and_is_kept_in_the_order_given():
    loss = FinitePairLoss([0.2, 0.3, 0.5], (0.5, 0.25, 0.25))
    assert loss.p == (0.2, 0.3, 0.5)
    assert loss.delta(0.1) == FinitePairLoss((0.5, 0.2, 0.3), (0.25, 0.5, 0.25)).delta(0.1)
    assert loss != FinitePairLoss((0.5, 0.2, 0.3), (0.25, 0.5, 0.25))


@given(pair=pairs(), where=st.floats(0, 1.2))
def test_the_profile_encloses_the_sum_over_outcomes(pair, where):
    loss = FinitePairLoss(*pair)
    for way, (p, q) in ((loss, pair), (loss.reverse, pair[::-1])):
        top = way.supremum()[0]
        eps = np.array([0.0, where * top, math.nextafter(top, 0), top, 2 * top + 1, 1e4])
        found = way.forward(eps)
        for low, high, t in zip(found.lower, found.upper, eps, strict=True):
            truth = hockey_stick(p, q, t)
            assert low <= truth + mp.mpf(10) ** -50
            assert truth <= high + mp.mpf(10) ** -50
            assert high - low <= 1e-14 * (2 + max(loss.supremum())) or max(loss.supremum()) > 500


@given(pair=pairs())
def test_backward_is_forward_of_the_reverse_and_reversing_twice_changes_nothing(pair):
    loss = FinitePairLoss(*pair)
    eps = np.linspace(0, 3, 7)
    assert loss.reverse.reverse == loss
    assert np.array_equal(loss.backward(eps).upper, loss.reverse.forward(eps).upper)
    assert loss.supremum() == pytest.approx(loss.reverse.supremum()[::-1], rel=8 * ULP)
    assert loss.leak() == loss.reverse.leak()[::-1]


@given(pair=pairs())
def test_the_ends_are_what_is_left_at_large_eps(pair):
    loss, (p, q) = FinitePairLoss(*pair), exactly(*pair)
    sure = mp.fsum(x for x, y in zip(p, q, strict=True) if y == 0)
    assert loss.sharp_ends
    assert loss.leak()[0] * (1 - 16 * ULP) <= sure <= loss.leak()[0]
    with mp.workdps(60):
        top = max([mp.log(x / y) for x, y in zip(p, q, strict=True) if x > 0 and y > 0] + [mp.mpf(0)])
    assert loss.supremum()[0] * (1 - 16 * ULP) <= top + mp.mpf(10) ** -15
    assert top <= loss.supremum()[0] + mp.mpf(10) ** -50
    assert loss.forward(np.array([loss.supremum()[0]])).upper[0] <= loss.leak()[0] * (1 + 2 * ULP)


@given(pair=pairs(), s=moments)
def test_moments_enclose_the_sum_over_outcomes(pair, s):
    loss = FinitePairLoss(*pair)
    found = loss.log_moment(s)
    if s > 0 and loss.leak()[0] > 0:
        assert found.lower == math.inf
        return
    truth = log_moment(*pair, s)
    assert found.lower - 1e-50 <= truth <= found.upper + 1e-50
    assert found.gap <= 1e-12 * (1 + abs(s)) * (1 + abs(truth)) or truth == -mp.inf


def test_small_moments_keep_their_digits():
    p, q = (0.5 + 2**-20, 0.5 - 2**-20), (0.5, 0.5)
    found = FinitePairLoss(p, q).log_moment(1e-6)
    assert found.lower <= log_moment(p, q, 1e-6) <= found.upper
    assert found.relative_gap < 1e-7  # the value itself is 1.8e-18


@given(eps=st.floats(0.01, 20), k=st.integers(2, 5), t=st.floats(0, 25))
def test_randomized_response_is_a_pair(eps, k, t):
    yes, no = 1 / (1 + (k - 1) * math.exp(-eps)), 1 / (math.exp(eps) + k - 1)
    rest = (no,) * (k - 2)
    assume(abs(math.fsum((yes, no, *rest)) - 1) < 1e-14)
    loss, named = FinitePairLoss((yes, no, *rest), (no, yes, *rest)), RandomizedResponseLoss(eps, k)
    found, known = loss.delta(t), named.delta(t)
    assert found.lower - 1e-14 * yes <= known.upper
    assert known.lower <= found.upper + 1e-14 * yes
    assert loss.renyi(2.0).upper == pytest.approx(named.renyi(2.0).upper, rel=1e-9, abs=1e-12)


def test_a_leaky_pair_is_leaky_randomized_response():
    w = 0.9 / (1 + math.exp(-1))
    loss = FinitePairLoss((0.1, w, 0.9 - w, 0.0), (0.0, 0.9 - w, w, 0.1))
    for t in (0.0, 0.5, 0.99, 2.0, math.inf):
        assert float(loss.delta(t)) == pytest.approx(float(ApproxLoss(1.0, 0.1).delta(t)), rel=1e-12)
    assert loss.epsilon(0.05).upper == math.inf
    assert math.isinf(loss.renyi(2.0).lower)


def test_rounding_in_the_sum_is_divided_out_and_not_called_leak():
    p = (0.3, 0.7)
    assert math.fsum((*p, -1.0)) < 0
    loss = FinitePairLoss(p, p[::-1])
    assert loss.leak() == (0.0, 0.0)
    assert loss.epsilon(0.0).upper == pytest.approx(math.log(7 / 3), rel=1e-14)
    assert math.isfinite(loss.renyi(5.0).upper)


def test_missing_mass_is_leak_from_above_only():
    p = (0.5, 0.5 - 1e-12)
    loss = FinitePairLoss(p, (0.5, 0.5))
    missing = 1 - math.fsum(p)
    assert loss.leak()[0] >= missing > 0
    assert loss.leak()[1] == 0
    assert not loss.sharp_ends
    assert loss.delta(3.0).lower == 0
    assert loss.delta(3.0).upper >= missing
    assert loss.log_moment(1.0).lower == 0
    assert loss.log_moment(1.0).upper == math.inf


def test_identical_distributions_reveal_nothing():
    loss = FinitePairLoss((0.3, 0.7), (0.3, 0.7))
    assert loss.supremum() == (0.0, 0.0)
    assert float(loss.delta(0.0)) == 0
    assert loss.epsilon(0.0).upper == 0
    assert loss.atoms() is None


def test_disjoint_distributions_reveal_everything():
    loss = FinitePairLoss((1.0, 0.0), (0.0, 1.0))
    assert loss.delta(100.0).upper == loss.leak()[0] == 1
    assert loss.log_moment(-0.5).upper == -math.inf
    assert float(loss.hellinger()) == 1
    assert loss.atoms() is None


def test_the_smallest_floats_neither_overflow_nor_underflow():
    loss = FinitePairLoss((1.0, 5e-324), (5e-324, 1.0))
    assert loss.supremum()[0] == pytest.approx(744.44, abs=0.01)
    assert loss.delta(700.0).lower > 0.99
    assert loss.delta(744.0).upper >= hockey_stick(loss.p, loss.q, 744.0) >= loss.delta(744.0).lower
    assert loss.delta(1e6).upper == 0
    assert loss.log_moment(1e3).upper == pytest.approx(744.44e3, rel=1e-4)


@given(
    a=st.floats(0.01, 3),
    b=st.floats(0.01, 3),
    places=st.lists(st.integers(0, 30), min_size=3, max_size=6, unique=True),
)
def test_losses_on_a_lattice_are_found_there(a, b, places):
    # a pair with losses c + a·place: tilt any distribution and normalise
    q = distribution([b + n for n in places])
    p = distribution([x * math.exp(a * n) for x, n in zip(q, places, strict=True)])
    found = FinitePairLoss(p, q).atoms()
    gaps = np.diff(sorted(places))
    if np.all(np.mod(gaps, gaps.min()) == 0):
        step, offset = found
        assert step == pytest.approx(a * gaps.min(), rel=1e-9)
        losses = np.log(np.array(p) / np.array(q))
        assert np.allclose((losses - offset) / step, np.round((losses - offset) / step), atol=1e-8)
    else:
        assert found is None


def test_two_losses_are_always_a_lattice():
    step, offset = FinitePairLoss((0.2, 0.8), (0.5, 0.5)).atoms()
    assert (offset, offset + step) == pytest.approx((math.log(0.4), math.log(1.6)), rel=1e-14)
    assert FinitePairLoss((0.5, 0.5), (0.0, 1.0)).atoms() == pytest.approx((math.log(2), 0.0))


@given(values=st.lists(st.floats(1e-300, 1), min_size=1, max_size=2000))
def test_running_sums_are_sharp(values):
    found = running_sums(np.array(values))
    for n in (1, len(values) // 2, len(values)):
        assert found[n] == pytest.approx(math.fsum(values[:n]), rel=2 * ULP)


def test_many_outcomes_are_no_trouble():
    p = np.random.default_rng(1).random(100_000)
    p, q = p / p.sum(), p[::-1] / p.sum()
    loss = FinitePairLoss(tuple(p.tolist()), tuple(q.tolist()))
    found = loss.delta(0.5)
    assert found.lower <= math.fsum(np.maximum(p - math.exp(0.5) * q, 0)) <= found.upper
    assert found.gap < 1e-10


def test_the_description_comes_back():
    loss = FinitePairLoss((0.1, 0.2, 0.7), (0.3, 0.3, 0.4), relation=Relation.ReplaceOne)
    assert from_json(loss.to_json()) == loss


@pytest.mark.parametrize(
    ("p", "q", "found"),
    [
        ((0.5, 0.5), (1.0,), "2 probabilities in p and 1 in q"),
        ((0.5, 0.6), (0.5, 0.5), "sum to"),
        ((-0.5, 1.5), (0.5, 0.5), "out of range"),
        ((math.nan, 0.5), (0.5, 0.5), "out of range"),
        ("ab", (0.5, 0.5), "sequence"),
        ((), (), "sum to"),
    ],
)
def test_what_is_not_a_pair_of_distributions_is_refused(p, q, found):
    with pytest.raises(InvalidParameter, match=found):
        FinitePairLoss(p, q)
