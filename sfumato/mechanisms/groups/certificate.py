"""How far a contract is from the best that any mechanism could do."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sfumato import checks
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP
from sfumato.mechanisms.groups.integer_table import Table
from sfumato.mechanisms.groups.lower_bound import psi
from sfumato.mechanisms.groups.transformed import Transformed

POINTS = 400


@dataclass(frozen=True)
class Certificate:
    """Two statements. For large groups: x²·v(x) stays below `limit`, and no mechanism with the same mean relative error
    can stay below `best`. For groups from `low` to `high`: an average of theirs against what it must be at least.

    The transform alone has the limit 1/2s² (in rows²). A segment of its table has one slope, which at its end, 2^-b
    of a count further, is up to 2^-(b+1) too steep. That is as long as one step is little: for v far above 4^-p.

    Theorem: limsup x²·v(x) ≥ Psi(r)/2, and E_π x²(e^{2v(x)} − 1) ≥ Psi(r + 1/2N) − 4π²/L²
        [docs/theorems/groups.md, Theorem 5]
    """

    mechanism: Transformed
    relative_error: float  # E|x̂ − x|/x of large groups, as promised
    tolerance: Callable[[float], float] = field(repr=False)

    @property
    def ideal(self) -> float:
        """The limit of x²·v(x), in rows², of the transform without its table."""
        return 1 / (2 * self.mechanism.sigma**2)

    @property
    def limit(self) -> float:
        """What x²·v(x) of large groups stays below, in rows²: with the table."""
        table = self.mechanism.table
        steeper = (1 + 2.0 ** -(table.bits + 1)) ** 2 if isinstance(table, Table) else math.inf
        return self.ideal * steeper * (1 + 8 * ULP)

    @cached_property
    def best(self) -> Bound:
        """What no mechanism with this relative error has less of."""
        found = psi(self.relative_error)
        return Bound(found.lower / 2, found.upper / 2, found.method, found.safe)

    @property
    def ratio(self) -> float:
        """At most so many times the best: 1.02 means within 2 %."""
        return self.limit / self.best.lower * (1 + ULP)

    def averaged(self, low: float, high: float) -> float:
        """The same for groups from `low` to `high` people: the average of x²(e^{2v(x)} − 1), with cos² weights on ln x,
        over the least that any mechanism which keeps the contract there has. Infinite where nothing is known."""
        first = checks.number("low", low, 1.0, 1e14, allowed="a number of people, from 1")
        last = checks.number("high", high, 1.0, 1e15, allowed="a number of people, up to 1e15")
        rows = self.mechanism.rows
        length = math.log(last / first) if last > first else 0.0
        share = self.tolerance(first) / first + rows / (2 * first)
        if not length or share >= 1 - 1e-6:
            return math.inf
        least = psi(share).lower - 4 * math.pi**2 / length**2
        at = (np.arange(POINTS) + 0.5) / POINTS
        weights = 2 / POINTS * np.sin(math.pi * at) ** 2
        sizes = [first * math.exp(length * t) for t in at]
        policy = self.mechanism.policy
        ours = [(x / rows) ** 2 * math.expm1(2 * policy.v(math.floor(x)).upper) for x in sizes]
        return float(weights @ ours) / least if least > 0 else math.inf

    def __str__(self) -> str:
        return (
            f"within {100 * (self.ratio - 1):.3g} % of the best that any mechanism can do for large groups "
            f"(mean relative error {100 * self.relative_error:.3g} %)"
        )
