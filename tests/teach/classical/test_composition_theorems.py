"""Classical composition theorems: true where they apply, and never tighter than the optimal composition."""

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.views.renyi_accountant import renyi_accountant
from sfumato.teach.classical.composition_theorems import advanced, advanced_slides, basic, optimal

small = st.floats(1e-3, 3)
failures = st.one_of(st.just(0.0), st.floats(-12, -3).map(lambda x: 10.0**x))
targets = st.floats(-12, -0.1).map(lambda x: 10.0**x)


def repeated_delta(eps, delta, k, at):
    """δ(at) of k leaky randomized responses, summed atom by atom with 60 digits: no formula of the paper is used."""
    with mp.workdps(60):
        eps, delta, at = mp.mpf(eps), mp.mpf(delta), mp.mpf(at)
        p = 1 / (1 + mp.exp(-eps))
        atoms = (
            (mp.binomial(k, lies) * p ** (k - lies) * (1 - p) ** lies, (k - 2 * lies) * eps) for lies in range(k + 1)
        )
        kept = mp.fsum(weight * (1 - mp.exp(at - loss)) for weight, loss in atoms if loss > at)
        return 1 - (1 - delta) ** k * (1 - kept)


@given(st.lists(st.tuples(st.floats(1e-90, 10) | st.just(0.0), st.floats(0, 0.1)), max_size=8))
def test_basic_composition_adds_and_rounds_up(parts):
    found = basic(parts)
    assert Fraction(found.epsilon.upper) >= sum(Fraction(eps) for eps, _ in parts)
    assert found.delta.upper >= min(1, sum(Fraction(delta) for _, delta in parts))
    assert found.epsilon.upper == pytest.approx(sum(eps for eps, _ in parts), rel=1e-13)


@given(eps=small, delta=failures, k=st.integers(1, 60), slack=targets)
def test_both_advanced_compositions_are_true_and_the_slides_one_is_sharper(eps, delta, k, slack):
    for theorem in (advanced, advanced_slides):
        found = theorem(eps, delta, k, slack)
        assert found.delta.upper >= min(1, k * delta + slack)
        assert repeated_delta(eps, delta, k, found.epsilon.upper) <= found.delta.upper
    assert advanced_slides(eps, delta, k, slack).epsilon.upper < advanced(eps, delta, k, slack).epsilon.upper


@given(eps=small, delta=failures, k=st.integers(1, 60), target=targets)
def test_the_optimal_composition_is_where_the_profile_crosses_the_target(eps, delta, k, target):
    found = optimal(eps, delta, k, target)
    if math.isinf(found.lower):
        assert 1 - (1 - mp.mpf(delta)) ** k >= target
        return
    slip = mp.mpf(10) ** -30
    if math.isfinite(found.upper):
        assert repeated_delta(eps, delta, k, found.upper) <= target + slip
    if found.lower > 0:
        assert repeated_delta(eps, delta, k, found.lower * (1 - 1e-15)) >= target - slip


def test_the_optimal_composition_has_known_values():
    """Binomial sums with 50 digits."""
    assert optimal(0.1, 0, 1000, 1e-6).upper == pytest.approx(19.3446714480, abs=1e-9)
    assert optimal(0.05, 1e-10, 500, 1e-6).upper == pytest.approx(5.5387668595, abs=1e-9)
    assert optimal(0.1, 0, 1000, 1e-6).relative_gap < 1e-10


def test_the_optimal_composition_of_a_million():
    found = optimal(0.001, 1e-13, 10**6, 1e-6)
    assert found.relative_gap < 1e-6
    gaussian = GaussianLoss(0.001 * 1000).epsilon(9e-7).upper  # nearly: the variance of the loss is ε²
    assert found.upper == pytest.approx(gaussian, rel=2e-3)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 10])
def test_the_theorem_at_its_own_points(k):
    """1 − (1 − δ)^k (1 − δᵢ) at (k − 2i)ε, with the numerator as printed in the paper."""
    eps, delta = mp.mpf("0.7"), mp.mpf("0.001")
    for i in range(1, k // 2 + 1):
        terms = (mp.binomial(k, j) * (mp.exp((k - j) * eps) - mp.exp((k - 2 * i + j) * eps)) for j in range(i))
        total = 1 - (1 - delta) ** k * (1 - mp.fsum(terms) / (1 + mp.exp(eps)) ** k)
        assert float((k - 2 * i) * eps) == pytest.approx(optimal(0.7, 0.001, k, float(total)).upper, abs=1e-9)


@pytest.mark.parametrize(
    ("eps", "delta", "k", "target", "truth"),
    [
        (0.5, 0, 7, 0, 3.5),  # nothing allowed: all epsilons add up
        (0.5, 0, 0, 0, 0),
        (0.5, 0, 7, 1, 0),
        (0, 0, 7, 0.1, 0),
        (0.5, 1, 1, 0.1, math.inf),
        (0.5, 1e-3, 10, 1e-3, math.inf),  # ten leaks of 1e-3 are more than 1e-3
        (1, 0, 2, 0.9, 0),
    ],
)
def test_the_ends_of_the_optimal_composition(eps, delta, k, target, truth):
    assert float(optimal(eps, delta, k, target)) == pytest.approx(truth, rel=1e-12)


@given(eps=st.floats(1e-3, 1), k=st.integers(1, 40), target=targets)
def test_no_classical_theorem_beats_the_optimal_one(eps, k, target):
    least = optimal(eps, 0, k, target).lower
    assert least <= basic([(eps, 0.0)] * k).epsilon.upper
    assert least <= advanced_slides(eps, 0, k, target).epsilon.upper
    assert least <= renyi_accountant(k * PureLoss(eps), target).upper


@pytest.mark.parametrize("theorem", [advanced, advanced_slides])
@pytest.mark.parametrize("wrong", [(-1, 0, 5, 0.1), (1, 2, 5, 0.1), (1, 0, -1, 0.1), (1, 0, 2.5, 0.1), (1, 0, 5, 0)])
def test_advanced_composition_refuses_nonsense(theorem, wrong):
    with pytest.raises(InvalidParameter):
        theorem(*wrong)


def test_a_huge_epsilon_is_an_infinite_mean():
    assert advanced(800, 0, 2, 0.1).epsilon.upper == math.inf
    assert advanced_slides(800, 0, 2, 0.1).epsilon.upper < 1e6
    assert advanced(800, 0, 0, 0.1).epsilon.upper == 0


def test_too_many_equal_parts_are_refused():
    with pytest.raises(InvalidParameter, match="to 1,000,000"):
        optimal(0.1, 0, 10**6 + 1, 1e-6)
