"""Calibration: the answer meets the target, its other side does not, and what cannot be answered is explained."""

import math
from dataclasses import dataclass

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.loss.views.calibrate import calibrate

epsilons = st.floats(1e-3, 20)
deltas = st.floats(-30, -1).map(lambda x: 10.0**x)


def gaussian_delta(mu, eps):
    """δ(ε) of N(μ, 1) against N(0, 1) with 50 digits."""
    with mp.workdps(50):
        mu, eps = mp.mpf(mu), mp.mpf(eps)
        return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


@given(eps=epsilons, delta=deltas)
def test_the_answer_meets_the_target_and_the_other_side_does_not(eps, delta):
    found = calibrate(lambda sigma: GaussianLoss(1 / sigma), epsilon=eps, delta=delta)
    assert found.safe == "upper"
    assert gaussian_delta(1 / found.upper, eps) <= delta < gaussian_delta(1 / found.lower, eps)
    assert found.relative_gap <= 1.01e-6


@given(eps=epsilons, delta=deltas)
def test_a_rising_family_is_rounded_down(eps, delta):
    found = calibrate(GaussianLoss, epsilon=eps, delta=delta, tolerance=1e-9)
    assert found.safe == "lower"
    assert float(found) == found.lower
    assert gaussian_delta(found.lower, eps) <= delta < gaussian_delta(found.upper, eps)
    sigma = calibrate(lambda sigma: GaussianLoss(1 / sigma), epsilon=eps, delta=delta, tolerance=1e-9)
    assert float(sigma) * float(found) == pytest.approx(1, rel=3e-9)


@given(eps=st.floats(0.1, 10), delta=deltas, share=st.floats(1e-3, 0.9))
def test_steps_are_the_largest_whole_number_that_fits(eps, delta, share):
    mu = share * float(calibrate(GaussianLoss, epsilon=eps, delta=delta, tolerance=1e-12))
    found = calibrate(lambda k: k * GaussianLoss(mu), epsilon=eps, delta=delta, integer=True)
    steps = int(float(found))
    assert (found.lower, found.upper, found.safe) == (steps, steps + 1, "lower")
    assert abs(steps - 1 / share**2) <= 1 + 1e-9 / share**2
    assert gaussian_delta(mu * math.sqrt(steps), eps) <= delta * (1 + 1e-12)


def test_steps_may_be_very_many():
    found = calibrate(lambda k: k * GaussianLoss(1e-6), epsilon=1, delta=1e-6, integer=True)
    mu = calibrate(GaussianLoss, epsilon=1, delta=1e-6, tolerance=1e-13)
    assert (mu.lower * 1e6) ** 2 - 1 <= float(found) <= (mu.upper * 1e6) ** 2 + 1


def test_whole_noise_is_the_smallest_that_is_enough():
    found = calibrate(lambda sigma: GaussianLoss(1 / sigma), epsilon=1, delta=1e-6, integer=True)
    assert (found.lower, found.upper, found.safe) == (4, 5, "upper")  # the least σ is 4.2247


def test_the_smallest_whole_number_is_one():
    assert float(calibrate(lambda sigma: GaussianLoss(1 / sigma), epsilon=9, delta=1e-6, integer=True)) == 1


@given(eps=st.floats(1e-3, 50))
def test_pure_targets_are_met_exactly(eps):
    found = calibrate(lambda scale: LaplaceLoss(1 / scale), epsilon=eps, delta=0)
    assert found.upper == pytest.approx(1 / eps, rel=2e-6)
    assert 1 / found.upper <= eps


@given(eps=st.floats(0.1, 5), delta=st.floats(1e-6, 0.3))
def test_profiles_with_a_kink_are_inverted(eps, delta):
    found = calibrate(PureLoss, epsilon=eps, delta=delta)
    truth = mp.findroot(lambda e: (1 - mp.exp(eps - e)) / (1 + mp.exp(-e)) - delta, eps + delta)
    assert found.lower <= truth * (1 + 1e-14)
    assert found.upper >= truth * (1 - 1e-14)
    assert found.relative_gap <= 1.01e-6


def test_training_noise_agrees_with_a_spectral_reference():
    """σ for DP-SGD with rate 256/60000 and 14,062 steps at (1, 1e-6): tilted Fourier inversion with 6,001 nodes says
    2.264308432; dp-accounting 0.6.0 says 2.26474 (privacy loss distributions) and 2.41490 (Rényi)."""
    rate = 256 / 60000
    family = lambda s: 14062 * PoissonSampledLoss(GaussianLoss(1 / s), rate)  # noqa: E731
    found = calibrate(family, epsilon=1, delta=1e-6, tolerance=2e-5)
    assert found.lower <= 2.264308432 <= found.upper
    assert found.upper < 2.2644


# ---- the search -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A profile that is a number, known to a given relative gap from below and above."""

    value: float
    blur: float = 0.0

    def delta(self, epsilon, /, *, tolerance=1e-5):
        return Bound(self.value * (1 - self.blur), min(1.0, self.value * (1 + self.blur)), "known")


def counted(family):
    calls = []

    def counting(p):
        calls.append(p)
        return family(p)

    return counting, calls


@pytest.mark.parametrize("power", [-10, -3, -0.5, 0.5, 3, 10])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
def test_few_evaluations_are_enough(power, scale):
    family, calls = counted(lambda p: Known(min(1.0, 0.1 * (p / scale) ** power)))
    found = calibrate(family, epsilon=1, delta=1e-6, tolerance=1e-9)
    assert float(found) == pytest.approx(scale * 1e-5 ** (1 / power), rel=1e-8)
    assert found.safe == ("lower" if power > 0 else "upper")
    assert len(calls) <= 40


