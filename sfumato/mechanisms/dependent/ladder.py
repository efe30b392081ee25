"""A ladder of public noise scales: smooth sensitivity rounded up to one of them, decided by integers."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.dependent.statistic import Exact
from sfumato.noise.balls import Ball, Certified, ball, precision, rational

PREC = 192  # initial precision, where a number is so close to a scale that doubles cannot decide
NEAR = 1e-11
MOST_RUNGS = 1 << 20


@dataclass(frozen=True)
class Ladder:
    """Scales unit·e^{tj/r} for rungs j = 0, 1, …, up to the first that is at least `most`.

    `dilation` is t and `steps` is r; `most` is the global sensitivity and `unit` the least scale, both public. The rung
    of data with sensitivities A_0 ≤ A_1 ≤ … is max_k (J(A_k) − rk), where J(a) is the least rung whose scale is at
    least a. The rung is private: it is an argument of noise and is never released.

    Theorem: rungs of neighbours differ by at most r, and their answers by the scale of the lower rung
        [docs/theorems/dilation.md, Theorem 3]
    """

    dilation: float
    most: Exact | float
    unit: Exact | float = 1
    steps: int = 4

    def __post_init__(self) -> None:
        t = checks.number("dilation", self.dilation, 1e-4, 3.0, allowed="a number from 0.0001 to 3")
        object.__setattr__(self, "dilation", t)
        object.__setattr__(self, "steps", checks.whole("steps", self.steps, 1, 64))
        for name in ("most", "unit"):
            size = rational(name, getattr(self, name), Fraction(1, 10**100), Fraction(10) ** 100)
            object.__setattr__(self, name, size)
        if self.top > MOST_RUNGS:
            raise InvalidParameter(
                f"this ladder has too many rungs.\n  found:  {self.top} rungs\n"
                "  do:     give a larger dilation, fewer steps, or a larger unit"
            )

    def power(self, rung: int) -> Fraction:
        """tj/r."""
        return Fraction(self.dilation) * rung / self.steps

    def scale(self, rung: int) -> Certified:
        """unit·e^{tj/r}, as a certified real number."""

        def enclosure(prec: int) -> Ball:
            with precision(prec):
                return ball(Fraction(self.unit)) * ball(self.power(rung)).exp()

        return Certified(enclosure)

    @cached_property
    def top(self) -> int:
        """The last rung."""
        low, high = 0, 1
        while not self.reaches(high, Fraction(self.most)):
            low, high = high, 2 * high
        if self.reaches(0, Fraction(self.most)):
            return 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.reaches(middle, Fraction(self.most)) else (middle, high)
        return high

    @cached_property
    def near(self) -> Floats:
        """Each scale in doubles: exponents are below 500, so the relative error is below 10⁻¹²."""
        return floats(np.exp(np.arange(self.top + 1) * (self.dilation / self.steps)) * float(self.unit))

    @cached_property
    def floors(self) -> list[float]:
        """A number just below each scale; rungs are at least 10⁻⁶ apart, so these are increasing."""
        return list((self.near * (1 - NEAR)).tolist())

    @cached_property
    def ceilings(self) -> list[float]:
        """A number just above each scale."""
        return list((self.near * (1 + NEAR)).tolist())

    @property
    def window(self) -> int:
        """How many sensitivities A_0, A_1, … are read: beyond, even the largest gives rung 0 or below."""
        return -(-self.top // self.steps)

    def reaches(self, rung: int, size: Fraction) -> bool:
        """Whether the scale of this rung is at least `size`; e^x is irrational for rational x ≠ 0, so balls decide."""
        prec = PREC
        while self.power(rung):
            with precision(prec):
                scale = self.scale(rung).ball(prec)
                if scale > ball(size):
                    return True
                if scale < ball(size):
                    return False
            prec *= 2
        return Fraction(self.unit) >= size

    def least(self, size: Exact | float) -> int:
        """J(size): the least rung whose scale is at least this, or the top one; NaN counts as infinite."""
        if size != size:
            return self.top
        rung = bisect_left(self.floors, size)  # the floors of all rungs below this one are less than the size
        while rung and size <= self.ceilings[rung - 1] and self.reaches(rung - 1, Fraction(size)):
            rung -= 1
        return min(rung, self.top)

    def rung(self, sensitivities: Sequence[Exact | float]) -> int:
        """The rung of data with sensitivities A_0, A_1, …; missing ones count as `most`."""
        rungs = [self.least(size) - self.steps * k for k, size in enumerate(sensitivities)]
        return max(0, self.top - self.steps * len(rungs), *rungs)
