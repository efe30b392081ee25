"""A contract promises a relative error: its mechanism, and a certificate of its distance from the best possible one."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Floats
from sfumato.mechanisms.groups.groupwise import GroupwiseLoss
from sfumato.mechanisms.groups.integer_table import OFF, IntegerTable
from sfumato.mechanisms.groups.lower_bound import psi
from sfumato.mechanisms.groups.transformed import Transformed
from sfumato.mechanisms.groups.transforms import Asinh, Estimator, Log, relative_mean_error

LEAST, MOST = 1e-4, 0.99
LESS = 1 - 1e-12  # covers the rounding errors below


@dataclass(frozen=True)
class Contract(ABC):
    """An error bound for every group size that holds whatever the counts are, quantisation of the table included.

    Below the size `floor` the error is not required to be relative. `rows` is the contribution bound: the largest
    number of rows of one person in a group.
    """

    relative_error: float
    floor: float
    rows: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.relative_error, int | float) and not isinstance(self.relative_error, bool):
            if self.relative_error >= 1:
                raise InvalidParameter(
                    "an error of 100 % promises nothing: the answer 0 has it for every count.\n"
                    f"  found:  relative_error = {self.relative_error:g}\n  do:     give a share, such as 0.05"
                )
            if self.relative_error == 0:
                raise InvalidParameter(
                    "an exact answer cannot be private.\n  found:  relative_error = 0\n"
                    "  do:     give a share, such as 0.05; or use Transformed(Identity(), sigma) for an absolute error"
                )
        for name, low, high, allowed in (
            ("relative_error", LEAST, MOST, "a share from 0.0001 to 0.99"),
            ("floor", 1e-3, 1e7, "a number of people, from 0.001 to ten million"),
        ):
            object.__setattr__(self, name, checks.number(name, getattr(self, name), low, high, allowed=allowed))
        object.__setattr__(self, "rows", checks.whole("rows", self.rows, 1, 10**6))

    @abstractmethod
    def tolerance(self, count: float) -> float:
        """The promised error for a group of this size."""

    @cached_property
    @abstractmethod
    def mechanism(self) -> Transformed:
        """The mechanism that keeps the contract."""

    @property
    def policy(self) -> GroupwiseLoss:
        """The privacy loss of a member as a function of the group size."""
        return self.mechanism.policy

    def loss(self) -> PrivacyLoss:
        """The price of a release: the loss of a member of the smallest group, which holds in every group.

        `policy.member(size)` is the loss in a group of a given size. It is a function to publish, never its value at
        the true size.
        """
        return self.policy.everyone()

    @cached_property
    def certificate(self) -> "Certificate":
        """How far the mechanism is from the best possible one."""
        return Certificate(self.mechanism, self.large, self.tolerance)

    @property
    def large(self) -> float:
        """The promised E|x̂ − x|/x of large groups."""
        return self.relative_error

    def release(self, counts: ArrayLike) -> float | Floats:
        return self.mechanism.release(counts)

    def build(self, sigma: float, transform: Asinh | Log, estimator: Estimator) -> Transformed:
        """The mechanism; raises if its table is further from the transform than was allowed for."""
        mechanism = Transformed(transform, sigma, self.rows, estimator)
        if mechanism.table.off > table_allowance(sigma):
            raise AssertionError(f"a table is {mechanism.table.off:.3g} σ off its transform")
        return mechanism


@dataclass(frozen=True)
class MeanError(Contract):
    """E|x̂ − x| ≤ r·√(x² + floor²) for every x: an asinh transform whose scale is the floor.

    Theorem: E|x̂ − x| ≤ (2Φ(s) − 1)·√(x² + c²) for κ = e^{−s²}, and a table that is off by o·s adds at most e^{os} − 1
        of √(x² + c²) [docs/theorems/groups.md, Theorems 3 and 4]
    """

    def tolerance(self, count: float) -> float:
        return self.relative_error * math.hypot(count, self.floor)

    @cached_property
    def mechanism(self) -> Transformed:
        return self.build(absolute_sigma(self.relative_error), Asinh(self.floor), Estimator.CLOSEST)


@dataclass(frozen=True)
class RootMeanSquareError(Contract):
    """√E(x̂ − x)² ≤ r·√(x² + floor²) for every x, and E x̂ = x up to the table: an unbiased asinh transform.

    Theorem: Var x̂ = x²(e^{s²} − 1) + c²·sinh s² [docs/theorems/groups.md, Theorem 3]
    """

    def tolerance(self, count: float) -> float:
        return self.relative_error * math.hypot(count, self.floor)

    @cached_property
    def mechanism(self) -> Transformed:
        r = self.relative_error * LESS
        for _ in range(40):  # r = r′ + (e^{os} − 1)·e^{s²}, s² = ln(1 + r′²)
            t = math.log1p(r * r)
            r = self.relative_error * LESS - math.expm1(table_allowance(math.sqrt(t)) * math.sqrt(t)) * math.exp(t)
        t = math.log1p(r * r)
        return self.build(math.sqrt(t), Asinh(self.floor * r / math.sqrt(math.sinh(t))), Estimator.UNBIASED)

    @property
    def large(self) -> float:
        """The mean absolute error, about √(2/π) times the root mean square error."""
        return relative_mean_error(self.mechanism.sigma, Estimator.UNBIASED)


@dataclass(frozen=True)
class MeanErrorAtMost(Contract):
    """E|x̂ − x| ≤ r·max(x, floor) for every x: stricter near the floor, at twice the privacy loss at both ends.

    Theorem: E|x̂ − x|/max(x, floor) is largest at x = floor [docs/theorems/groups.md, Theorem 4]
    """

    def tolerance(self, count: float) -> float:
        return self.relative_error * max(count, self.floor)

    @cached_property
    def mechanism(self) -> Transformed:
        transform, x = Asinh(self.floor), self.floor

        def over(sigma: float) -> float:
            more = math.expm1(table_allowance(sigma) * sigma) * math.hypot(x, x)
            return transform.absolute_error(x, sigma, Estimator.CLOSEST) + more - self.relative_error * LESS * x

        return self.build(rising_root(over, absolute_sigma(self.relative_error)), transform, Estimator.CLOSEST)


@dataclass(frozen=True)
class ProportionalError(Contract):
    """E|x̂ − x| ≤ r·(x + floor) for every x: a logarithm, whose error is exactly proportional to x + floor.

    Theorem: E|x̂ − x| = (2Φ(s) − 1)·(x + a) for κ = e^{−s²} [docs/theorems/groups.md, Theorem 3]
    """

    def tolerance(self, count: float) -> float:
        return self.relative_error * (count + self.floor)

    @cached_property
    def mechanism(self) -> Transformed:
        return self.build(absolute_sigma(self.relative_error), Log(self.floor), Estimator.CLOSEST)


def table_allowance(sigma: float) -> float:
    """The allowed distance of a table from its transform, in σ: segments are at least 2⁻¹² of a count wide."""
    return max(1.2 * OFF, 4e-8 / sigma)


def absolute_sigma(relative_error: float) -> float:
    """s with 2Φ(s) − 1 + (e^{os} − 1) = r, rounded down."""
    return rising_root(
        lambda s: math.erf(s / math.sqrt(2)) + math.expm1(table_allowance(s) * s) - relative_error * LESS, 4.0
    )


def rising_root(over: Callable[[float], float], high: float) -> float:
    """The root of an increasing function, rounded down."""
    return float(brentq(over, 1e-6, high, xtol=1e-18, rtol=1e-14)) * LESS


def contract(relative_error: float, floor: float, rows: int = 1) -> MeanError:
    """The standard contract: E|x̂ − x| ≤ r·√(x² + floor²) for every count x.

    >>> contract(relative_error=0.05, floor=10).mechanism
    Transformed(transform=Asinh(scale=10.0), sigma=0.0627..., rows=1, estimator=closest)
    """
    return MeanError(relative_error, floor, rows)


POINTS = 400  # of the average over group sizes


@dataclass(frozen=True)
class Certificate:
    """The distance of a contract from the best possible mechanism.

    For large groups: x²·v(x) stays below `limit`, and no mechanism with the same mean relative error can stay below
    `best`. For groups from `low` to `high`: `averaged` compares an average of x²(e^{2v(x)} − 1) with its lower bound.

    The transform alone has the limit 1/2s² (in rows²). A segment of its table has one slope, which at its end, 2^-b of
    a count further, is up to 2^-(b+1) too steep. This assumes that one step is small: v far above 4^-p.

    Theorem: limsup x²·v(x) ≥ Psi(r)/2, and E_π x²(e^{2v(x)} − 1) ≥ Psi(r + 1/2N) − 4π²/L²
        [docs/theorems/groups.md, Theorem 5]
    """

    mechanism: Transformed
    relative_error: float  # the promised E|x̂ − x|/x of large groups
    tolerance: Callable[[float], float] = field(repr=False)

    @property
    def ideal(self) -> float:
        """The limit of x²·v(x), in rows², of the transform without its table."""
        return 1 / (2 * self.mechanism.sigma**2)

    @property
    def limit(self) -> float:
        """An upper bound of x²·v(x) for large groups, in rows², with the table."""
        table = self.mechanism.table
        steeper = (1 + 2.0 ** -(table.bits + 1)) ** 2 if isinstance(table, IntegerTable) else math.inf
        return self.ideal * steeper * (1 + 8 * ULP)

    @cached_property
    def best(self) -> Bound:
        """The lower bound of limsup x²·v(x) for every mechanism with this relative error."""
        found = psi(self.relative_error)
        return Bound(found.lower / 2, found.upper / 2, found.method, found.safe)

    @property
    def ratio(self) -> float:
        """Upper bound of `limit` over the best possible: 1.02 means within 2 %."""
        return self.limit / self.best.lower * (1 + ULP)

    def averaged(self, low: float, high: float) -> float:
        """The ratio to the best for groups from `low` to `high` people; infinite where no lower bound is known.

        The average of x²(e^{2v(x)} − 1), with cos² weights on ln x, over the least value of this average that any
        mechanism with the same error for these groups can have.
        """
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
