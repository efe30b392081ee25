"""The price of a question, and the noise that it buys: known before any data are read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.calibrate import calibrate
from sfumato.loss.gaussian import GaussianLoss
from sfumato.loss.leaky import LeakyLoss
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.quantile import Quantile
from sfumato.mechanisms.threshold_selection import ThresholdSelection
from sfumato.sql.question import Aggregate, Question
from sfumato.sql.release import Release, What, Window

CONFIDENCE = 0.95
Number = float | int | None


@dataclass(frozen=True)
class Offer:
    """Gaussian noise on all measures and a choice for each window, which share μ² equally; and a leak for keys that are
    private.

    A unit moves at most L groups, each measure j of a group by at most sⱼ: √L·sⱼ in L2. Noise σⱼ = sⱼ·√(L·m)/μ on each
    of m parts, or a choice that is μ/√(L·m)-GDP in each group, makes the whole μ-GDP.

    Theorem: Gaussian losses compose by μ² = Σμᵢ² [Dong, Roth & Su 2022, Cor. 3.3]
    """

    question: Question
    mu: float
    key_delta: float = 0.0  # for keys that must be found in the data

    @property
    def release(self) -> Release:
        return self.question.release

    @cached_property
    def loss(self) -> PrivacyLoss:
        inner = GaussianLoss(self.mu)
        return LeakyLoss(inner, self.key_delta) if self.key_delta else inner

    @cached_property
    def noise(self) -> tuple[Gaussian, ...]:
        """The mechanism of each measure, in its own steps."""
        share = math.sqrt(self.release.groups * self.release.parts) / self.mu * (1 + 1e-14)
        return tuple(Gaussian(self.release.sensitivity(m) * share) for m in self.release.measures)

    @cached_property
    def choices(self) -> tuple[Quantile, ...]:
        """The mechanism of each window, in one group."""
        mu = self.mu / math.sqrt(self.release.groups * self.release.parts) * (1 - 1e-14)
        return tuple(Quantile(mu, w.part, w.points, self.release.rows) for w in self.release.windows)

    @cached_property
    def threshold(self) -> int | None:
        """Noisy number of units from which on a private key is shown."""
        if not self.key_delta:
            return None
        units = [m.what for m in self.release.measures].index(What.UNITS)
        return ThresholdSelection(self.noise[units].sigma, self.key_delta, self.release.groups).threshold

    def served_by(self, loss: PrivacyLoss) -> "Offer | None":
        """The offer of the same release that was charged as this loss, if it is at least as exact.

        An answer with less noise serves who asked for more: it was released, so showing it tells nothing new.
        """
        inner, key_delta = (loss.inner, loss.failure) if isinstance(loss, LeakyLoss) else (loss, 0.0)
        if not isinstance(inner, GaussianLoss) or inner.mu < self.mu or key_delta != self.key_delta:
            return None
        return replace(self, mu=inner.mu)

    def errors(self, aggregate: Aggregate) -> tuple[float, ...]:
        """How far each measure of an aggregate is off at most, all of them together with 95 %."""
        each = 1 - (1 - CONFIDENCE) / max(1, len(aggregate.measures))
        return tuple(float(self.noise[j].error(each)) for j in aggregate.measures)

    def error(self, aggregate: Aggregate) -> float | None:
        """± at 95 % of a count or a sum; None where it depends on the (private) number of values."""
        steps = self.errors(aggregate)
        if aggregate.name == "count":
            return steps[0]
        if aggregate.name == "sum":
            return steps[0] * 2.0**aggregate.exponent + (abs(aggregate.centre) * steps[1] if len(steps) > 1 else 0.0)
        return None

    def drawn(self, exact: Sequence[Sequence[int]]) -> list[list[int]]:
        """Noise on every measure of every group: the only place where it is added."""
        if not self.noise:
            return [[] for _ in exact]
        noisy = []
        for j, noise in enumerate(self.noise):
            found = noise.release([row[j] for row in exact])
            noisy.append([int(x) for x in np.atleast_1d(found)])
        return [list(row) for row in zip(*noisy, strict=True)]


def offered(question: Question, epsilon: float, delta: float) -> Offer:
    """What (ε, δ) buys: through the exact profile; half of δ for keys that are private."""
    private = question.release.public is None
    key_delta = delta / 2 if private else 0.0
    return Offer(question, bought(epsilon, delta, key_delta), key_delta)


def accurate(question: Question, error: float, delta: float, most: float) -> Offer:
    """The least μ with which every count and sum is within `error` at 95 %; at most what `most` (ε) buys."""
    sure = [a for a in question.aggregates if a.name in ("count", "sum")]
    if not sure or len(sure) < len(question.aggregates):
        raise QueryRefused(
            "an absolute error can be promised for counts and sums only.\n"
            "  found:  an aggregate whose error depends on how many values there are\n"
            "  do:     ask by epsilon=, and look at the interval of the answer"
        )
    key_delta = delta / 2 if question.release.public is None else 0.0
    high = bought(most, delta, key_delta)

    def meets(mu: float) -> bool:
        offer = Offer(question, mu, key_delta)
        return all((offer.error(a) or 0.0) <= error for a in sure)

    if not meets(high):
        offer = Offer(question, high, key_delta)
        worst = max(offer.error(a) or 0.0 for a in sure)
        raise QueryRefused(
            f"± {error:g} would cost more than the whole budget.\n  found:  ± {worst:.3g} at ε = {most:g}\n"
            "  do:     ask for a larger error, or for fewer aggregates or groups"
        )
    low = high * 1e-6
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return Offer(question, high, key_delta)


@lru_cache(maxsize=1024)
def bought(epsilon: float, delta: float, key_delta: float) -> float:
    """The largest μ that keeps (ε, δ) beside a leak."""

    def family(mu: float) -> PrivacyLoss:
        return LeakyLoss(GaussianLoss(mu), key_delta) if key_delta else GaussianLoss(mu)

    return calibrate(family, epsilon=epsilon, delta=delta, tolerance=1e-9).lower


def quantile(window: Window, value: int, low: int, high: int) -> tuple[Number, Number, Number]:
    """(value, low, high) of a quantile, in the column's own units."""
    return window.value(value), window.value(low, -window.spare), window.value(high, window.spare)


