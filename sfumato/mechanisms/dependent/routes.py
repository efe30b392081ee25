"""Which way to an answer: by what the question is and what it may cost, never by data."""

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
from sfumato.mechanisms.dependent.calibration import FAMILIES, HEAVY, for_epsilon, for_ledger
from sfumato.mechanisms.dependent.extremes import Maximum, Minimum
from sfumato.mechanisms.dependent.global_noise import Everywhere
from sfumato.mechanisms.dependent.noisy_bound import NoisyBound
from sfumato.mechanisms.dependent.off_lattice import FINE
from sfumato.mechanisms.dependent.propose_test_release import ProposeTestRelease
from sfumato.mechanisms.dependent.quantile import Quantile
from sfumato.mechanisms.dependent.quantile_choice import ChosenQuantile
from sfumato.mechanisms.dependent.smooth import Smooth
from sfumato.mechanisms.dependent.smooth_loss import SmoothLoss
from sfumato.mechanisms.dependent.statistic import Exact, Statistic, answer_step, power_of_two
from sfumato.rounding import quotient_up

CHOSEN = "quantiles are chosen by score: smooth sensitivity errs 3 to 8 times as far"
PROPOSED = "a bound was proposed: it is tested, and the noise is made for it"
BOUNDED = "its local sensitivity moves little between neighbours, so that is bought first, and noise made for it"
SMOOTH = "nothing cheaper is known for this statistic, so noise has the scale that is smooth around the data"
GLOBAL = "noise for the worst data: nothing better is known for this statistic at this price"
TRIED = 3.0  # up to this μ, at a dilation of μ/5, Student and arsinh-normal noise were the least of all families
BITS = 30  # of a range that answers with additive noise are told apart by
NARROW = 50  # bits of the noise below which a step is not worth it
MOST_WORK = 1 << 20  # numbers that the sensitivities of one answer are worked out from; public, like all of this
FIRST = 0.25  # of μ², or of ε, for the test or the bound; the rest is for the answer


@dataclass(frozen=True)
class Way:
    """A mechanism on data, and why it was taken. Both are public."""

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
    """The way to a statistic that costs at most (μ², slack) on a Gaussian ledger.

    `bound`: a guess of the local sensitivity; then it is tested, and noise is made for it. `step`: of real answers; if
    it is not given, it follows from the statistic (`answer_step`).

    >>> on_ledger(Quantile(0, 100), mu=0.5).why
    'quantiles are chosen by score: smooth sensitivity errs 3 to 8 times as far'
    """
    askable(statistic)
    most = checks.positive("mu", mu) * (1 - 1e-12)
    first, rest = math.sqrt(FIRST) * most, math.sqrt(1 - FIRST) * most
    if bound is not None:
        fine = stepped(statistic, step, Fraction(bound), rest)
        noise = Gaussian(_over(_wider(bound, fine), rest), fine)
        return Way(ProposeTestRelease(statistic, bound, Gaussian(_over(1, first)), noise, slack), PROPOSED)
    if isinstance(statistic, Quantile):
        return Way(ChosenQuantile.on_ledger(statistic, most), CHOSEN)
    laws = HEAVY if most <= TRIED else FAMILIES
    if drift := drifting(statistic):
        way = NoisyBound(statistic, Gaussian(_over(1, first)), Gaussian(_over(1, rest)), slack)
        if way.shift + 1 < statistic.everywhere:
            return Way(way, BOUNDED)
    smooth = (
        None
        if drift
        else smoothly(statistic, step, lambda t: for_ledger(most**2, t, slack, families=laws).loss, most / 5)
    )
    if smooth is not None:
        return Way(smooth, SMOOTH)
    fine = stepped(statistic, step, Fraction(statistic.everywhere), most)
    return Way(Everywhere(statistic, Gaussian(_over(_wider(statistic.everywhere, fine), most), fine)), GLOBAL)


