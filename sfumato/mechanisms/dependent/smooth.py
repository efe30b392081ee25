"""Smooth sensitivity: a statistic plus noise whose scale is a rung of a public ladder."""

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
from sfumato.mechanisms.dependent.cells import noise_radius
from sfumato.mechanisms.dependent.ladder import Ladder
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.mechanisms.dependent.ordered_values import OfValues
from sfumato.mechanisms.dependent.smooth_loss import SmoothLoss
from sfumato.mechanisms.dependent.statistic import Exact, Statistic, answer_step
from sfumato.mechanisms.examples import Example, Inputs, Neighbours
from sfumato.noise import Certified, Lattice, Sampler, rounded_gaussian
from sfumato.noise.balls import Ball, ball, precision
from sfumato.noise.lazy import Draw
from sfumato.noise.monotone import radius as integer_radius
from sfumato.rounding import quotient_up, round_up

FINE = 40  # answers are rounded to 2^−FINE of the range


@dataclass(frozen=True)
class Smooth(Mechanism[Any, float]):
    """round(f + (scale/s)·Z) on the multiples of `step`; the scale is the data's rung on a public ladder.

    `shift` is s: the noise shifts by s units when the answer moves by its scale. `dilation` and `steps` define the
    ladder; its least scale is `least`, by default the step. The default step follows from the statistic: its grain, or
    2⁻⁴⁰ of its range (in that case the least scale of values on a lattice is the lattice step). Rounding is
    post-processing, so the loss is that of the ideal noise. The error depends on a private scale, so there is no
    `error`: see `with_error`.

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
    use = "for noise at the scale of the smooth sensitivity: small where the data are stable"

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must be a Statistic.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give one of sf.dependent, such as TrimmedMean(0, 100, trim=5), or Given(…)"
            )
        if self.step is None:
            object.__setattr__(self, "step", answer_step(self.statistic, FINE))
            if self.least is None and isinstance(self.statistic, OfValues):
                object.__setattr__(self, "least", self.statistic.lattice.step)
        loss = SmoothLoss(self.noise, self.shift, self.dilation, self.steps)
        for name in ("shift", "dilation", "steps"):
            object.__setattr__(self, name, getattr(loss, name))
        assert self.lattice and self.ladder  # raise InvalidParameter for a bad step or scale

    @cached_property
    def lattice(self) -> Lattice:
        assert self.step is not None
        return lattice_of_step(self.step)

    @cached_property
    def ladder(self) -> Ladder:
        """The public ladder: it does not depend on data."""
        least = self.lattice.step if self.least is None else self.least
        return Ladder(self.dilation, self.statistic.everywhere, least, self.steps)

    def loss(self) -> SmoothLoss:
        return SmoothLoss(self.noise, self.shift, self.dilation, self.steps, relation=self.statistic.relation)

    def rung(self, data: Any) -> int:
        """The rung of the data. Private."""
        window = self.ladder.window
        return self.ladder.rung(self.statistic.curve(data, window - 1) if window else ())

    def width(self, rung: int) -> Certified:
        """scale/s, in steps."""
        scale, unit = self.ladder.scale(rung), self.lattice.step * Fraction(self.shift)

        def enclosure(prec: int) -> Ball:
            with precision(prec):
                return scale.ball(prec) / ball(unit)

        return Certified(enclosure)

    def release(self, value: Any) -> float:
        """One answer. Random bits are drawn before the data are read, and their number does not depend on the data."""
        draw = Draw(self.noise, self.source)
        return self.noisy(draw, self.statistic.value(value), self.rung(value))

    def noisy(self, draw: Draw, exact: Exact, rung: int) -> float:
        """The answer for one draw, a private value and a private rung."""
        multiple = draw.round_to_integer(Fraction(exact) / self.lattice.step, self.width(rung))
        return float(multiple * self.lattice.step)

    def with_error(self, sigma: float, confidence: float = 0.95) -> "SmoothWithError":
        """This mechanism with an error bound, from a noisy rung that is charged in addition."""
        return SmoothWithError(self, sigma, confidence, source=self.source)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.dependent.order_statistics import Quantile
        from sfumato.mechanisms.dependent.student_cauchy import StudentNoise

        made = cls(Quantile(0, 8, p=Fraction(1, 2)), StudentNoise(4), 1.5, 0.3)
        inputs = Inputs("numbers, one per person", ([], [0] * 9, [8, 0, 4], [math.nan, math.inf]), ())
        return (Example(made, (Neighbours([], [8]),), inputs, step=Fraction(1)),)


class Off(NamedTuple):
    """An answer, and an error bound at the requested confidence."""

    value: float
    error: float


@dataclass(frozen=True)
class SmoothWithError(Mechanism[Any, Off]):
    """A smooth answer and a bound on its error, from a noisy upper bound of the rung.

    The rung has global sensitivity r = `steps`, so rung + N(0, σ²), rounded, is (r/σ)-GDP. The failure probability is
    split equally: the noisy bound may lie below the rung, and the noise may exceed its quantile at that scale.

    Theorem: ln S has global sensitivity t, so an upper bound of it can be released with noise
        [docs/theorems/dilation.md, Theorem 3]
    """

    inner: Smooth
    sigma: float
    confidence: float = 0.95
    use = "for such an answer and a bound on its error"

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
        """Half of the failure probability 1 − confidence."""
        return (1 - self.confidence) / 2 * (1 - 1e-9)

    @cached_property
    def margin(self) -> int:
        """Rungs to add, so that the noisy rung is below the true one with probability at most `wrong`."""
        return integer_radius(rounded_gaussian(self.sigma), 1 - self.wrong)

    @cached_property
    def quantile(self) -> float:
        """|Z| exceeds this with probability at most `wrong`."""
        return noise_radius(self.inner.noise, self.wrong)

    @cached_property
    def rungs(self) -> Sampler:
        return Sampler(rounded_gaussian(self.sigma), source=self.source)

    def loss(self) -> PrivacyLoss:
        """The loss of the answer plus that of the noisy rung."""
        mu = quotient_up(float(self.inner.steps), self.sigma)
        return self.inner.loss() + GaussianLoss(mu, relation=self.inner.statistic.relation)

    def release(self, value: Any) -> Off:
        draw, noise = Draw(self.inner.noise, self.source), self.rungs.one()
        exact, rung = self.inner.statistic.value(value), self.inner.rung(value)
        return Off(self.inner.noisy(draw, exact, rung), self.error(rung + noise + self.margin))

    def error(self, rung: int) -> float:
        """The error bound of an answer from this rung or a lower one, including half a step for rounding."""
        ladder = self.inner.ladder
        power = float(ladder.power(max(0, min(rung, ladder.top))))
        width = round_up(Fraction(ladder.unit)) * math.exp(power) / self.inner.shift
        return (width * self.quantile + float(self.inner.lattice.step) / 2) * (1 + 1e-9)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.dependent.order_statistics import Quantile
        from sfumato.mechanisms.dependent.student_cauchy import StudentNoise

        inner = Smooth(Quantile(0, 8, p=Fraction(1, 2)), StudentNoise(4), 1.5, 0.3)
        inputs = Inputs("numbers, one per person", ([], [0] * 9), ())
        return (Example(cls(inner, 4.0), (Neighbours([0, 0, 8, 8, 8], [0, 0, 8, 8]),), inputs),)