def valued(aggregate: Aggregate, row: Sequence[int], errors: Sequence[float]) -> tuple[Number, Number, Number]:
    """(value, low, high) of an aggregate from noisy measures: post-processing."""
    step = 2.0**aggregate.exponent
    spans = [(row[j] - e, row[j] + e) for j, e in zip(aggregate.measures, errors, strict=True)]
    first = row[aggregate.measures[0]]
    if aggregate.name == "count":
        return first, max(0.0, spans[0][0]), max(0.0, spans[0][1])
    if aggregate.name == "sum" and len(spans) == 1:
        return first * step, spans[0][0] * step, spans[0][1] * step
    many = max(1, row[aggregate.measures[1]])
    fewest, most = max(1.0, spans[1][0]), max(1.0, spans[1][1])
    c = aggregate.centre
    if aggregate.name == "sum":
        ends = [s * step + c * n for s in spans[0] for n in spans[1]]
        return first * step + c * row[aggregate.measures[1]], min(ends), max(ends)
    means = [s * step / n for s in spans[0] for n in (fewest, most)]
    mean = first * step / many
    if aggregate.name == "avg":
        return c + mean, c + min(means), c + max(means)
    squares = [max(0.0, q) * step * step / n for q in spans[2] for n in (fewest, most)]
    variance = max(0.0, row[aggregate.measures[2]] * step * step / many - mean * mean)
    largest = max(m * m for m in means)
    least = 0.0 if min(means) <= 0 <= max(means) else min(m * m for m in means)
    low, high = max(0.0, min(squares) - largest), max(0.0, max(squares) - least)
    return (variance, low, high) if aggregate.name == "variance" else tuple(map(math.sqrt, (variance, low, high)))  # type: ignore[return-value]
