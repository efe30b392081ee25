"""Staircase noise: pure ε-DP with the least expected error, for one number."""

from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import PureLoss, StaircaseLoss
from sfumato.mechanisms.additive.base import MOST_WHOLE, Additive, scale_in_steps
from sfumato.mechanisms.examples import BOTH, NUMBERS, REAL_PAIRS, ZERO_ONE, Example, number_example
from sfumato.noise import Rounded, StaircaseDensity, rounded_staircase
from sfumato.sensitivity import Sensitivity


@dataclass(frozen=True)
class Staircase(Additive):
    """round(v + N), N with density ∝ e^{−jε} from (j − 1 + γ)Δ to (j + γ)Δ on both sides: stairs of width Δ.

    `sensitivity` is the Δ that the stairs are made for; γ is by default next to 1/(1 + e^{ε/2}), of least expected |N|.

    Theorem: staircase noise is ε-DP for sensitivity Δ, and optimal for some γ [Geng & Viswanath 2016, Thm 1]
    Theorem: smaller moves cost no more than Δ; but any move, however small, costs up to ε, so in vectors coordinates
        count, not their sum [docs/theorems/additive.md, Theorem 2]
    """

    eps: float
    sensitivity: float = 1
    gamma: float | None = None
    step: float | Fraction = 1
    use = "for one number and large ε: least expected error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", checks.positive("eps", self.eps))
        object.__setattr__(self, "sensitivity", checks.positive("sensitivity", self.sensitivity))
        if self.gamma is not None:
            object.__setattr__(self, "gamma", checks.probability("gamma", self.gamma))
        scale_in_steps("sensitivity", self.sensitivity, self.lattice)
        object.__setattr__(self, "gamma", float(Fraction(self.density().gamma)))

    def law(self) -> Rounded:
        return rounded_staircase(self.eps, self.lattice.units(self.sensitivity), self.gamma)

    def density(self) -> StaircaseDensity:
        found = self.law().density
        assert isinstance(found, StaircaseDensity)
        return found

    def loss(self, sensitivity: Sensitivity | SupportsFloat | None = None) -> PrivacyLoss:
        """At its own sensitivity, or at another; in vectors, as many times as coordinates change."""
        found = Sensitivity.of(self.sensitivity if sensitivity is None else sensitivity)
        if not found.linf:
            return PureLoss(0.0, relation=found.relation)
        count, times = found.norm("l0", "staircase noise"), -(-Fraction(found.linf) // Fraction(self.sensitivity))
        one = StaircaseLoss(self.eps, self.gamma or 0.0, relation=found.relation)
        count = checks.whole("the l0 sensitivity", int(min(count, 2 * MOST_WHOLE)), 1)
        return count * one.group(checks.whole("sensitivity in stairs", times, 1))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            number_example(cls(1.0), ZERO_ONE, BOTH, *REAL_PAIRS, inputs=NUMBERS),
            number_example(cls(1.0, 1.0, 0.3, 2**-8), *REAL_PAIRS, inputs=NUMBERS),
        )
