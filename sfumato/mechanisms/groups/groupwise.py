"""Group-wise privacy: the loss of a group's member as a public function of the size of the group.

The size of a group is private, so the value of this function at the true size is private too and must not be published.
The function itself may be.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.numeric import ULP


class Policy(ABC):
    """The guarantee of one release, by the size of the group that a member joins or leaves."""

    @abstractmethod
    def member(self, size: int) -> PrivacyLoss:
        """The loss of a person who joins or leaves a group of this size, in both directions."""

    @abstractmethod
    def zcdp(self, size: int) -> tuple[Bound, Bound]:
        """(v, ξ) with D_a ≤ a·v + ξ for all orders a > 1; v is infinite if there is no such number."""

    @abstractmethod
    def everyone(self) -> PrivacyLoss:
        """The loss that holds in every group: this is what a ledger charges."""


@dataclass(frozen=True)
class GroupwiseLoss:
    """The map from group size to guarantee, for one release or several.

    Losses of a group add up, so policies do too. A person is in one group; for a person in several groups the losses of
    these groups add up (`across`).

    Theorem: (v, ξ)-group-wise zCDP: D_a ≤ a·v(x) + ξ(x) both ways, for all a > 1, where a record of a group of x is
        added or removed [Azize 2023, Def. 1]
    Theorem: losses on the same data compose, so v, ξ and members' losses add up [Bun & Steinke 2016, Lemma 1.7]
    """

    policies: tuple[Policy, ...]

    def __post_init__(self) -> None:
        if not self.policies or not all(isinstance(one, Policy) for one in self.policies):
            raise InvalidParameter(
                "a group-wise loss needs at least one Policy.\n  found:  none, or something else\n"
                "  do:     use `policy` of a mechanism of sf.groups, and add such losses"
            )

    def v(self, size: int) -> Bound:
        """The slope v of a linear bound on the Rényi curve; infinite if there is none."""
        return sum_bounds(one.zcdp(check_size(size))[0] for one in self.policies)

    def xi(self, size: int) -> Bound:
        """The offset ξ of a linear bound on the Rényi curve: 0 for noise on a transform."""
        return sum_bounds(one.zcdp(check_size(size))[1] for one in self.policies)

    def member(self, size: int) -> PrivacyLoss:
        """The privacy loss of a member of a group of this size."""
        return reduce(add, (one.member(check_size(size)) for one in self.policies))

    def everyone(self) -> PrivacyLoss:
        """The loss that holds for everybody, whatever the sizes: this is what is charged."""
        return reduce(add, (one.everyone() for one in self.policies))

    def across(self, sizes: Iterable[int]) -> PrivacyLoss:
        """The loss of one person who is in several groups of these sizes."""
        found = [self.member(size) for size in sizes]
        return reduce(add, found) if found else GaussianLoss(0.0)

    def delta(self, size: int, epsilon: float) -> Bound:
        return self.member(size).delta(epsilon)

    def epsilon(self, size: int, delta: float) -> Bound:
        return self.member(size).epsilon(delta)

    def trade_off(self, size: int, alpha: float) -> Bound:
        return self.member(size).trade_off(alpha)

    def __add__(self, other: "GroupwiseLoss") -> "GroupwiseLoss":
        return GroupwiseLoss(self.policies + other.policies) if isinstance(other, GroupwiseLoss) else NotImplemented

    def __rmul__(self, count: int) -> "GroupwiseLoss":
        """`count` independent releases of each."""
        return GroupwiseLoss(self.policies * checks.whole("count", count, 1, 10**6))


def check_size(size: int) -> int:
    """A number of people, capped at 10¹⁵."""
    return min(checks.whole("size", size, 0, 10**30), 10**15)


def sum_bounds(bounds: Iterable[Bound]) -> Bound:
    """The sum, rounded outwards."""
    found = list(bounds)
    low, high = sum(b.lower for b in found), sum(b.upper for b in found)
    spare = 2 * len(found) * ULP if len(found) > 1 else 0.0
    return Bound(low * (1 - spare), high * (1 + spare), found[0].method)
