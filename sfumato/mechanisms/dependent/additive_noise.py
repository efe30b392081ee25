"""A statistic plus additive noise: at the global sensitivity, and for values that are not on the noise's lattice."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.base import Additive, Released, Scaled, check_additive, plain_numbers
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.mechanisms.examples import ROWS_OF_NUMBERS, Example, Inputs, Neighbours
from sfumato.noise.sampler import LARGEST
from sfumato.rounding import round_up
from sfumato.sensitivity import Sensitivity

FINE = 20  # bits: values off the lattice are rounded to 2⁻²⁰ steps before noise is drawn about them
MOST_FINE = 1 << 52


def scale_noise(unit: Gaussian | Laplace, size: Fraction) -> Gaussian | Laplace:
    """The noise times `size`, rounded up."""
    if isinstance(unit, Gaussian):
        return replace(unit, sigma=round_up(Fraction(unit.sigma) * size))
    return replace(unit, scale=round_up(Fraction(unit.scale) * size))


def check_unit_noise(noise: object) -> Gaussian | Laplace:
    """Noise for a sensitivity of 1 that `scale_noise` can enlarge."""
    if not isinstance(noise, Gaussian | Laplace):
        raise InvalidParameter(
            "the second noise must be Gaussian or Laplace.\n"
            f"  found:  a {type(noise).__name__}\n  do:     give such as sf.Laplace(2.0), for a sensitivity of 1"
        )
    return noise


@dataclass(frozen=True)
class RoundedNoise:
    """round(f(x) + N) for values of a statistic, and its loss where neighbours' values are at most `bound` apart.

    If all values are multiples of the step, N is integer noise. Otherwise a value is rounded to 2⁻²⁰ steps, which adds
    at most 2⁻²⁰ steps to the distance of two values, and the answer is drawn about the rounded value.
    """

    noise: Additive
    grain: Fraction | None

    @staticmethod
    def of(noise: object, statistic: Statistic[object]) -> "RoundedNoise":
        made = RoundedNoise(check_additive(noise), statistic.grain)
        if not made.aligned and made.noise.density() is None:
            raise InvalidParameter(
                f"{type(noise).__name__} needs values that are multiples of its step.\n  found:  {statistic}\n"
                "  do:     give sf.Gaussian or sf.Laplace, or a step that divides that of the statistic"
            )
        noisy = getattr(made.noise, made.noise.named) if isinstance(made.noise, Scaled) else made.step
        if not made.aligned and made.step > max(noisy, statistic.everywhere):
            raise InvalidParameter(
                "this step is coarser than the statistic and its noise, so nearly all answers would be 0 or one step.\n"
                f"  found:  a step of {float(made.step):g}; one person moves the answer by "
                f"{float(statistic.everywhere):.3g} at most\n"
                f"  do:     give the noise a step such as 2**{math.floor(math.log2(float(noisy))) - 10}"
            )
        return made

    @property
    def step(self) -> Fraction:
        return self.noise.lattice.step

    @property
    def aligned(self) -> bool:
        """Whether all values of the statistic are multiples of the step."""
        return self.grain is not None and (self.grain / self.step).denominator == 1

    def loss(self, bound: Exact, sensitivity: Sensitivity) -> PrivacyLoss:
        """The loss where neighbours' values are at most `bound` apart; the relation is that of `sensitivity`."""
        size = round_up(Fraction(bound) + (0 if self.aligned else self.step / 2**FINE))
        return self.noise.loss(Sensitivity(l0=1, linf=size, l1=size, l2=size, relation=sensitivity.relation))

    def draw(self, value: Exact) -> Released:
        """One noisy answer, clipped to the range that can be represented."""
        if self.aligned:
            steps = max(-LARGEST, min(LARGEST, int(value / self.step)))
            return plain_numbers(self.noise.noisy(np.array(steps, np.int64)))
        fine = self.step / 2**FINE
        near = max(-MOST_FINE, min(MOST_FINE, math.floor(value / fine + Fraction(1, 2)))) * fine
        return plain_numbers(self.noise.lattice.unrounded(np.array(float(near))).with_noise(self.noise.rounding))


@dataclass(frozen=True)
class Everywhere(Mechanism[Any, Released]):
    """f(x) + noise for the global sensitivity of f.

    Theorem: noise calibrated to the global sensitivity is private for all data [Dwork, McSherry, Nissim & Smith 2006,
        Prop. 1]
    """

    statistic: Statistic[Any]
    noise: Additive
    use = "for a statistic with noise for its global sensitivity: what the others must beat"

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must be a Statistic.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give one of sfumato.mechanisms.dependent, such as TrimmedMean(0, 100)"
            )
        assert self.rounded_noise  # raises InvalidParameter for noise that does not fit

    @cached_property
    def rounded_noise(self) -> RoundedNoise:
        return RoundedNoise.of(self.noise, self.statistic)

    def release(self, value: Any) -> Released:
        self.ready(1)
        return self.rounded_noise.draw(self.statistic.value(value))

    def ready(self, count: int) -> None:
        self.noise.ready(count)

    def loss(self) -> PrivacyLoss:
        return self.rounded_noise.loss(self.statistic.everywhere, self.statistic.sensitivity)

    def error(self, confidence: float = 0.95) -> float:
        """The error that is not exceeded with this probability."""
        return self.noise.error(confidence) + (0 if self.rounded_noise.aligned else 2 * float(self.rounded_noise.step))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.additive.laplace import Laplace
        from sfumato.mechanisms.dependent.trimmed_mean import TrimmedMean

        pairs = (Neighbours([0, 8], [0, 8, 8]), Neighbours([0, 0], [0, 0, 8]))
        inputs = Inputs("numbers, one per person", ROWS_OF_NUMBERS, ())
        return (Example(cls(TrimmedMean(0, 8), Laplace(4.0)), pairs, inputs, step=Fraction(1)),)
