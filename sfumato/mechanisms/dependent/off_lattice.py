"""Noise about an exact number that need not lie on the noise's lattice."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.base import Additive, Released, Scaled, plain_numbers
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.dependent.private_test import additive
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.noise.sampler import LARGEST
from sfumato.rounding import round_up
from sfumato.sensitivity import Sensitivity

FINE = 20  # bits: numbers off the lattice are rounded to a millionth of a step before noise is drawn about them
MOST_FINE = 1 << 52


def scaled(unit: Gaussian | Laplace, size: Fraction) -> Gaussian | Laplace:
    """Noise `size` times as large, or a little more."""
    if isinstance(unit, Gaussian):
        return replace(unit, sigma=round_up(Fraction(unit.sigma) * size))
    return replace(unit, scale=round_up(Fraction(unit.scale) * size))


def unit_noise(noise: object) -> Gaussian | Laplace:
    """Noise for a sensitivity of 1 that can be made larger."""
    if not isinstance(noise, Gaussian | Laplace):
        raise InvalidParameter(
            "the second noise is Gaussian or Laplace.\n"
            f"  found:  a {type(noise).__name__}\n  do:     give such as sf.Laplace(2.0), for a sensitivity of 1"
        )
    return noise


@dataclass(frozen=True)
class About:
    """round(f(x) + N) for values of a statistic, and what that costs where they are at most `bound` apart.

    Where all values are multiples of the step, N is whole noise. Otherwise they are rounded to 2⁻²⁰ steps, which moves
    two of them apart by at most one such part more, and the answer is drawn about that number.
    """

    noise: Additive
    grain: Fraction | None

    @staticmethod
    def of(noise: object, statistic: Statistic[object]) -> "About":
        made = About(additive("noise", noise), statistic.grain)
        if not made.whole and made.noise.density() is None:
            raise InvalidParameter(
                f"{type(noise).__name__} is for multiples of its step only.\n  found:  {statistic}\n"
                "  do:     give sf.Gaussian or sf.Laplace, or a step that divides that of the statistic"
            )
        noisy = getattr(made.noise, made.noise.named) if isinstance(made.noise, Scaled) else made.step
        if not made.whole and made.step > max(noisy, statistic.everywhere):
            raise InvalidParameter(
                "this step is coarser than the statistic and its noise: nearly all answers would be 0 or one step.\n"
                f"  found:  a step of {float(made.step):g}; one person moves the answer by "
                f"{float(statistic.everywhere):.3g} at most\n"
                f"  do:     give the noise a step such as 2**{math.floor(math.log2(float(noisy))) - 10}"
            )
        return made

    @property
    def step(self) -> Fraction:
        return self.noise.lattice.step

    @property
    def whole(self) -> bool:
        return self.grain is not None and (self.grain / self.step).denominator == 1

    def price(self, bound: Exact, sensitivity: Sensitivity) -> PrivacyLoss:
        """Where neighbours' values are at most `bound` apart; `sensitivity` says who neighbours are."""
        size = round_up(Fraction(bound) + (0 if self.whole else self.step / 2**FINE))
        return self.noise.loss(Sensitivity(l0=1, linf=size, l1=size, l2=size, relation=sensitivity.relation))

    def drawn(self, value: Exact) -> Released:
        if self.whole:
            steps = max(-LARGEST, min(LARGEST, int(value / self.step)))
            return plain_numbers(self.noise.noisy(np.array(steps, np.int64)))
        fine = self.step / 2**FINE
        near = max(-MOST_FINE, min(MOST_FINE, math.floor(value / fine + Fraction(1, 2)))) * fine
        return plain_numbers(self.noise.lattice.unrounded(np.array(float(near))).with_noise(self.noise.rounding))
