"""What a release tells about a member of a group, as a function of the size of the group: a policy, and public.

The size of a group is private, so the number that this function gives at the true size is private too, and is never
published. The function is.
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
    """The guarantee of one release, by the size of the group before or after a member came or left."""

    @abstractmethod
    def member(self, size: int) -> PrivacyLoss:
        """What is told about one who may come to, or leave, a group of this size, in both directions."""

    @abstractmethod
    def zcdp(self, size: int) -> tuple[Bound, Bound]:
        """(v, ξ): D_a ≤ a·v + ξ for all orders a > 1; v is infinite where there is no such number."""

    @abstractmethod
    def everyone(self) -> PrivacyLoss:
        """What holds in every group: the fallback, which is what a ledger charges."""


@dataclass(frozen=True)
class GroupwiseLoss:
    """Size ↦ guarantee, of one release or of several.

    Losses of a group add up, so policies do. Nobody is in two groups here; who is in several (`across`) is told about
    by each of them.

    Theorem: (v, ξ)-group-wise zCDP: D_a ≤ a·v(x) + ξ(x) both ways, for all a > 1, where a record of a group of x is
        added or removed [Azize 2023, Def. 1]
    Theorem: losses on the same data compose, so v, ξ and members' losses add up [Bun & Steinke 2016, Lemma 1.7]
    """

    policies: tuple[Policy, ...]

    def __post_init__(self) -> None:
        if not self.policies or not all(isinstance(one, Policy) for one in self.policies):
            raise InvalidParameter(
                "a group-wise loss is made of policies.\n  found:  none, or something else\n"
                "  do:     take `policy` of a mechanism of sf.groups, and add such losses"
            )

    def v(self, size: int) -> Bound:
        """The slope of the Rényi curve; infinite if no line bounds it."""
        return total(one.zcdp(sized(size))[0] for one in self.policies)

    def xi(self, size: int) -> Bound:
        """What the Rényi curve has beyond the slope: 0 for noise on a transform."""
        return total(one.zcdp(sized(size))[1] for one in self.policies)

    def member(self, size: int) -> PrivacyLoss:
        """The privacy loss of a member of a group of this size: ask it for anything."""
        return reduce(add, (one.member(sized(size)) for one in self.policies))

    def everyone(self) -> PrivacyLoss:
        """The same for all, whatever the sizes: this is what is charged."""
        return reduce(add, (one.everyone() for one in self.policies))

    def across(self, sizes: Iterable[int]) -> PrivacyLoss:
        """The loss of one person who is in several groups, of these sizes."""
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
        """So many independent releases of each."""
        return GroupwiseLoss(self.policies * checks.whole("count", count, 1, 10**6))


def sized(size: int) -> int:
    """A number of people; those above 10¹⁵ are taken for so many."""
    return min(checks.whole("size", size, 0, 10**30), 10**15)


def total(bounds: Iterable[Bound]) -> Bound:
    """The sum, rounded outwards."""
    found = list(bounds)
    low, high = sum(b.lower for b in found), sum(b.upper for b in found)
    spare = 2 * len(found) * ULP if len(found) > 1 else 0.0
    return Bound(low * (1 - spare), high * (1 + spare), found[0].method)
