"""Counts by group within a share of themselves: noise in proportion, and a guarantee that grows with the group.

One number is refined round by round (`refine`), as its size decides what a relative error costs. Of many groups the
smallest would decide for all. So a count by group is bought once, as a contract of sfumato.mechanisms.groups: the price
buys the size from which on the error is relative, and is charged for the smallest group there could be.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sfumato.aggregates.linear import NumberEstimate, Reader
from sfumato.aggregates.noisy_sums import CONFIDENCE, Number
from sfumato.aggregates.price import Mu, Price
from sfumato.errors import QueryRefused
from sfumato.mechanisms.groups.groupwise import GroupwiseLoss
from sfumato.mechanisms.groups.relative_error import LEAST, MOST, MeanError, absolute_sigma
from sfumato.noise.draw_table import Integers
from sfumato.sql.question import Question

LAYOUT = 1  # raise it when tables change: stored steps must not be read with another table
SIZES = (1, 10, 100, 1000, 10_000, 100_000, 1_000_000)
SMALLEST, LARGEST = 1e-3, 1e7  # floors


def is_grouped_count(question: Question) -> bool:
    """Is it one count by group, and nothing else? Contracts are about whole rows: scaled counts are refined instead."""
    plan = question.plan
    if plan.table.scaled:
        return False
    only = len(question.aggregates) == 1 and question.aggregates[0].is_count
    return only and bool(plan.keys) and len(plan.measures) == 1 and plan.parts == 1


def require_contract(question: Question, goal: float, currency: type[Price]) -> None:
    """Raise QueryRefused where no such contract is possible."""
    private = question.plan.public is None
    if private or currency is not Mu:
        found = "keys that are private" if private else "a budget of pure ε"
        raise QueryRefused(
            "a relative error of counts by group needs public keys and a Gaussian budget.\n"
            f"  found:  {found}\n  do:     list the keys in the policy (keys = […]), or ask by epsilon= alone"
        )
    if not LEAST <= goal <= MOST:
        raise QueryRefused(
            "a relative error of counts by group is a share from 0.01 % to 99 %.\n"
            f"  found:  {100 * goal:g} %\n  do:     ask for such as 5 %"
        )


@dataclass(frozen=True)
class RelativeCount:
    """One count by group: E|n̂ − n| ≤ r·√(n² + floor²), noise on the asinh of n, whole steps are what is stored."""

    contract: MeanError

    @property
    def policy(self) -> GroupwiseLoss:
        """The privacy loss of one member, by the size of the group."""
        return self.contract.policy

    def release(self, counts: Sequence[int]) -> Integers:
        """Noise on every group: called once for an answer."""
        return self.contract.mechanism.noisy(np.array(counts, np.int64))

    @cached_property
    def reader(self) -> "RelativeCountReader":
        return RelativeCountReader(self.contract)


@dataclass(frozen=True)
class RelativeCountReader(Reader):
    """Reads noisy steps: an estimate, and an interval around it, which rises with it."""

    contract: MeanError

    @property
    def coverage(self) -> float:
        return CONFIDENCE

    def read(self, row: Sequence[Number]) -> NumberEstimate:
        return self.read_all([row])[0]

    def read_all(self, rows: Sequence[Sequence[Number]]) -> list[NumberEstimate]:
        mechanism, noisy = self.contract.mechanism, np.array([row[0] for row in rows], np.int64)
        values, (low, high) = mechanism.estimate(noisy), mechanism.interval(noisy, self.coverage)
        ends = np.minimum(low, values).tolist(), np.maximum(high, values).tolist()
        return list(zip(values.tolist(), *ends, strict=True))

    def promise(self) -> str:
        share, floor = 100 * self.contract.relative_error, self.contract.floor
        return f"off by {share:.3g} % of √(n² + {floor:,.4g}²) in the mean, at most"


@lru_cache(maxsize=64)
def relative_count(relative_error: float, mu: float, rows: int) -> RelativeCount:
    """The contract with the least floor that costs at most μ for everybody.

    Theorem: noise σ on asinh(n/c) costs asinh(rows/c)/σ at most, so c = rows/sinh(σμ)
        [docs/theorems/groups.md, Theorem 2]
    The table has the last word: its own price is looked at, and the floor raised until it is not above μ.
    """
    power = absolute_sigma(relative_error) * mu
    floor = max(rows / math.sinh(power) if power < 700 else 0.0, SMALLEST) * (1 + 1e-9)
    while floor <= LARGEST:
        contract = MeanError(relative_error, floor, rows)
        if contract.mechanism.loss().mu <= mu:
            return RelativeCount(contract)
        floor *= 1 + 1e-6
    raise QueryRefused(
        f"a relative error of {100 * relative_error:g} % for counts by group costs more than this.\n"
        f"  found:  only groups far above {LARGEST:,.0f} would have this error\n  do:     ask with a larger epsilon"
    )


def policy_by_group_size(count: RelativeCount, groups: int, delta: float) -> tuple[tuple[int, float], ...]:
    """(size, ε at δ): the loss of somebody in so many groups, all of at least this size. A function of the question;
    the true sizes have no part in it."""
    return tuple((size, count.policy.across([size] * groups).epsilon(delta).upper) for size in SIZES)


def describe_policy(pairs: Sequence[tuple[int, float]]) -> str:
    """The losses by group size, in words."""
    parts = [f"{size:,}: {eps:.2g}" for size, eps in pairs]
    return f"ε by the least size of one's groups: {', '.join(parts)}." if parts else ""
