"""Laplace noise, drawn again until the answer lies in a public range: pure ε-DP, on integers."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import SupportsFloat

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from sfumato import checks, noise
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.coins import PureLoss
from sfumato.mechanisms.additive.base import (
    Released,
    bounds_in_steps,
    lattice_of_step,
    plain_numbers,
    positive_sensitivity,
    scale_in_steps,
    whole_steps,
)
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import BOTH, ZERO_ONE, Example, Neighbours, number_example
from sfumato.mechanisms.private_inputs import read_numbers, shift_left
from sfumato.noise import Answer, Lattice, Sampler, radius
from sfumato.noise.balls import Ball, ball, precision
from sfumato.noise.draw_table import Integers
from sfumato.noise.monotone import LEAST
from sfumato.rounding import quotient_up, round_up
from sfumato.sensitivity import Sensitivity

PREC = 128
MOST_TRIES = 1 << 16


@dataclass(frozen=True)
class BoundedLaplace(Mechanism[ArrayLike, Released]):
    """P(answer = k) ∝ e^{−|k − v|/scale} over the multiples k of `step` in [low, high], for a multiple v put into it.

    The factor that makes these add up to 1 depends on v and reveals something about it, which costs up to Δ/scale more.
    `DiscreteLaplace(scale).clamped(low, high)` costs nothing more; prefer it unless a pile-up at the ends is bad.

    Theorem: bounded Laplace noise is ε-DP with ε = Δ/scale + log C(low + Δ)/C(low), C(v) = Σe^{−|k−v|/scale}
        [Holohan, Antonatos, Braghin & Mac Aonghusa 2020; on integers docs/theorems/additive.md, Theorem 4]
    """

    scale: float
    low: float
    high: float
    step: float | Fraction = 1
    use = "if answers must lie in a range without piling up at its ends"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale))
        scale_in_steps("scale", self.scale, self.lattice)
        bounds_in_steps(self.lattice, self.low, self.high)  # refuses what is no range
        if self.tries > MOST_TRIES:
            raise InvalidParameter(
                "the range is so narrow that answers carry almost no information.\n"
                f"  found:  a scale of {self.scale:g} and a range of {self.high - self.low:g}\n"
                "  do:     choose a scale of at most 500 ranges"
            )

    @cached_property
    def lattice(self) -> Lattice:
        return lattice_of_step(self.step)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The range in steps."""
        return bounds_in_steps(self.lattice, self.low, self.high)

    @property
    def units(self) -> Fraction:
        """The scale in steps."""
        return self.lattice.units(self.scale)

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(noise.DiscreteLaplace(self.units), source=self.source)

    @cached_property
    def tries(self) -> int:
        """The number of draws for an answer: at an end, where fewest fit, all miss with probability e⁻⁴⁰."""
        (first, last), rate = self.ends, 1 / float(self.units)
        fit = -math.expm1(-(last - first + 1) * rate) / (1 + math.exp(-rate))
        return math.ceil(min(40 / fit, 2.0 * MOST_TRIES))

    def release(self, value: ArrayLike) -> Released:
        """int (or int64) if the step is 1, else float (or float64); arrays keep their shape."""
        return plain_numbers(self.answer(value))

    def needs_sensitivity(self) -> bool:
        return True

    def answer(self, value: ArrayLike) -> Answer:
        """The answer as exact multiples of the step."""
        found = read_numbers(value)
        if (found.dtype.kind == "f" and found.size) or self.lattice.exponent > 0:
            raise InvalidParameter(
                "BoundedLaplace is for whole numbers.\n  found:  real numbers, or a step above 1\n"
                "  do:     count in whole steps of at most 1 and give integers"
            )
        first, last = self.ends
        centres = np.clip(shift_left(found.astype(np.int64, copy=False), -self.lattice.exponent), first, last)
        flat = [self._one(v) for v in centres.reshape(-1).tolist()]
        return Answer(self.lattice, np.array(flat, np.int64).reshape(centres.shape))

    def _one(self, centre: int) -> int:
        """The first of `tries` draws that fits. All are drawn and read, so that the time does not reveal the centre."""
        first, last = self.ends
        while True:
            noise_ = self.sampler.draw(self.tries)  # saturated draws do not fit: no end is 2⁶² steps away
            fits = self._fits(noise_, first - centre, last - centre)
            if fits.any():
                return centre + int(noise_[int(np.argmax(fits))])

    @staticmethod
    def _fits(draws: Integers, low: int, high: int) -> NDArray[np.bool_]:
        fits: NDArray[np.bool_] = (draws >= low) & (draws <= high)
        return fits

    @staticmethod
    def of(
        epsilon: float,
        low: float,
        high: float,
        sensitivity: Sensitivity | SupportsFloat = 1,
        step: float | Fraction = 1,
    ) -> "BoundedLaplace":
        """The least scale, to six digits, that is ε-DP: at most 2Δ₁/ε."""
        found, goal, lattice = (
            positive_sensitivity(sensitivity),
            checks.positive("epsilon", epsilon),
            lattice_of_step(step),
        )
        first, last = bounds_in_steps(lattice, low, high)
        size = whole_steps(found.norm("l1", "bounded Laplace noise"), lattice)
        if found.l0 < math.inf:
            size = min(size, math.ceil(found.l0) * (last - first))
        good = 2 * quotient_up(round_up(size * lattice.step), goal)
        poor = min(good, float(LEAST * lattice.step))
        while good - poor > 1e-6 * good:
            middle = (good + poor) / 2
            enough = BoundedLaplace(middle, low, high, step).loss(found).eps <= goal
            good, poor = (middle, poor) if enough else (good, middle)
        return BoundedLaplace(good, low, high, step)

    def loss(self, sensitivity: Sensitivity | SupportsFloat = 1) -> PureLoss:
        """The largest loss there is, as pure ε; for vectors the less of l0 times that of linf, and 2Δ₁/scale."""
        found = Sensitivity.of(sensitivity)
        first, last = self.ends
        sum_ = whole_steps(found.norm("l1", "bounded Laplace noise"), self.lattice)
        each = min(whole_steps(found.linf, self.lattice), last - first)
        with precision(PREC):
            rate, reach = 1 / self.units, last - first

            def power(n: int) -> arb:
                return ball(-n * rate).exp()

            here = 1 + power(1) - power(each + 1) - power(reach - each + 1)
            one = ball(each * rate) + (here / (1 - power(reach + 1))).log()
            most = ball(2 * sum_ * rate)
            total = one * math.ceil(found.l0) if found.l0 < math.inf else most
            upper = min(math.nextafter(float(x.upper()), math.inf) for x in (total, most))
        return PureLoss(max(upper, 0.0) if each else 0.0, relation=found.relation)

    def error(self, confidence: float = 0.95, coordinates: int = 1) -> float:
        """With this probability all coordinates are off by at most this, for any values in the range: the least."""
        first, last = self.ends
        return round_up(radius(WorstCentre(self.units, last - first), confidence, coordinates) * self.lattice.step)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        example = number_example(cls(1.0, 0, 4), ZERO_ONE, Neighbours.numbers(4, 3), BOTH)
        return (replace(example, rows=False),)  # one value at a time: slow


