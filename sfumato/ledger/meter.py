"""The privacy spent so far: the meter, which is a reading, and the odometer, which is valid at all times.

The guarantee of a ledger is its budget. The sum spent by a moment that the reader chooses is not a guarantee: somebody
who stops at the luckiest moment has learnt more than the sum says (docs/theorems/ledger.md).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from sfumato.ledger.amounts import Amount
from sfumato.ledger.budgets import Promise, PureBudget
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound

LEVELS = 42  # a factor 2^¼ apart: three decades below the budget
READING = "a reading, not a guarantee: the guarantee is the budget"


@dataclass(frozen=True)
class Meter:
    """Spent so far, as if the questions had been fixed in advance: a reading, not a guarantee."""

    promise: Promise
    spent: Amount

    @cached_property
    def loss(self) -> PrivacyLoss:
        return self.promise.loss_of(self.spent)

    def epsilon(self, delta: float | None = None) -> float:
        """ε at the budget's δ, or at another."""
        return self.promise.epsilon_of(self.spent, self.promise.delta if delta is None else delta)

    def trade_off(self, alpha: float) -> Bound:
        """The least miss rate of an attacker with false alarm rate `alpha`."""
        return self.loss.trade_off(alpha)

    def odds(self) -> str:
        """The meaning of what was spent for one person, in words."""
        return odds(self.loss)

    def __str__(self) -> str:
        return f"spent so far: ε = {self.epsilon():.4g} at δ = {self.promise.delta:g} ({READING})\n{self.odds()}"


@dataclass(frozen=True)
class OdometerLevel:
    """A level of the ladder: what may be spent up to it, and its ε."""

    limit: Amount
    epsilon: float


@dataclass(frozen=True)
class Odometer:
    """A ladder of levels fixed with the budget, whose δ is split over them: valid at all times at once.

    At any stopping time, however it is chosen, the ε of the level shown then holds with the budget's δ. Pure losses
    need no ladder: their sum is never less than the realised loss.

    Theorem: P(S) ≤ E_Q[1_S·e^{ε_J}] + Δ + (1−Δ)δ′ for every stopping time [docs/theorems/ledger.md]
    """

    promise: Promise
    limit: Amount

    @cached_property
    def levels(self) -> tuple[OdometerLevel, ...]:
        """All levels, from the lowest to the budget itself."""
        return tuple(self._make_levels())

    def _make_levels(self) -> Iterator[OdometerLevel]:
        if isinstance(self.promise, PureBudget):
            return
        delta, slack = Fraction(self.promise.delta), self.limit.real("leak")
        share = float((delta - slack) / (1 - slack) / LEVELS) * (1 - 1e-15)
        counter = "gauss" if self.limit.gauss else "rho"
        for j in range(LEVELS - 1, -1, -1):
            units = int(getattr(self.limit, counter) * 2.0 ** (-j / 4)) if j else getattr(self.limit, counter)
            level = replace(self.limit, leak=0, **{counter: units})
            yield OdometerLevel(replace(level, leak=self.limit.leak), self.promise.epsilon_of(level, share))

    def reading(self, spent: Amount) -> float:
        """The ε of the lowest level that covers what is spent; infinite above the first budget, after a renewal."""
        if isinstance(self.promise, PureBudget):
            return float(self.promise.loss_of(spent).supremum()[0])
        return next((level.epsilon for level in self.levels if spent.within(level.limit)), math.inf)


@lru_cache(maxsize=256)  # losses are immutable, and every preview asks for that of the same ledger
def odds(loss: PrivacyLoss) -> str:
    """The meaning of a loss for one person, in words."""
    right = 100 * (1 + loss.delta(0.0).upper) / 2
    caught = 100 * (1 - loss.trade_off(0.05).lower)
    return (
        "An attacker who sees every answer and guesses whether you took part is right\n"
        f"at most {right:.1f} times in 100; without any answer, 50 times in 100. If they accuse\n"
        f"5 in 100 of those who did not take part, they find at most {caught:.1f} in 100 of those\nwho did."
    )


@lru_cache(maxsize=256)  # an answer has the price of its preview
def epsilon_at(loss: PrivacyLoss, delta: float) -> float:
    """An upper bound of ε at δ."""
    return loss.epsilon(delta).upper
