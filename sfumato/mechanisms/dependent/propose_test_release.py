"""Propose-test-release: test privately that the data are far from violating a bound, then release with little noise.

`ProposeTestRelease` tests one proposed local sensitivity, `SearchTestRelease` several, and `TestedRelease` puts any
mechanism behind a test.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.gated import GatedLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.additive.base import Additive, Released
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism, check_mechanism
from sfumato.mechanisms.dependent.additive_noise import FINE, RoundedNoise, check_unit_noise, scale_noise
from sfumato.mechanisms.dependent.private_test import Gate, IntegerNoise, whole_distance
from sfumato.mechanisms.dependent.statistic import Statistic
from sfumato.mechanisms.examples import ROWS_OF_NUMBERS, Example, Inputs, Neighbours
from sfumato.mechanisms.keys.threshold_selection import LEAST_DELTA, PREC, least_integer
from sfumato.mechanisms.streams.above_threshold import AboveThreshold
from sfumato.noise.balls import Ball, ball, precision
from sfumato.sensitivity import Sensitivity


@dataclass(frozen=True)
class ProposeTestRelease(Mechanism[Any, "Released | None"]):
    """f(x) + noise for the sensitivity `bound` if x is far from data with a larger local sensitivity; else None.

    The distance d(x) = min{k : LS_k(x) > bound} passes the test if d(x) + noise reaches the threshold. Neighbours whose
    answers differ by more than `bound` both have distance 0 and pass with the same p₀ ≤ δ; such a pair costs p₀. Any
    other pair costs a test and an answer. The loss is the maximum of the two at each ε, not their sum.

    Theorem: the profile of propose-test-release is max(p₀, that of safe pairs); with Laplace noise and the threshold
        ln(1/2δ)/ε it is (2ε, δ)-DP [Dwork & Lei 2009; docs/theorems/recipes.md, Theorem 1]
    """

    statistic: Statistic[Any]
    bound: float | Fraction
    test: IntegerNoise
    noise: Additive
    delta: float
    use = "if the sensitivity is small on typical data: propose a bound, test it, release"

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must be a Statistic.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give one of sfumato.mechanisms.dependent, such as Quantile(0, 100)"
            )
        checks.positive("bound", self.bound)
        assert self.gate and self.rounded_noise  # raise InvalidParameter for noise that does not fit
        object.__setattr__(self, "delta", self.gate.delta)

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.test, self.delta)

    @cached_property
    def rounded_noise(self) -> RoundedNoise:
        return RoundedNoise.of(self.noise, self.statistic)

    def release(self, value: Any) -> "Released | None":
        """The answer, or None if the test fails; None is part of the public output."""
        self.ready(1)
        data = self.statistic.prepare(value)
        d = self.statistic.distance(data, Fraction(self.bound), self.gate.cap)
        exact = self.statistic.value(data)
        return self.rounded_noise.draw(exact) if self.gate.opens(d) else None

    def ready(self, count: int) -> None:
        self.gate.ready(count)
        self.noise.ready(count)

    def loss(self) -> GatedLoss:
        sensitivity = self.statistic.sensitivity
        return self.gate.loss(self.rounded_noise.loss(Fraction(self.bound), sensitivity), sensitivity.relation)

    def error(self, confidence: float = 0.95) -> float:
        """The error of an answer, if there is one, that is not exceeded with this probability."""
        more = 0 if self.rounded_noise.aligned else 2 * float(self.rounded_noise.step)
        return self.noise.error(confidence) + more

    def sure(self, confidence: float = 0.95) -> int:
        """The least distance from which on data are answered with at least this probability."""
        return self.gate.sure(confidence)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
        from sfumato.mechanisms.dependent.order_statistics import Quantile

        pairs = (Neighbours([0] * 4 + [2] * 4, [0] * 4 + [2] * 5), Neighbours([], [30]))
        inputs = Inputs("numbers, one per person", ROWS_OF_NUMBERS, ())
        made = cls(Quantile(0, 30), 2, DiscreteLaplace(1.0), DiscreteLaplace(2.0), 0.1)
        return (Example(made, pairs, inputs, step=Fraction(1)),)


MOST_BOUNDS = 4096


class Passed(NamedTuple):
    """An answer, and the bound that passed the test and sets the scale of its noise."""

    answer: Released
    bound: float


@dataclass(frozen=True)
class SearchTestRelease(Mechanism[Any, "Passed | None"]):
    """f(x) + noise for the first of several increasing bounds that passes a private test; None if none does.

    The distances min{k : LS_k(x) > b} of all bounds b are compared, one after the other, with one noisy threshold (the
    sparse vector technique). That costs ε = `eps` once, whatever the number G of bounds. A bound below the difference
    of neighbours' answers has distance 0 at both; the threshold lets it pass with probability at most δ(1 − T)/G. So a
    search costs ε and a threshold about ln(G)/ε higher than that of a single proposal.

    Theorem: if a bound that is too low passes with probability at most δ(1 − T), T the total variation of search and
        noise together, the profile is at most δ + (1 − δ)·(that of both) [docs/theorems/recipes.md, Theorem 5]
    """

    statistic: Statistic[Any]
    bounds: tuple[float | Fraction, ...]
    eps: float
    unit: Gaussian | Laplace
    delta: float
    use = "if no one bound can be proposed: a few are tested at the price of one choice"

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must be a Statistic.\n  found:  a {type(self.statistic).__name__}\n"
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
            raise InvalidParameter(
                f"bounds must increase.\n  found:  {self.bounds}\n  do:     give proposals such as (1, 2, 4, 8)"
            )
        object.__setattr__(self, "eps", checks.positive("eps", self.eps))
        allowed = f"a number from {LEAST_DELTA:g} to 0.5"
        object.__setattr__(self, "delta", checks.number("delta", self.delta, LEAST_DELTA, 0.5, allowed=allowed))
        check_unit_noise(self.unit)
        assert self.noises and self.search  # raise InvalidParameter for noise that cannot be drawn

    def noise(self, bound: float | Fraction) -> Gaussian | Laplace:
        """The noise for this bound; values off the lattice add 2⁻²⁰ steps to the sensitivity."""
        more = 0 if RoundedNoise.of(self.unit, self.statistic).aligned else self.unit.lattice.step / 2**FINE
        return scale_noise(self.unit, Fraction(bound) + more)

    @cached_property
    def noises(self) -> tuple[Gaussian | Laplace, ...]:
        """The noise for each bound, made once so that draws made in advance are kept."""
        return tuple(self.noise(bound) for bound in self.bounds)

    @cached_property
    def both(self) -> PrivacyLoss:
        """The loss of search and noise, given that no bound that is too low passes."""
        one = Sensitivity(l0=1, linf=1, l1=1, l2=1, relation=self.statistic.relation)
        return AboveThreshold(self.eps, 0, 1, one).loss() + self.unit.loss(one)

    @cached_property
    def search(self) -> AboveThreshold:
        """The search with the least threshold at which distance 0 passes with probability at most δ(1 − T)/G."""
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
        data = self.statistic.prepare(value)
        exact = self.statistic.value(data)
        sizes = self.statistic.curve(data, self.cap - 1)
        distances = [sum(size <= bound for size in sizes) for bound in (Fraction(b) for b in self.bounds)]
        answers = self.search.release(distances)
        if not answers[-1]:
            return None
        at = len(answers) - 1
        return Passed(RoundedNoise.of(self.noises[at], self.statistic).draw(exact), float(self.bounds[at]))

    def ready(self, count: int) -> None:
        self.search.ready(count * len(self.bounds))

    def loss(self) -> LeakyLoss:
        return LeakyLoss(self.both, self.delta, relation=self.both.relation)

    def error(self, confidence: float = 0.95, *, bound: float) -> float:
        """The error of an answer with this (public) bound that is not exceeded with this probability."""
        off = 0 if RoundedNoise.of(self.unit, self.statistic).aligned else 2 * float(self.unit.lattice.step)
        return self.noise(bound).error(confidence) + off

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.additive.laplace import Laplace
        from sfumato.mechanisms.dependent.order_statistics import Quantile

        pairs = (Neighbours([0] * 9 + [2] * 9, [0] * 9 + [2] * 10), Neighbours([], [30]))
        inputs = Inputs("numbers, one per person", ROWS_OF_NUMBERS, ())
        return (Example(cls(Quantile(0, 30), (1, 2, 4), 1.0, Laplace(2.0), 0.2), pairs, inputs),)


def difference(a: Ball, b: Ball, t: int) -> Ball:
    """P(ν − ρ ≥ t), t ≥ 1, for independent discrete Laplace ρ and ν of ratios a ≠ b.

    Σ_k P(ρ = −k)·P(ν ≥ t − k) as geometric series over k < 0, 0 ≤ k < t and k ≥ t, with P(ν ≥ −m) = 1 − b^{m+1}/(1+b).
    """
    below = b**t * (a * b / (1 - a * b) + (1 - (a / b) ** t) / (1 - a / b)) / (1 + b)
    beyond = a**t / (1 - a) - a**t * b / ((1 - a * b) * (1 + b))
    return (1 - a) / (1 + a) * (below + beyond)


@dataclass(frozen=True)
class TestedRelease(Mechanism[Any, Any]):
    """The output of `mechanism` if the data pass a private test; None otherwise.

    `promised` is the loss of the mechanism between good data and all their neighbours, in both directions. `margin` is
    an integer of sensitivity 1 that is 0 for all data that are not good: the distance to bad data, or a real statistic
    of sensitivity 1 minus its least good value, rounded down and at least 0. The caller guarantees both. Nothing is
    promised for neighbours that are both bad: these pass with probability p₀ ≤ δ, which is all they cost, since a
    failed test reveals nothing else. So the loss is max(p₀, loss of the test and the promise).

    Theorem: generalised propose-test-release costs the larger of the two, not their sum, if a failed test outputs only
        None [docs/theorems/recipes.md, Theorem 1; cf. Redberg, Zhu & Wang 2023]
    """

    __test__ = False  # tells pytest that this is no test class

    mechanism: Mechanism[Any, Any]
    promised: PrivacyLoss
    margin: Callable[[Any], int] = field(repr=False)
    test: IntegerNoise
    delta: float
    use = "for any mechanism whose loss is small on typical data, behind a test"

    def __post_init__(self) -> None:
        check_mechanism("mechanism", self.mechanism)
        if not isinstance(self.promised, PrivacyLoss):
            raise InvalidParameter(
                f"promised must be a PrivacyLoss.\n  found:  a {type(self.promised).__name__}\n"
                "  do:     give such as sf.loss.GaussianLoss(0.5)"
            )
        if not callable(self.margin):
            raise InvalidParameter(
                f"margin must be a function of the data.\n  found:  a {type(self.margin).__name__}\n"
                "  do:     give one that returns a whole number"
            )
        object.__setattr__(self, "delta", self.gate.delta)

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.test, self.delta)

    def release(self, value: Any) -> Any:
        self.ready(1)
        return self.mechanism.release(value) if self.gate.opens(whole_distance(self.margin(value))) else None

    def ready(self, count: int) -> None:
        self.gate.ready(count)
        self.mechanism.ready(count)

    def loss(self) -> GatedLoss:
        return self.gate.loss(self.promised, self.promised.relation)

    def sure(self, confidence: float = 0.95) -> int:
        """The least margin from which on data are answered with at least this probability."""
        return self.gate.sure(confidence)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.loss.kinds.laplace import LaplaceLoss
        from sfumato.mechanisms.additive.gaussian import Gaussian
        from sfumato.mechanisms.additive.laplace import Laplace

        mean = Laplace(3.0).on(part_of_a_hundred, 3)
        made = cls(mean, LaplaceLoss(1.0), people_beyond_five, Gaussian(3.0), 0.3)
        pairs = (Neighbours([0] * 12, [0] * 11), Neighbours([0], [0, 0]), Neighbours([0] * 5, [0] * 6))
        return (Example(made, pairs, Inputs("data of a query", ([], [math.nan], {}), ()), step=Fraction(1)),)


def part_of_a_hundred(data: list[int]) -> int:
    """A query that one person moves by at most 3 if there are six people or more, for the example."""
    return round(100 / max(len(data), 1))


def people_beyond_five(data: list[int]) -> int:
    """The distance to data on which that query moves farther, for the example."""
    return len(data) - 5
