"""A statistic plus noise at the scale that fits the data: smooth sensitivity, on a ladder."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.mechanisms.additive.base import lattice_of_step
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.cells import radius
from sfumato.mechanisms.dependent.ladder import Ladder
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.mechanisms.dependent.smooth_loss import SmoothLoss
from sfumato.mechanisms.dependent.statistic import Exact, OfValues, Statistic, answer_step
from sfumato.noise import Certified, Lattice, Sampler, rounded_gaussian
from sfumato.noise.balls import Ball, ball, precision
from sfumato.noise.lazy import Draw
from sfumato.noise.radius import radius as integer_radius
from sfumato.rounding import quotient_up, round_up

FINE = 40  # bits of a range that answers are told apart by


@dataclass(frozen=True)
class Smooth(Mechanism[Any, float]):
    """round(f + (scale/s)·Z) on the multiples of `step`, where the scale is the rung of the data on a public ladder.

    `shift` is s: the noise moves by s units when the answer moves by its scale. `dilation` and `steps` make the ladder,
    whose least scale is `least`: the step, if not given. The step, if not given, follows from the statistic: the one
    that its values are multiples of, or 2⁻⁴⁰ of their range (then the least scale of values on a lattice is its step).
    Rounding is post-processing, so the loss is that of the ideal noise. How far the answer may be off depends on a
    private scale, so there is no `error`: see `with_error`.

    Theorem: noise at the rung's scale has the loss of pairs (Z, e^l·Z + u), l in {0, t/r, …, t}, 0 ≤ u ≤ s
        [docs/theorems/dilation.md, Theorem 3; Nissim, Raskhodnikova & Smith 2007, Lemma 2.6]
    """

    statistic: Statistic[Any]
    noise: Noise
    shift: float
    dilation: float
    steps: int = 4
    step: float | Fraction | None = None
    least: float | Fraction | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must know its local sensitivities.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give one of sf.dependent, such as TrimmedMean(0, 100, trim=5), or Given(…)"
            )
        if self.step is None:
            object.__setattr__(self, "step", answer_step(self.statistic, FINE))
            if self.least is None and isinstance(self.statistic, OfValues):
                object.__setattr__(self, "least", self.statistic.lattice.step)
        loss = SmoothLoss(self.noise, self.shift, self.dilation, self.steps)
        for name in ("shift", "dilation", "steps"):
            object.__setattr__(self, name, getattr(loss, name))
        assert self.lattice and self.ladder  # refuse what makes no sense

    @cached_property
    def lattice(self) -> Lattice:
        assert self.step is not None
        return lattice_of_step(self.step)

    @cached_property
    def ladder(self) -> Ladder:
        """Public: it depends on no data."""
        least = self.lattice.step if self.least is None else self.least
        return Ladder(self.dilation, self.statistic.everywhere, least, self.steps)

    def loss(self) -> SmoothLoss:
        return SmoothLoss(self.noise, self.shift, self.dilation, self.steps, relation=self.statistic.relation)

    def rung(self, data: Any) -> int:
        """Where the data stand. Private."""
        window = self.ladder.window
        return self.ladder.rung(self.statistic.curve(data, window - 1) if window else ())

    def width(self, rung: int) -> Certified:
        """Scale over s, in steps."""
        scale, unit = self.ladder.scale(rung), self.lattice.step * Fraction(self.shift)

        def found(prec: int) -> Ball:
            with precision(prec):
                return scale.ball(prec) / ball(unit)

        return Certified(found)

    def release(self, value: Any) -> float:
        """One answer. Bits are drawn before the data are looked at, and as many whatever the data are."""
        draw = Draw(self.noise, self.source)
        return self.noisy(draw, self.statistic.value(value), self.rung(value))

    def noisy(self, draw: Draw, exact: Exact, rung: int) -> float:
        """The answer for one draw, a private value and its rung."""
        multiple = draw.rounded(Fraction(exact) / self.lattice.step, self.width(rung))
        return float(multiple * self.lattice.step)

    def with_error(self, sigma: float, confidence: float = 0.95) -> "SmoothWithError":
        """The same, and how far it may be off: the rung, with noise of its own that is charged too, tells the scale."""
        return SmoothWithError(self, sigma, confidence, source=self.source)


class Off(NamedTuple):
    """An answer, and by how much it may be off at the confidence asked for."""

    value: float
    error: float


@dataclass(frozen=True)
class SmoothWithError(Mechanism[Any, Off]):
    """A smooth answer and a bound on its error, from a noisy upper bound of the rung.

    The rung moves by at most r = `steps` between neighbours, so rung + N(0, σ²), rounded, is (r/σ)-GDP. Half of what
    may go wrong is for this bound to lie below the rung, half for the noise to lie outside its quantile at that scale.

    Theorem: ln S has global sensitivity t, so an upper bound of it can be bought [docs/theorems/dilation.md, Theorem 3]
    """

    inner: Smooth
    sigma: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Smooth):
            raise InvalidParameter(
                f"inner must be a Smooth mechanism.\n  found:  a {type(self.inner).__name__}\n"
                "  do:     call with_error(sigma) of one"
            )
        object.__setattr__(
            self, "sigma", checks.number("sigma", self.sigma, 1e-2, 1e6, allowed="rungs, from 0.01 to a million")
        )
        object.__setattr__(
            self, "confidence", checks.number("confidence", self.confidence, 1e-9, 1 - 1e-9, allowed="e.g. 0.95")
        )

    @cached_property
    def wrong(self) -> float:
        """The share of what may go wrong for each of two things."""
        return (1 - self.confidence) / 2 * (1 - 1e-9)

    @cached_property
    def margin(self) -> int:
        """Rungs to add, so that the noisy rung is below the true one as rarely as that."""
        return integer_radius(rounded_gaussian(self.sigma), 1 - self.wrong)

    @cached_property
    def quantile(self) -> float:
        """|Z| is larger as rarely as that."""
        return radius(self.inner.noise, self.wrong)

    @cached_property
    def rungs(self) -> Sampler:
        return Sampler(rounded_gaussian(self.sigma), source=self.source)

    def loss(self) -> PrivacyLoss:
        """That of the answer and that of the rung."""
        mu = quotient_up(float(self.inner.steps), self.sigma)
        return self.inner.loss() + GaussianLoss(mu, relation=self.inner.statistic.relation)

    def release(self, value: Any) -> Off:
        draw, noise = Draw(self.inner.noise, self.source), self.rungs.one()
        exact, rung = self.inner.statistic.value(value), self.inner.rung(value)
        return Off(self.inner.noisy(draw, exact, rung), self.error(rung + noise + self.margin))

    def error(self, rung: int) -> float:
        """How far an answer from this rung or a lower one is off, half a step for its rounding included."""
        ladder = self.inner.ladder
        power = float(ladder.power(max(0, min(rung, ladder.top))))
        width = round_up(Fraction(ladder.unit)) * math.exp(power) / self.inner.shift
        return (width * self.quantile + float(self.inner.lattice.step) / 2) * (1 + 1e-9)
