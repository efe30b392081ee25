"""Approximate accountants: near the truth where they should be, and never presented as bounds."""

import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import OutOfReach
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss, RandomizedResponseLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.loss.kinds.renyi import RenyiLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.teach.classical.approximations import Estimate, central_limit, fourier, moments, normal_epsilon
from sfumato.teach.classical.composition_theorems import optimal

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