@dataclass(frozen=True)
class WorstCentre:
    """How often an answer is more than m off, for the worst value of a range of `width` + 1 numbers.

    Proof. For a value with a numbers below it in the range and b above, a + b = width, let u = r^{a+1}, v = r^{b+1},
    r = e^{−1/scale}: answers lie more than m off with probability ((r^{m+1} − u)₊ + (r^{m+1} − v)₊)/(1 + r − u − v).
    If a, b ≥ m, it falls with u + v, as 2r^{m+1} ≤ 1 + r; and u + v is least in the middle, uv being constant. If only
    b > m, it grows as a falls: r^{m+1} − v grows, and u + v as well while a ≤ b. So the worst value is in the middle or
    at an end.

    Theorem: bounded Laplace noise errs most in the middle or at an end of its range [the proof above]
    """

    scale: Fraction
    width: int

    def beyond(self, m: int, prec: int) -> Ball:
        """P(|answer − value| > m) for the worst value."""
        with precision(prec + 16):
            return self._at(self.width // 2, m).max(self._at(0, m))

    def _at(self, a: int, m: int) -> Ball:
        b, above = self.width - a, self._sum
        return (above(m + 1, a) + above(m + 1, b)) / (1 + above(1, a) + above(1, b))

    def _sum(self, first: int, last: int) -> Ball:
        """r^first + … + r^last."""
        if first > last:
            return arb(0)
        fall = ball((first - last - 1) / self.scale).expm1() / ball(-1 / self.scale).expm1()
        return ball(-first / self.scale).exp() * fall