def test_jumps_are_halved():
    family, calls = counted(lambda p: Known(1e-9 if p > math.pi else 0.5))
    found = calibrate(family, epsilon=1, delta=1e-6, tolerance=1e-9)
    assert found.lower <= math.pi <= found.upper
    assert found.relative_gap <= 1e-9
    assert len(calls) <= 60


def test_what_is_blurred_stays_apart():
    found = calibrate(lambda p: Known(min(1.0, 1e-6 * p), 0.01), epsilon=1, delta=1e-6, tolerance=1e-6)
    assert found.lower == pytest.approx(1 / 1.01, rel=1e-5)
    assert found.upper >= 1 / 0.99


def test_without_a_lower_bound_the_other_side_is_unknown():
    found = calibrate(lambda p: Known(min(1.0, 1e-6 * p), 1.0), epsilon=1, delta=1e-6)
    assert found.lower == pytest.approx(0.5, rel=1e-5)
    assert found.upper == math.inf


def test_sharper_answers_are_asked_for_only_where_they_decide():
    asked = []

    class Sharpened(Known):
        def delta(self, epsilon, /, *, tolerance=1e-5):
            asked.append(tolerance)
            return Known(self.value, tolerance).delta(epsilon)

    found = calibrate(lambda p: Sharpened(min(1.0, 1e-6 * p**2)), epsilon=1, delta=1e-6, tolerance=1e-8)
    assert found.lower <= 1 <= found.upper
    assert found.relative_gap <= 1e-7
    assert asked[0] == 1e-2
    assert min(asked) < 1e-7


def test_the_whole_of_an_asked_range_may_meet_the_target():
    assert calibrate(GaussianLoss, epsilon=3, delta=1e-6, high=0.1).lower == 0.1
    assert calibrate(lambda s: GaussianLoss(1 / s), epsilon=3, delta=1e-6, low=50, high=100).upper == 50
    assert float(calibrate(lambda k: k * GaussianLoss(0.01), epsilon=3, delta=1e-6, high=12.7, integer=True)) == 12


def test_what_a_family_refuses_is_the_end_of_its_range():
    def sampled(rate):
        if rate > 1:
            raise InvalidParameter("rate is out of range")
        return PureLoss(math.log1p(rate * math.expm1(1.0)))

    found = calibrate(sampled, epsilon=0.5, delta=0)
    assert float(found) == pytest.approx(math.expm1(0.5) / math.expm1(1), rel=2e-6)
    with pytest.raises(OutOfReach, match="2 was refused: rate is out of range"):
        calibrate(sampled, epsilon=2, delta=0)


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_a_target_that_nothing_meets_is_explained():
    with pytest.raises(
        OutOfReach, match=r"no parameter meets ε = 1, δ = 1e-06\.\n  tried:  .*\n  found:  δ\(1\) = 0\.01 "
    ):
        calibrate(lambda p: Known(0.01 + 1 / (2 + p)), epsilon=1, delta=1e-6)
    with pytest.raises(OutOfReach, match="no parameter meets"):
        calibrate(lambda p: Known(0.5), epsilon=1, delta=1e-6)
    with pytest.raises(OutOfReach, match="no parameter meets"):
        calibrate(lambda k: k * GaussianLoss(9), epsilon=1, delta=1e-6, integer=True)


def test_a_target_that_everything_meets_is_explained():
    with pytest.raises(OutOfReach, match="every parameter meets"):
        calibrate(lambda k: k * GaussianLoss(0), epsilon=1, delta=1e-6, integer=True)
    with pytest.raises(OutOfReach, match="every parameter meets"):
        calibrate(lambda p: Known(min(p, 0.2) / 2), epsilon=1, delta=0.5)


def test_a_family_that_turns_back_is_refused():
    with pytest.raises(InvalidParameter, match="not monotone"):
        calibrate(lambda p: Known(min(1.0, 1e-7 * p if p < 5 else 1e-8 * p)), epsilon=1, delta=4.5e-7)


def test_a_family_that_fails_is_named_with_its_parameter():
    with pytest.raises(InvalidParameter, match="ZeroDivisionError at parameter 1: float division by zero"):
        calibrate(lambda p: GaussianLoss(1 / (p - 1)), epsilon=1, delta=1e-6)
    with pytest.raises(
        InvalidParameter, match="AttributeError at parameter 1: 'float' object has no attribute 'delta'"
    ):
        calibrate(lambda p: p, epsilon=1, delta=1e-6)
    with pytest.raises(InvalidParameter, match="refuses every parameter"):
        calibrate(lambda p: GaussianLoss(-p), epsilon=1, delta=1e-6)


def test_what_is_not_a_bound_is_refused():
    class Bare:
        def delta(self, epsilon, /, *, tolerance=1e-5):
            return 0.1

    with pytest.raises(InvalidParameter, match="is a float, not a Bound"):
        calibrate(lambda p: Bare(), epsilon=1, delta=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": -1},
        {"delta": 2},
        {"epsilon": math.inf},
        {"tolerance": 0},
        {"low": -1},
        {"high": 0},
        {"low": 3, "high": 2},
    ],
)
def test_targets_and_ranges_are_checked(wrong):
    with pytest.raises(InvalidParameter):
        calibrate(GaussianLoss, **{"epsilon": 1, "delta": 1e-6, **wrong})


def test_an_empty_range_of_whole_numbers_is_refused():
    with pytest.raises(InvalidParameter, match="no parameter between low and high"):
        calibrate(GaussianLoss, epsilon=1, delta=1e-6, low=2.1, high=2.9, integer=True)
