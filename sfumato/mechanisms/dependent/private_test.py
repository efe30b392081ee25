"""A private test: distance plus noise against a threshold, as in propose-test-release."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.gated import GatedLoss
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.choice.base import below_one
from sfumato.mechanisms.keys.threshold_selection import LEAST_DELTA, PREC, least_integer
from sfumato.mechanisms.private_inputs import read_numbers
from sfumato.noise.balls import Ball, above, ball, precision
from sfumato.rounding import round_up
from sfumato.sensitivity import Relation

IntegerNoise = Gaussian | Laplace | DiscreteLaplace
MOST_THRESHOLD = 1 << 20


@dataclass(frozen=True)
class Gate:
    """Passes if distance + noise ≥ threshold, the least one at which distance 0 passes with probability at most δ.

    A distance is an integer of sensitivity 1 that is 0 for data that must not pass; distances above `cap`, twice the
    threshold, count as `cap`. Use Gaussian noise on a Gaussian ledger.

    Theorem: P(N ≥ τ) = e^{−ετ}/(1 + e^{−ε}) for discrete Laplace noise of scale 1/ε, and Φ̄((τ − ½)/σ) for rounded
        Gaussian noise [docs/theorems/recipes.md, Theorem 2; cf. Dwork & Lei 2009]
    """

    noise: IntegerNoise
    delta: float

    def __post_init__(self) -> None:
        if not isinstance(self.noise, IntegerNoise) or self.noise.lattice.step != 1:
            raise InvalidParameter(
                "a test takes integer noise: Gaussian, Laplace or DiscreteLaplace with a step of 1.\n"
                f"  found:  {type(self.noise).__name__}\n  do:     give such as sf.DiscreteLaplace(2.0)"
            )
        allowed = f"a number from {LEAST_DELTA:g} to 0.5: with delta = 0 no threshold is high enough"
        object.__setattr__(self, "delta", checks.number("delta", self.delta, LEAST_DELTA, 0.5, allowed=allowed))
        if self.threshold > MOST_THRESHOLD:
            raise InvalidParameter(
                "with so much noise the threshold of the test exceeds a million people.\n"
                f"  found:  {self.noise}, delta = {self.delta:g}\n  do:     give less noise, or a larger delta"
            )

    def tail(self, t: int) -> Ball:
        """P(N ≥ t), at the working precision."""
        law = self.noise.law()
        return law.beyond(t - 1, PREC) / 2 if t >= 1 else 1 - law.beyond(-t, PREC) / 2

    @cached_property
    def threshold(self) -> int:
        return 1 + least_integer(lambda t: bool(self.tail(t + 1) <= ball(Fraction(self.delta))))

    @property
    def cap(self) -> int:
        """The largest distance; larger ones count as this."""
        return 2 * self.threshold

    @cached_property
    def failure(self) -> float:
        """The probability that distance 0 passes; rounded up, at most δ."""
        with precision(PREC):
            return min(round_up(above(self.tail(self.threshold))), self.delta)

    def _passes(self, distance: int) -> float:
        with precision(PREC):
            return float(self.tail(self.threshold - distance))

    def loss(self, inner: PrivacyLoss, relation: Relation) -> GatedLoss:
        """The loss of the test together with the answer that follows when it passes."""
        with precision(PREC):
            chances = [self.tail(self.threshold - d) for d in range(self.cap + 1)]
            fails = [self.tail(1 - self.threshold + d) for d in range(self.cap + 1)]
            passes, misses = tuple(map(float, chances)), tuple(map(float, fails))
        return GatedLoss(inner, passes, misses, self.failure, relation=relation)

    def ready(self, count: int) -> None:
        self.noise.ready(count)

    def opens(self, distance: int) -> bool:
        """Runs one test."""
        return self.noise.pool.reaches(self.threshold, max(0, min(self.cap, int(distance))))

    def sure(self, confidence: float) -> int:
        """The least distance that passes with at least this probability; the cap, if none does."""
        goal = below_one("confidence", confidence)
        low, high = 0, self.cap
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._passes(middle) * (1 - 1e-15) >= goal else (middle + 1, high)
        return low


def whole_distance(distance: object) -> int:
    """A private non-negative integer, clipped to 64 bits."""
    found = read_numbers(distance)  # type: ignore[arg-type]
    if found.ndim or found.dtype.kind != "i":
        raise InvalidParameter(
            f"a distance must be one whole number.\n  found:  a {type(distance).__name__}\n  do:     give an integer"
        )
    return max(0, int(found))
