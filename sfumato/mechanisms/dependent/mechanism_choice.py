"""The mechanism to use for a statistic at a given price, chosen from public facts only, never from data."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato import checks
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.additive_noise import FINE, Everywhere
from sfumato.mechanisms.dependent.calibration import FAMILIES, HEAVY, for_epsilon, for_ledger
from sfumato.mechanisms.dependent.noisy_bound import NoisyBound
from sfumato.mechanisms.dependent.order_statistics import Maximum, Minimum, Quantile
from sfumato.mechanisms.dependent.propose_test_release import ProposeTestRelease
from sfumato.mechanisms.dependent.quantile_choice import ChosenQuantile
from sfumato.mechanisms.dependent.smooth import Smooth
from sfumato.mechanisms.dependent.smooth_loss import SmoothLoss
from sfumato.mechanisms.dependent.statistic import Exact, Statistic, answer_step, power_of_two
from sfumato.rounding import quotient_up

CHOSEN = "quantiles use the exponential mechanism: smooth sensitivity has 3 to 8 times the error"
PROPOSED = "a bound was proposed: it is tested first, and the noise is for that bound"
BOUNDED = "the local sensitivity changes little between neighbours: a noisy bound on it is released first"
SMOOTH = "smooth sensitivity: no cheaper mechanism is known for this statistic"
GLOBAL = "noise for the global sensitivity: nothing better is known for this statistic at this price"
HEAVY_BEST_UP_TO = 3.0  # up to this μ, at a dilation of μ/5, the HEAVY families had the least variance of all
BITS = 30  # answers with additive noise are rounded to 2^−BITS of the range
NARROW = 50  # a step is never below 2^−NARROW of the noise
MOST_WORK = 1 << 20  # limit on the numbers that the sensitivities of one answer are computed from; public
FIRST = 0.25  # share of μ², or of ε, for the test or the bound; the rest is for the answer


@dataclass(frozen=True)
class Way:
    """A mechanism that takes the data, and the reason why it was chosen. Both are public."""

    mechanism: Mechanism[Any, Any]
    why: str


def on_ledger(
    statistic: Statistic[Any],
    mu: float,
    slack: float = 1e-9,
    *,
    bound: float | Fraction | None = None,
    step: float | Fraction | None = None,
) -> Way:
    """The mechanism for a statistic that costs at most (μ², slack) on a Gaussian ledger.

    `bound` is a guess of the local sensitivity, for propose-test-release. `step` is the step of real-valued answers; by
    default it follows from the statistic (`answer_step`).

    >>> on_ledger(Quantile(0, 100), mu=0.5).why
    'quantiles use the exponential mechanism: smooth sensitivity has 3 to 8 times the error'
    """
    check_statistic(statistic)
    most = checks.positive("mu", mu) * (1 - 1e-12)
    first, rest = math.sqrt(FIRST) * most, math.sqrt(1 - FIRST) * most
    if bound is not None:
        fine = noise_step(statistic, step, Fraction(bound), rest)
        noise = Gaussian(quotient_up(_with_rounding(bound, fine), rest), fine)
        return Way(ProposeTestRelease(statistic, bound, Gaussian(quotient_up(1, first)), noise, slack), PROPOSED)
    if isinstance(statistic, Quantile):
        return Way(ChosenQuantile.on_ledger(statistic, most), CHOSEN)
    laws = HEAVY if most <= HEAVY_BEST_UP_TO else FAMILIES
    if drift := has_known_drift(statistic):
        way = NoisyBound(statistic, Gaussian(quotient_up(1, first)), Gaussian(quotient_up(1, rest)), slack)
        if way.shift + 1 < statistic.everywhere:
            return Way(way, BOUNDED)
    smooth = (
        None
        if drift
        else smooth_mechanism(statistic, step, lambda t: for_ledger(most**2, t, slack, families=laws).loss, most / 5)
    )
    if smooth is not None:
        return Way(smooth, SMOOTH)
    fine = noise_step(statistic, step, Fraction(statistic.everywhere), most)
    return Way(
        Everywhere(statistic, Gaussian(quotient_up(_with_rounding(statistic.everywhere, fine), most), fine)), GLOBAL
    )


def at(
    statistic: Statistic[Any],
    epsilon: float,
    delta: float = 0.0,
    *,
    bound: float | Fraction | None = None,
    step: float | Fraction | None = None,
) -> Way:
    """The mechanism for a statistic that is (ε, δ)-DP; the parameters are those of `on_ledger`."""
    check_statistic(statistic)
    eps, small = checks.positive("epsilon", epsilon) * (1 - 1e-12), checks.probability("delta", delta)
    first, rest = FIRST * eps, (1 - FIRST) * eps
    if bound is not None:
        if not small:
            raise InvalidParameter("testing a bound needs δ > 0.\n  found:  delta = 0\n  do:     give delta=1e-6, say")
        fine = noise_step(statistic, step, Fraction(bound), rest)
        noise = Laplace(quotient_up(_with_rounding(bound, fine), rest), fine)
        return Way(ProposeTestRelease(statistic, bound, Laplace(quotient_up(1, first)), noise, small), PROPOSED)
    if isinstance(statistic, Quantile):
        return Way(ChosenQuantile.at(statistic, eps, small), CHOSEN)
    if drift := bool(small) and has_known_drift(statistic):
        way = NoisyBound(statistic, Laplace(quotient_up(1, first)), Laplace(quotient_up(1, rest)), small)
        if way.shift + 1 < statistic.everywhere:
            return Way(way, BOUNDED)
    smooth = None if drift else smooth_mechanism(statistic, step, lambda t: for_epsilon(eps, small, t).loss, eps / 10)
    if smooth is not None:
        return Way(smooth, SMOOTH)
    fine = noise_step(statistic, step, Fraction(statistic.everywhere), eps)
    return Way(
        Everywhere(statistic, Laplace(quotient_up(_with_rounding(statistic.everywhere, fine), eps), fine)), GLOBAL
    )


def noise_step(statistic: Statistic[Any], step: float | Fraction | None, size: Fraction, rate: float) -> Fraction:
    """The step of additive noise for this size: as given, or small against both the range and the noise.

    Values off the lattice are represented up to 2³² steps (`RoundedNoise`), and noise is drawn up to 10¹⁸ steps.
    """
    if step is not None:
        return Fraction(step)
    found = answer_step(statistic, BITS)
    if statistic.grain is not None:
        return found
    scale = power_of_two(size / Fraction(rate))
    return max(min(found, scale), scale / (1 << NARROW))


def smooth_mechanism(
    statistic: Statistic[Any],
    step: float | Fraction | None,
    calibrated: Callable[[float], SmoothLoss],
    dilation: float,
) -> Smooth | None:
    """Smooth sensitivity, for statistics with no better mechanism; None where noise for the global sensitivity is used.

    The dilation depends only on the price: μ/5 or ε/10, where the noise has about 1.4 times (for ε and μ = ε: 3 to 4
    times) the variance of a Gaussian at the same scale. A smaller dilation needs sensitivities at larger distances. If
    these would need too much memory, or the global sensitivity is at most one step, the result is None.
    """
    coarse = statistic.grain if step is None else step
    if coarse is not None and statistic.everywhere <= coarse:
        return None
    try:
        loss = calibrated(min(max(dilation, 1e-3), 0.5))
        smooth = Smooth(statistic, loss.noise, loss.shift, loss.dilation, loss.steps, step)
    except OutOfReach:
        return None
    return smooth if statistic.work(max(smooth.ladder.window - 1, 0)) <= MOST_WORK else None


def check_statistic(statistic: object) -> None:
    """Raises InvalidParameter for anything but a statistic, and for the minimum and maximum."""
    if not isinstance(statistic, Statistic):
        raise InvalidParameter(
            f"statistic must be a Statistic.\n  found:  a {type(statistic).__name__}\n"
            "  do:     give one of sfumato.mechanisms.dependent, such as TrimmedMean(0, 100)"
        )
    if isinstance(statistic, Minimum | Maximum):
        raise InvalidParameter(
            "the minimum and the maximum depend on one person alone, so no noise makes them both private and useful.\n"
            f"  found:  {type(statistic).__name__}\n  do:     ask for an extreme quantile: Quantile(low, high, p=0.01)"
        )


def has_known_drift(statistic: Statistic[Any]) -> bool:
    """Whether `NoisyBound` applies: an integer statistic with a known drift of its local sensitivity."""
    return statistic.drift is not None and statistic.grain == 1


def _with_rounding(size: Exact | float, step: float | Fraction) -> Fraction:
    """The size plus 2⁻²⁰ steps, for values off the lattice."""
    return Fraction(size) + Fraction(step) / (1 << FINE)
