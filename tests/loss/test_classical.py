"""The classical accountants: true where they apply, silent where they do not, and never sharper than the truth."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss, RandomizedResponseLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.loss.kinds.renyi import RenyiLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.loss.views.profile import top_of
from sfumato.loss.views.renyi_accountant import renyi_accountant
from sfumato.teach.classical import compare as comparing
from sfumato.teach.classical.compare import Comparison, Row, compare
from sfumato.teach.classical.estimates import Estimate, central_limit, fourier, moments, normal_epsilon, parts
from sfumato.teach.classical.theorems import advanced, advanced_slides, basic, optimal

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


# ---- composition of (ε, δ) ------------------------------------------------------------------------------------------


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


# ---- Rényi ----------------------------------------------------------------------------------------------------------


@given(mu=st.floats(0.05, 5), delta=targets)
def test_the_renyi_accountant_finds_the_best_order_of_a_gaussian(mu, delta):
    a = 1 + np.geomspace(1e-3, 1e4, 20_000)
    best = float((a * mu**2 / 2 + np.log((a - 1) / a) - (math.log(delta) + np.log(a)) / (a - 1)).min())
    found = renyi_accountant(GaussianLoss(mu), delta).upper
    assert found <= max(best, 0) * (1 + 1e-4) + 1e-6
    assert found >= GaussianLoss(mu).epsilon(delta).lower


def test_orders_that_are_given_are_the_only_ones():
    loss = 1000 * GaussianLoss(0.02)
    free, coarse = renyi_accountant(loss, 1e-6), renyi_accountant(loss, 1e-6, orders=[2, 64])
    assert coarse.upper > free.upper
    assert coarse.method == "order 2"
    assert free.upper == pytest.approx(3.1310, abs=1e-3)
    for wrong in ([], [1], [0.5, 2], [math.inf]):
        with pytest.raises(InvalidParameter, match="orders"):
            renyi_accountant(loss, 1e-6, orders=wrong)


def test_a_leak_has_no_renyi_epsilon():
    assert renyi_accountant(10 * ApproxLoss(0.1, 1e-9), 1e-6).upper == math.inf


def test_the_worse_direction_counts():
    loss = PoissonSampledLoss(PureLoss(1.0), 0.1)
    one_way = max(renyi_accountant(loss.remove, 1e-3).upper, renyi_accountant(loss.add, 1e-3).upper)
    assert renyi_accountant(loss, 1e-3).upper >= one_way * (1 - 1e-6)


# ---- the central limit theorem --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-4, 0.02, 1.0, 4.0])
def test_moments_of_a_gaussian_loss(mu):
    mean, variance, third = moments(GaussianLoss(mu))
    assert mean == pytest.approx(mu**2 / 2, rel=1e-7)
    assert variance == pytest.approx(mu**2, rel=1e-7)
    assert third == pytest.approx(mu**3 * 2 * math.sqrt(2 / math.pi), rel=1e-6)


@pytest.mark.parametrize("eps", [0.01, 0.5, 3.0])
def test_moments_of_randomized_response_and_laplace(eps):
    p = 1 / (1 + math.exp(-eps))
    m = (2 * p - 1) * eps
    assert moments(PureLoss(eps)) == pytest.approx(
        (m, eps**2 - m**2, p * (eps - m) ** 3 + (1 - p) * (eps + m) ** 3), rel=1e-6
    )
    e = mp.mpf(eps)
    law = lambda g: g(e) / 2 + mp.exp(-e) * g(-e) / 2 + mp.quad(lambda t: g(t) * mp.exp((t - e) / 2) / 4, [-e, 0, e])  # noqa: E731
    m = law(lambda t: t)
    found = moments(LaplaceLoss(eps))
    assert found[0] == pytest.approx(float(m), rel=1e-6)
    assert found[1] == pytest.approx(float(law(lambda t: (t - m) ** 2)), rel=1e-6)
    assert found[2] == pytest.approx(float(law(lambda t: abs(t - m) ** 3)), rel=1e-4)


def test_moments_of_both_directions_of_a_sampled_loss():
    loss, q, e = PoissonSampledLoss(PureLoss(1.0), 0.1), 0.1, math.e
    forth, back = moments(loss), moments(loss.reverse)
    # Q is (1, e)/(1 + e), P its mixture with (e, 1)/(1 + e)
    p = [(1 - q) * x + q * y for x, y in ((1 / (1 + e), e / (1 + e)), (e / (1 + e), 1 / (1 + e)))]
    r = [1 / (1 + e), e / (1 + e)]
    assert forth[0] == pytest.approx(sum(x * math.log(x / y) for x, y in zip(p, r, strict=True)), rel=1e-6)
    assert back[0] == pytest.approx(sum(y * math.log(y / x) for x, y in zip(p, r, strict=True)), rel=1e-6)


@given(eps=st.floats(0.01, 0.5), k=st.integers(100, 3000), delta=st.floats(0.01, 0.5))
def test_the_berry_esseen_interval_holds_the_truth(eps, k, delta):
    found, truth = central_limit(k * PureLoss(eps), delta), optimal(eps, 0, k, delta)
    assert found.low <= truth.upper * (1 + 1e-5) + 1e-6
    assert found.high >= truth.lower * (1 - 1e-5) - 1e-6


def test_the_central_limit_of_gaussians_is_exact():
    found = central_limit(1000 * GaussianLoss(0.02), 1e-6)
    assert found.value == pytest.approx(2.9216005904, rel=1e-6)
    assert found.low < 1 < 100 < found.high  # and yet its error bound is 0.028, far above δ
    assert found.high == math.inf


def test_the_central_limit_is_no_bound_for_training():
    """q = .01, σ = .8, k = 1000 at 1e-6: the truth is 3.7062; opacus 1.6.0's gdp accountant says 2.8276."""
    found = central_limit(1000 * PoissonSampledLoss(GaussianLoss(1.25), 0.01), 1e-6)
    assert found.value == pytest.approx(2.81, abs=0.01)
    assert isinstance(found, Estimate)
    assert not isinstance(found, Bound)