def at(
    statistic: Statistic[Any],
    epsilon: float,
    delta: float = 0.0,
    *,
    bound: float | Fraction | None = None,
    step: float | Fraction | None = None,
) -> Way:
    """The way to a statistic that is (ε, δ)-DP."""
    askable(statistic)
    eps, small = checks.positive("epsilon", epsilon) * (1 - 1e-12), checks.probability("delta", delta)
    first, rest = FIRST * eps, (1 - FIRST) * eps
    if bound is not None:
        if not small:
            raise InvalidParameter("a guess is tested with a δ.\n  found:  delta = 0\n  do:     give delta=1e-6, say")
        fine = stepped(statistic, step, Fraction(bound), rest)
        noise = Laplace(_over(_wider(bound, fine), rest), fine)
        return Way(ProposeTestRelease(statistic, bound, Laplace(_over(1, first)), noise, small), PROPOSED)
    if isinstance(statistic, Quantile):
        return Way(ChosenQuantile.at(statistic, eps, small), CHOSEN)
    if drift := bool(small) and drifting(statistic):
        way = NoisyBound(statistic, Laplace(_over(1, first)), Laplace(_over(1, rest)), small)
        if way.shift + 1 < statistic.everywhere:
            return Way(way, BOUNDED)
    smooth = None if drift else smoothly(statistic, step, lambda t: for_epsilon(eps, small, t).loss, eps / 10)
    if smooth is not None:
        return Way(smooth, SMOOTH)
    fine = stepped(statistic, step, Fraction(statistic.everywhere), eps)
    return Way(Everywhere(statistic, Laplace(_over(_wider(statistic.everywhere, fine), eps), fine)), GLOBAL)


def stepped(statistic: Statistic[Any], step: float | Fraction | None, size: Fraction, rate: float) -> Fraction:
    """The step of additive noise for this size: as given, or fine beside both the range and the noise.

    Values off the lattice are known to 2³² steps (`About`), and noise is drawn up to 10¹⁸ steps.
    """
    if step is not None:
        return Fraction(step)
    found = answer_step(statistic, BITS)
    if statistic.grain is not None:
        return found
    scale = power_of_two(size / Fraction(rate))
    return max(min(found, scale), scale / (1 << NARROW))


def smoothly(
    statistic: Statistic[Any],
    step: float | Fraction | None,
    calibrated: Callable[[float], SmoothLoss],
    dilation: float,
) -> Smooth | None:
    """Smooth sensitivity, for statistics that have no other way and a worst case of more than one step.

    The dilation follows from the price alone: a fifth of μ, a tenth of ε, where the noise has about 1.4 times, resp. 3
    to 4 times (μ = ε), the variance of a Gaussian at the same scale; a smaller one is smooth over more people. If there
    are so many that their sensitivities would fill the memory, noise is made for the worst data instead.
    """
    coarse = statistic.grain if step is None else step
    if coarse is not None and statistic.everywhere <= coarse:
        return None
    try:
        loss = calibrated(min(max(dilation, 1e-3), 0.5))
        found = Smooth(statistic, loss.noise, loss.shift, loss.dilation, loss.steps, step)
    except OutOfReach:
        return None
    return found if statistic.work(max(found.ladder.window - 1, 0)) <= MOST_WORK else None


def askable(statistic: object) -> None:
    """Refuses what should not be asked like this at all."""
    if not isinstance(statistic, Statistic):
        raise InvalidParameter(
            f"this is no statistic.\n  found:  a {type(statistic).__name__}\n"
            "  do:     give one of sfumato.mechanisms.dependent, such as TrimmedMean(0, 100)"
        )
    if isinstance(statistic, Minimum | Maximum):
        raise InvalidParameter(
            "the least and the largest value are whatever one person has: no noise helps.\n"
            f"  found:  {type(statistic).__name__}\n  do:     ask for an extreme quantile: Quantile(low, high, p=0.01)"
        )


def drifting(statistic: Statistic[Any]) -> bool:
    """Can its local sensitivity be bought with noise?"""
    return statistic.drift is not None and statistic.grain == 1


def _wider(size: Exact | float, step: float | Fraction) -> Fraction:
    """A part of a step more, for values off the lattice."""
    found: Fraction = Fraction(size) + Fraction(step) / 2**FINE
    return found


def _over(size: Exact | float, rate: float) -> float:
    """size/rate, never below."""
    return quotient_up(size, rate)
