"""A relative error that is promised: parameters from a contract, and how far from the best they are."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from numpy.typing import ArrayLike
from scipy.optimize import brentq

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.numeric import Floats
from sfumato.mechanisms.groups.asinh import Asinh, relative
from sfumato.mechanisms.groups.certificate import Certificate
from sfumato.mechanisms.groups.groupwise import GroupwiseLoss
from sfumato.mechanisms.groups.integer_table import OFF
from sfumato.mechanisms.groups.log import Log
from sfumato.mechanisms.groups.transform import Estimator
from sfumato.mechanisms.groups.transformed import Transformed

LEAST, MOST = 1e-4, 0.99
LESS = 1 - 1e-12  # more than the roundings of what follows


@dataclass(frozen=True)
class Contract(ABC):
    """An error for every size of group, kept whatever the counts are, quantisation of the table included.

    `floor` is the size below which an error is no longer asked to be relative. `rows` is how many rows one person has
    in a group at most.
    """

    relative_error: float
    floor: float
    rows: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.relative_error, int | float) and not isinstance(self.relative_error, bool):
            if self.relative_error >= 1:
                raise InvalidParameter(
                    "an error of 100 % is no promise: 0 keeps it for every count.\n"
                    f"  found:  relative_error = {self.relative_error:g}\n  do:     give a share, such as 0.05"
                )
            if self.relative_error == 0:
                raise InvalidParameter(
                    "no error at all cannot be private.\n  found:  relative_error = 0\n"
                    "  do:     give a share, such as 0.05; or take Transformed(Identity(), sigma), which has one error"
                )
        for name, low, high, allowed in (
            ("relative_error", LEAST, MOST, "a share from 0.0001 to 0.99"),
            ("floor", 1e-3, 1e7, "a number of people, from 0.001 to ten million"),
        ):
            object.__setattr__(self, name, checks.number(name, getattr(self, name), low, high, allowed=allowed))
        object.__setattr__(self, "rows", checks.whole("rows", self.rows, 1, 10**6))

    @abstractmethod
    def tolerance(self, count: float) -> float:
        """The error that is promised for a group of this size."""

    @cached_property
    @abstractmethod
    def mechanism(self) -> Transformed:
        """What keeps it."""

    @property
    def policy(self) -> GroupwiseLoss:
        """What is told about a member, by the size of the group."""
        return self.mechanism.policy

    @cached_property
    def certificate(self) -> Certificate:
        """How far from the best any mechanism can do."""
        return Certificate(self.mechanism, self.large, self.tolerance)

    @property
    def large(self) -> float:
        """E|x̂ − x|/x of large groups, as promised."""
        return self.relative_error

    def release(self, counts: ArrayLike) -> float | Floats:
        return self.mechanism.release(counts)

    def kept(self, sigma: float, transform: Asinh | Log, estimator: Estimator) -> Transformed:
        """The mechanism, if its table is as near as was allowed for."""
        found = Transformed(transform, sigma, self.rows, estimator)
        if found.table.off > spare(sigma):
            raise AssertionError(f"a table is {found.table.off:.3g} σ off its transform")
        return found


@dataclass(frozen=True)
class MeanError(Contract):
    """E|x̂ − x| ≤ r·√(x² + floor²) for every x, by an asinh whose scale is the floor.

    Theorem: E|x̂ − x| ≤ (2Φ(s) − 1)·√(x² + c²) for κ = e^{−s²}, and a table that is off by o·s adds at most e^{os} − 1
        of √(x² + c²) [docs/theorems/groups.md, Theorems 3 and 4]
    """

    def tolerance(self, count: float) -> float:
        return self.relative_error * math.hypot(count, self.floor)

    @cached_property
    def mechanism(self) -> Transformed:
        return self.kept(absolute_sigma(self.relative_error), Asinh(self.floor), Estimator.CLOSEST)


@dataclass(frozen=True)
class RootMeanSquareError(Contract):
    """√E(x̂ − x)² ≤ r·√(x² + floor²) for every x, and E x̂ = x up to the table: the asinh-Gaussian of equal variance.

    Theorem: Var x̂ = x²(e^{s²} − 1) + c²·sinh s² [docs/theorems/groups.md, Theorem 3]
    """

    def tolerance(self, count: float) -> float:
        return self.relative_error * math.hypot(count, self.floor)

    @cached_property
    def mechanism(self) -> Transformed:
        r = self.relative_error * LESS
        for _ in range(40):  # r = r′ + (e^{os} − 1)·e^{s²}, s² = ln(1 + r′²)
            t = math.log1p(r * r)
            r = self.relative_error * LESS - math.expm1(spare(math.sqrt(t)) * math.sqrt(t)) * math.exp(t)
        t = math.log1p(r * r)
        return self.kept(math.sqrt(t), Asinh(self.floor * r / math.sqrt(math.sinh(t))), Estimator.UNBIASED)

    @property
    def large(self) -> float:
        """What its root mean square amounts to in the mean: about √(2/π) of it."""
        return relative(self.mechanism.sigma, Estimator.UNBIASED)


@dataclass(frozen=True)
class MeanErrorAtMost(Contract):
    """E|x̂ − x| ≤ r·max(x, floor) for every x: stricter near the floor, which costs twice as much at both ends.

    Theorem: E|x̂ − x|/max(x, floor) is largest at x = floor [docs/theorems/groups.md, Theorem 4]
    """

    def tolerance(self, count: float) -> float:
        return self.relative_error * max(count, self.floor)

    @cached_property
    def mechanism(self) -> Transformed:
        transform, x = Asinh(self.floor), self.floor

        def over(sigma: float) -> float:
            more = math.expm1(spare(sigma) * sigma) * math.hypot(x, x)
            return transform.absolute_error(x, sigma, Estimator.CLOSEST) + more - self.relative_error * LESS * x

        return self.kept(root(over, absolute_sigma(self.relative_error)), transform, Estimator.CLOSEST)


@dataclass(frozen=True)
class ProportionalError(Contract):
    """E|x̂ − x| ≤ r·(x + floor) for every x, by a logarithm: exactly in proportion.

    Theorem: E|x̂ − x| = (2Φ(s) − 1)·(x + a) for κ = e^{−s²} [docs/theorems/groups.md, Theorem 3]
    """

    def tolerance(self, count: float) -> float:
        return self.relative_error * (count + self.floor)

    @cached_property
    def mechanism(self) -> Transformed:
        return self.kept(absolute_sigma(self.relative_error), Log(self.floor), Estimator.CLOSEST)


def spare(sigma: float) -> float:
    """What a table is allowed to be off, in σ: segments are at least 2⁻¹² of a count wide."""
    return max(1.2 * OFF, 4e-8 / sigma)


def absolute_sigma(relative_error: float) -> float:
    """s with 2Φ(s) − 1 + (e^{os} − 1) = r, rounded down."""
    return root(lambda s: math.erf(s / math.sqrt(2)) + math.expm1(spare(s) * s) - relative_error * LESS, 4.0)


def root(over: Callable[[float], float], high: float) -> float:
    """Where a rising function is 0, rounded down."""
    return float(brentq(over, 1e-6, high, xtol=1e-18, rtol=1e-14)) * LESS


def contract(relative_error: float, floor: float, rows: int = 1) -> MeanError:
    """Counts within a share of themselves in the mean: E|x̂ − x| ≤ r·√(x² + floor²).

    >>> contract(relative_error=0.05, floor=10).mechanism
    Transformed(transform=Asinh(scale=10.0), sigma=0.0627..., rows=1, estimator=closest)
    """
    return MeanError(relative_error, floor, rows)