def test_the_central_limit_needs_moments():
    with pytest.raises(OutOfReach, match="needs finite moments"):
        central_limit(10 * ApproxLoss(0.1, 1e-9), 1e-6)
    with pytest.raises(OutOfReach, match="Rényi curve"):
        central_limit(10 * RenyiLoss((2.0, 4.0), (0.1, 0.2)), 1e-6)


def test_nothing_has_a_central_limit_too():
    assert central_limit(0 * GaussianLoss(1), 1e-6).high == 0
    assert fourier(0 * GaussianLoss(1), 1e-6).value == 0


def test_the_normal_profile_is_the_gaussian_one():
    for mu in (0.1, 1, 5):
        assert normal_epsilon(mu**2 / 2, mu, 1e-5) == pytest.approx(GaussianLoss(mu).epsilon(1e-5).upper, rel=1e-8)


# ---- Fourier --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "truth"),
    [
        (1000 * GaussianLoss(0.02), 2.9216005904),
        (100 * LaplaceLoss(0.1), 4.6926674147),  # all recurrences of the characteristic function summed
        (1000 * RandomizedResponseLoss(0.1), 19.3446714480),
        (500 * ApproxLoss(0.05, 1e-10), 5.5387668595),
        (1000 * PoissonSampledLoss(PureLoss(0.5), 0.1).remove, None),
    ],
)
def test_the_fourier_accountant_is_near_the_truth(loss, truth):
    found = fourier(loss, 1e-6)
    bound = loss.epsilon(1e-6)
    assert found.value == pytest.approx(truth or bound.upper, rel=1e-4)
    assert (found.low, found.high) == (0, math.inf)
    assert "nothing is certified" in found.note


