"""Propose, test, release with proposals from a grid: the least bound that passes, at the price of one search."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.additive.base import Released
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.off_lattice import FINE, About, scaled, unit_noise
from sfumato.mechanisms.dependent.statistic import Statistic
from sfumato.mechanisms.keys.thresholds import LEAST_DELTA, PREC, least_integer
from sfumato.mechanisms.streams.above_threshold import AboveThreshold
from sfumato.noise.balls import Ball, ball, precision
from sfumato.sensitivity import Sensitivity

MOST_BOUNDS = 4096


class Passed(NamedTuple):
    """An answer, and the proposal that passed, for which its noise was made."""

    answer: Released
    bound: float


@dataclass(frozen=True)
class SearchTestRelease(Mechanism[Any, "Passed | None"]):
    """The first of several rising bounds whose distance is far enough from 0, and f(x) + noise for that bound; or None.

    Distances min{k : LS_k(x) > b} of all bounds b are asked one after the other above one noisy threshold (the sparse
    vector technique), which costs ε = `eps` once, whatever their number G. A bound that is less than what neighbours
    differ by has distance 0 at both; the threshold makes it pass with a probability of at most δ(1 − T)/G. So the
    search costs ε and a threshold that is higher by about ln(G)/ε than that of one proposal.

    Theorem: if a bound that is too low passes with probability at most δ(1 − T), T the total variation of search and
        noise together, the profile is at most δ + (1 − δ)·(that of both) [docs/theorems/recipes.md, Theorem 5]
    """

    statistic: Statistic[Any]
    bounds: tuple[float | Fraction, ...]
    eps: float
    unit: Gaussian | Laplace
    delta: float

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must know its local sensitivity.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give one of sfumato.mechanisms.dependent, such as Quantile(0, 100)"
            )
        if not isinstance(self.bounds, tuple) or not 1 <= len(self.bounds) <= MOST_BOUNDS:
            raise InvalidParameter(
                f"bounds must be a tuple of 1 to {MOST_BOUNDS} numbers.\n  found:  a {type(self.bounds).__name__}\n"
                "  do:     give proposals such as (1, 2, 4, 8)"
            )
        for bound in self.bounds:
            checks.positive("a bound", bound)
        if list(self.bounds) != sorted(set(self.bounds)):
            raise InvalidParameter("bounds must rise.\n  do:     give proposals such as (1, 2, 4, 8)")
        object.__setattr__(self, "eps", checks.positive("eps", self.eps))
        allowed = f"a number from {LEAST_DELTA:g} to 0.5"
        object.__setattr__(self, "delta", checks.number("delta", self.delta, LEAST_DELTA, 0.5, allowed=allowed))
        unit_noise(self.unit)
        assert self.noises and self.search  # refuses what cannot be drawn

    def noise(self, bound: float | Fraction) -> Gaussian | Laplace:
        """The noise for this bound; values off the lattice are moved by 2⁻²⁰ steps."""
        more = 0 if About.of(self.unit, self.statistic).whole else self.unit.lattice.step / 2**FINE
        return scaled(self.unit, Fraction(bound) + more)

    @cached_property
    def noises(self) -> tuple[Gaussian | Laplace, ...]:
        """For each bound, made once: what is drawn ahead is not lost."""
        return tuple(self.noise(bound) for bound in self.bounds)

    @cached_property
    def both(self) -> PrivacyLoss:
        """The loss where no bound that is too low passes."""
        one = Sensitivity(l0=1, linf=1, l1=1, l2=1, relation=self.statistic.relation)
        return AboveThreshold(self.eps, 0, 1, one).loss() + self.unit.loss(one)

    @cached_property
    def search(self) -> AboveThreshold:
        """The least threshold at which distance 0 passes rarely enough."""
        one = Sensitivity(l0=1, linf=1, l1=1, l2=1, relation=self.statistic.relation)
        goal = Fraction(self.delta * (1 - self.both.delta(0.0).upper) * (1 - 1e-14)) / len(self.bounds)
        first, second = AboveThreshold(self.eps, 0, 1, one).laws
        with precision(PREC):
            a, b = (ball(-1 / Fraction(law.scale)).exp() for law in (first, second))
            level = 1 + least_integer(lambda t: bool(difference(a, b, t + 1) <= ball(goal)))
        return AboveThreshold(self.eps, level, 1, one, source=self.source)

    @property
    def cap(self) -> int:
        """Larger distances count as this."""
        return 2 * self.search.threshold

    def release(self, value: Any) -> "Passed | None":
        self.ready(1)
        data = self.statistic.prepared(value)
        exact = self.statistic.value(data)
        sizes = self.statistic.curve(data, self.cap - 1)
        distances = [sum(size <= bound for size in sizes) for bound in (Fraction(b) for b in self.bounds)]
        answers = self.search.release(distances)
        if not answers[-1]:
            return None
        at = len(answers) - 1
        return Passed(About.of(self.noises[at], self.statistic).drawn(exact), float(self.bounds[at]))

    def ready(self, count: int) -> None:
        self.search.ready(count * len(self.bounds))

    def loss(self) -> LeakyLoss:
        return LeakyLoss(self.both, self.delta, relation=self.both.relation)

    def error(self, confidence: float = 0.95, *, bound: float) -> float:
        """With this probability an answer with this bound, which is public, is off by at most this."""
        off = 0 if About.of(self.unit, self.statistic).whole else 2 * float(self.unit.lattice.step)
        return self.noise(bound).error(confidence) + off


def difference(a: Ball, b: Ball, t: int) -> Ball:
    """P(ν − ρ ≥ t), t ≥ 1, for independent discrete Laplace ρ and ν of ratios a ≠ b.

    Σ_k P(ρ = −k)·P(ν ≥ t − k), in geometric series: k < 0, 0 ≤ k < t, and k ≥ t, where P(ν ≥ −m) = 1 − b^{m+1}/(1+b).
    """
    below = b**t * (a * b / (1 - a * b) + (1 - (a / b) ** t) / (1 - a / b)) / (1 + b)
    beyond = a**t / (1 - a) - a**t * b / ((1 - a * b) * (1 + b))
    return (1 - a) / (1 + a) * (below + beyond)
