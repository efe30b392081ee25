"""Laplace noise that is never larger than a bound: (ε, δ)-DP, on integers."""

from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

from sfumato import checks, noise
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.additive.base import (
    Additive,
    lattice_of_step,
    loss_by_coordinates,
    positive_sensitivity,
    scale_in_steps,
    whole_steps,
)
from sfumato.mechanisms.additive.discrete_laplace import shifted_laplace
from sfumato.mechanisms.examples import BOTH, ZERO_ONE, Example, number_example
from sfumato.noise.balls import above, precision
from sfumato.rounding import quotient_up, round_up
from sfumato.sensitivity import Relation, Sensitivity

PREC = 128


@dataclass(frozen=True)
class TruncatedLaplace(Additive):
    """v + K with P(K = k) ∝ e^{−|k|/scale} over the multiples |k| ≤ bound of `step`, for whole multiples v of the step.

    An answer near the end of its range can come from one data set only, so there is a δ; error bars never fail.

    Theorem: δ(ε) is the mass that a move brings out of reach, at ε = Δ₁/scale [Geng, Ding, Guo & Kumar 2020]
    Theorem: it leaks that mass and costs no more than untruncated noise otherwise, exactly so for moves by one step
        [docs/theorems/additive.md, Theorem 3]
    """

    scale: float
    bound: float
    step: float | Fraction = 1
    use = "if no error may exceed a bound"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale))
        scale_in_steps("scale", self.scale, self.lattice)
        object.__setattr__(self, "bound", checks.positive("bound", self.bound))
        if not 1 <= self.steps <= 4 * 10**18:
            raise InvalidParameter(
                f"bound must be from 1 to 4e18 steps.\n  found:  bound = {self.bound:g} with a step of"
                f" {float(self.lattice.step):g}\n  do:     choose the step nearer to the bound"
            )

    @property
    def steps(self) -> int:
        """The bound in whole steps."""
        return int(Fraction(self.bound) // self.lattice.step)

    def law(self) -> noise.TruncatedLaplace:
        return noise.TruncatedLaplace(self.lattice.units(self.scale), self.steps)

    def density(self) -> None:
        return None

    @staticmethod
    def of(
        epsilon: float, delta: float, sensitivity: Sensitivity | SupportsFloat = 1, step: float | Fraction = 1
    ) -> "TruncatedLaplace":
        """The least bound that is (ε, δ)-DP with scale = Δ₁/ε."""
        lattice = lattice_of_step(step)
        size = whole_steps(positive_sensitivity(sensitivity).norm("l1", "truncated Laplace noise"), lattice)
        goal = checks.number("delta", delta, 1e-300, 1.0, allowed="a number from 1e-300 to 1")
        scale = quotient_up(round_up(size * lattice.step), checks.positive("epsilon", epsilon))
        units = lattice.units(scale)
        low, high = 0, 1
        while _leak(noise.TruncatedLaplace(units, high), size) > goal:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            enough = _leak(noise.TruncatedLaplace(units, middle), size) <= goal
            low, high = (low, middle) if enough else (middle, high)
        return TruncatedLaplace(scale, round_up(high * lattice.step), step)

    def loss(self, sensitivity: Sensitivity | SupportsFloat = 1) -> PrivacyLoss:
        """That of one coordinate moved by Δ₁; where l0 coordinates move by linf each, the sum of these."""
        return loss_by_coordinates(sensitivity, self.lattice, "truncated Laplace noise", self._loss_of_move)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (number_example(cls(2.0, 6), ZERO_ONE, BOTH),)

    def _loss_of_move(self, distance: int, relation: Relation) -> PrivacyLoss:
        law = self.law()
        return LeakyLoss(
            shifted_laplace(Fraction(law.scale), distance, relation), _leak(law, distance), relation=relation
        )


def _leak(law: noise.TruncatedLaplace, distance: int) -> float:
    """P(bound − distance < K), never below."""
    if distance > 2 * law.bound:
        return 1.0
    first = law.bound - distance + 1
    with precision(PREC):
        total = 1 + 2 * law.mass(1, law.bound, PREC)
        over = law.mass(max(first, 1), law.bound, PREC)
        under = law.mass(0, -first, PREC) if first <= 0 else 0
        return min(1.0, round_up(above((over + under) / total))) if distance else 0.0