def test_the_fourier_accountant_says_when_it_is_meaningless():
    found = fourier(1000 * RandomizedResponseLoss(0.1), 1e-15)
    assert "meaningless" in found.note
    assert abs(found.value / optimal(0.1, 0, 1000, 1e-15).upper - 1) > 0.01  # it is, indeed


def test_the_fourier_accountant_needs_a_window():
    with pytest.raises(OutOfReach, match="below 700"):
        fourier(1000 * GaussianLoss(3), 1e-6)


# ---- side by side ---------------------------------------------------------------------------------------------------


LOSSES = [
    1000 * GaussianLoss(0.02),
    1000 * RandomizedResponseLoss(0.1),
    500 * ApproxLoss(0.05, 1e-10),
    GaussianLoss(1),
    3 * PureLoss(0.5) + 2 * PureLoss(0.1),
    (500 * PoissonSampledLoss(PureLoss(1.0), 0.1)).remove,
]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_comparison_starts_with_the_truth_and_no_theorem_is_below_it(loss):
    found = compare(loss, 1e-6)
    assert [row.name for row in found.rows] == ["optimal (sfumato)", *comparing.ACCOUNTANTS]
    truth = found.rows[0].epsilon
    for row in found.rows[1:]:
        if isinstance(row.epsilon, Bound):
            assert row.epsilon.upper >= truth.lower
            assert "below the truth" not in row.note
        elif isinstance(row.epsilon, Estimate):
            assert (row.epsilon.value < truth.lower) == ("below the truth" in row.note)
        else:
            assert row.note
    assert all(len(line) <= 80 for line in str(found).splitlines())
    assert found._repr_html_().count("<tr>") == len(found.rows) + 1


def test_a_comparison_says_why_a_theorem_does_not_apply():
    text = str(compare(3 * PureLoss(0.5) + GaussianLoss(0.1), 1e-6))
    assert "needs equal parts: these are of 2" in text
    assert "the parts leak more than δ" in str(compare(10 * ApproxLoss(0.1, 1e-6), 1e-6))


def test_what_is_below_the_truth_is_called_so(monkeypatch):
    monkeypatch.setitem(
        comparing.ACCOUNTANTS, "central limit", lambda loss, delta: Estimate(1.0, 0, 9, "wishful", "hm")
    )
    row = next(row for row in compare(GaussianLoss(1), 1e-6).rows if row.name == "central limit")
    assert row.note.startswith("below the truth by 3.9; hm")


def test_one_direction_alone_is_not_enough_for_advanced_composition():
    """P ≤ e^ε Q says nothing of Q ≤ e^ε P: the theorems are given the larger of both losses."""
    loss = (500 * PoissonSampledLoss(PureLoss(1.0), 0.2)).add
    row = next(row for row in compare(loss, 1e-6).rows if row.name == "advanced")
    top = max(max(part.supremum()) for _, part in parts(loss))
    assert row.note == f"from 500 × ({top:.4g}, 0)"
    assert top > top_of(loss) / 500


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [
        (None, "–"),
        (Bound(0.0, 2.0, "m"), "≤ 2"),
        (Bound(2.0, 2.0, "m"), "= 2"),
        (Bound(1.0, 2.0, "m"), "1 … 2"),
        (Bound(math.inf, math.inf, "m"), "= inf"),
        (Estimate(2.0, 1.0, 3.0, "m"), "≈ 2"),
    ],
)
def test_each_kind_of_answer_has_its_sign(epsilon, text):
    assert str(Row("name", epsilon, "note")) == text


def test_notes_wrap_within_eighty_columns():
    lines = str(Comparison(1e-6, (Row("a", None, "word " * 40),))).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 4


@settings(max_examples=10)
@given(delta=st.sampled_from([0.0, -1.0, 2.0, math.nan]))
def test_a_delta_out_of_range_is_refused(delta):
    for ask in (compare, central_limit, fourier, renyi_accountant):
        with pytest.raises(InvalidParameter):
            ask(GaussianLoss(1), delta)
