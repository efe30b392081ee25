"""What a fit may spend, and the noise that it buys: μ of Gaussian DP, or pure ε, about one neighbour relation."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import SupportsFloat

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.bounded_range import range_of
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.views.calibrate import calibrate
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.joint_laplace import JointLaplace
from sfumato.mechanisms.choice.exponential import Exponential
from sfumato.mechanisms.choice.permute_and_flip import PermuteAndFlip
from sfumato.noise.draw_table import Integers
from sfumato.rounding import product_down, quotient_up
from sfumato.sensitivity import Relation, Sensitivity

FINE_LEVELS = 1 << 14  # of a box, at least, where one unit may be in several
LESS = 1 - 1e-14  # rounding never makes noise smaller than the price says


@dataclass(frozen=True)
class Spending(ABC):
    """An amount of privacy that can be divided: the parts of a whole cost the whole together."""

    amount: float
    relation: Relation

    def __post_init__(self) -> None:
        object.__setattr__(self, "amount", checks.positive("the budget of a fit", self.amount))
        if not isinstance(self.relation, Relation) or self.relation.one_way:
            raise InvalidParameter(
                "relation must be sf.AddRemove or sf.ReplaceOne.\n  found:  another one\n  do:     give one of these"
            )

    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """What it costs."""

    @abstractmethod
    def part(self, share: float) -> "Spending":
        """A share of this. Parts whose shares sum to 1 cost the whole, adaptively chosen ones too."""

    @abstractmethod
    def add_noise(self, sums: Integers, sensitivity: Sensitivity) -> Integers:
        """`sums` with exact noise; one unit moves them by at most `sensitivity`, all coordinates together."""

    @abstractmethod
    def add_noise_by_block(self, sums: Integers, sensitivity: Sensitivity) -> Integers:
        """The same for the rows of a matrix, where each row of data is in one block; `sensitivity` is about adding it.

        Replacing it is removing it from one block and adding another row to the same or to another one.
        """

    @abstractmethod
    def choose(self, utilities: Sequence[int], rows: int = 1) -> int:
        """The place of a large utility. One unit adds from 0 to `rows` to every utility, all in one direction."""

    @abstractmethod
    def deviation(self, sensitivity: Sensitivity, coordinates: int) -> float:
        """The standard deviation of that noise on each of so many coordinates, nearly."""

    @property
    def strength(self) -> float:
        """About the μ that this is worth: for rules of thumb that are public, never for a price."""
        return self.amount

    @property
    def fold(self) -> int:
        """How many rows' worth one unit moves a sum: replacing is removing one and adding another."""
        return 2 if self.relation is Relation.ReplaceOne else 1

    def check_relation(self, sensitivity: Sensitivity) -> None:
        if sensitivity.relation is not self.relation:
            raise MixedRelations(
                f"this sensitivity is about other neighbours.\n  found:  {sensitivity.relation.value}; the budget is "
                f"about {self.relation.value}\n  do:     state the sensitivity for the relation of the budget"
            )


@dataclass(frozen=True)
class GaussianSpending(Spending):
    """μ-GDP.

    Theorem: Gaussian losses compose by μ² = Σμᵢ², for adaptively chosen steps too [Dong, Roth & Su 2022, Cor. 3.3]
    """

    def loss(self) -> GaussianLoss:
        return GaussianLoss(self.amount, relation=self.relation)

    def part(self, share: float) -> "GaussianSpending":
        root = math.sqrt(checks.probability("share", share))
        return GaussianSpending(product_down(self.amount, root, LESS), self.relation)

    def add_noise(self, sums: Integers, sensitivity: Sensitivity) -> Integers:
        self.check_relation(sensitivity)
        found: Integers = gaussian(self.scale(sensitivity)).answer(np.ascontiguousarray(sums, np.int64)).multiples
        return found

    def add_noise_by_block(self, sums: Integers, sensitivity: Sensitivity) -> Integers:
        most = Sensitivity(l2=self.fold * sensitivity.norm("l2", "Gaussian noise"), relation=self.relation)
        return self.add_noise(sums, most)

    def choose(self, utilities: Sequence[int], rows: int = 1) -> int:
        """The exponential mechanism of bounded range.

        Theorem: a range that costs μ under add/remove costs 2μ for two such moves [Dong, Roth & Su 2022, Thm 2.14]
        """
        return int(by_range(self.amount / self.fold * LESS, rows).release(utilities))

    def scale(self, sensitivity: Sensitivity) -> float:
        """σ = Δ₂/μ, rounded up: of whole steps, so at least a thousandth of one."""
        return max(quotient_up(sensitivity.norm("l2", "Gaussian noise"), self.amount * LESS), 1e-3)

    def deviation(self, sensitivity: Sensitivity, coordinates: int) -> float:
        return self.scale(sensitivity)


@dataclass(frozen=True)
class PureSpending(Spending):
    """ε-DP.

    Theorem: epsilons add up, for adaptively chosen mechanisms too [Dwork & Roth 2014, Thm 3.16]
    """

    def loss(self) -> PureLoss:
        return PureLoss(self.amount, relation=self.relation)

    def part(self, share: float) -> "PureSpending":
        return PureSpending(product_down(self.amount, checks.probability("share", share), LESS), self.relation)

    def add_noise(self, sums: Integers, sensitivity: Sensitivity) -> Integers:
        """Independent noise by the L1 sensitivity, or joint noise by the box, whichever is less.

        Theorem: Laplace noise of scale Δ₁/ε is ε-DP [Dwork, McSherry, Nissim & Smith 2006, Prop. 1]
        Theorem: noise of density e^{−ε·max|zⱼ|/Δ_∞} is ε-DP [Hardt & Talwar 2010; docs/theorems/joint.md, Theorem 1]
        """
        self.check_relation(sensitivity)
        flat = np.ascontiguousarray(sums, np.int64)
        if self.joint_is_less(sensitivity, flat.size):
            mechanism = joint(self.amount * LESS, math.ceil(sensitivity.linf), flat.size)
            return mechanism.release(flat.reshape(-1)).reshape(sums.shape)
        noise = laplace(self.amount * LESS, sensitivity.norm("l1", "Laplace noise"))
        found: Integers = noise.answer(flat).multiples
        return found

    def add_noise_by_block(self, sums: Integers, sensitivity: Sensitivity) -> Integers:
        """ε for each block under add/remove; half of it where rows are replaced, since that touches two, or one twice.

        A unit of several rows may be in several blocks, with moves that sum to `sensitivity`. Laplace noise costs in
        proportion to a move. Joint noise rounds the cost of a move up to a level of its box, at most once for each
        block; so levels are made fine, and pay for that.

        Theorem: with levels of side t, moves of k blocks that sum to s cost at most k + s/t levels [each costs
            ⌈move/t⌉ of them: docs/theorems/joint.md, Theorem 1; parts with one row of a unit: McSherry 2009, Thm 4]
        """
        blocks, columns = sums.shape
        each = PureSpending(self.amount / self.fold * LESS, Relation.AddRemove)
        alone = Sensitivity(l0=columns, linf=sensitivity.linf, l1=sensitivity.l1, l2=sensitivity.l2)
        exact = np.ascontiguousarray(sums, np.int64)
        if not each.joint_is_less(alone, columns):
            noise = laplace(each.amount * LESS, alone.norm("l1", "Laplace noise"))  # independent: all blocks at once
            found: Integers = noise.answer(exact).multiples
            return found
        size = math.ceil(alone.linf)
        side = -(-size // max(FINE_LEVELS, 1024 * blocks))
        level = each.amount / (size / side + blocks) * LESS
        return joint(level, side, columns).release(exact)

    def choose(self, utilities: Sequence[int], rows: int = 1) -> int:
        """Permute and flip, which is never worse than the exponential mechanism [McKenna & Sheldon 2020]."""
        return int(by_flips(self.amount / self.fold * LESS, rows).release(utilities))

    def joint_is_less(self, sensitivity: Sensitivity, coordinates: int) -> bool:
        box = (coordinates + 1) / math.sqrt(3) * sensitivity.linf
        return coordinates > 1 and box < math.sqrt(2) * sensitivity.l1

    def deviation(self, sensitivity: Sensitivity, coordinates: int) -> float:
        if self.joint_is_less(sensitivity, coordinates):
            return (coordinates + 1) / math.sqrt(3) * sensitivity.linf / self.amount
        return math.sqrt(2) * sensitivity.norm("l1", "Laplace noise") / self.amount


gaussian = lru_cache(256)(Gaussian)  # samplers hold tables, which depend on public scales alone
joint_of_sizes = lru_cache(64)(JointLaplace)


@lru_cache(64)
def by_range(mu: float, rows: int) -> Exponential:
    return Exponential.monotone(range_of(mu), rows)


@lru_cache(64)
def by_flips(eps: float, rows: int) -> PermuteAndFlip:
    return PermuteAndFlip.monotone(eps, rows)


def joint(eps: float, size: int, count: int) -> JointLaplace:
    return joint_of_sizes(eps, (size,) * count)


@lru_cache(256)
def laplace(eps: float, size: float) -> DiscreteLaplace:
    return DiscreteLaplace.of(eps, math.ceil(size))


def spending_of(
    epsilon: SupportsFloat | None, delta: SupportsFloat, budget: PrivacyLoss | None, relation: Relation
) -> Spending:
    """From (ε, δ), of which δ = 0 means pure ε; or from a Gaussian or pure loss, which brings its own relation."""
    if (epsilon is None) == (budget is None):
        raise InvalidParameter(
            "a fit needs one budget.\n"
            f"  found:  {'none' if budget is None else 'both epsilon and a loss'}\n"
            "  do:     give epsilon=1.0, delta=1e-6 (without delta: pure ε), or budget=sf.loss.GaussianLoss(0.2)"
        )
    if budget is not None:
        if isinstance(budget, GaussianLoss):
            return GaussianSpending(budget.mu, budget.relation)
        if isinstance(budget, PureLoss):
            return pure_spending(budget.eps, budget.relation)
        raise InvalidParameter(
            f"a fit spends a Gaussian or a pure loss.\n  found:  a {type(budget).__name__}\n"
            "  do:     give sf.loss.GaussianLoss(mu) or sf.loss.PureLoss(eps), or epsilon= and delta="
        )
    assert epsilon is not None
    size = checks.positive("epsilon", epsilon)
    leak = checks.number("delta", delta, 0.0, 0.5, allowed="0 (pure ε), or a number up to 0.5 such as 1e-6")
    return GaussianSpending(most_mu(size, leak), relation) if leak else pure_spending(size, relation)


def pure_spending(eps: float, relation: Relation) -> PureSpending:
    """Pure ε of which every part is within what noise can be drawn for, so that no fit fails after its charge."""
    return PureSpending(checks.number("epsilon", eps, 1e-9, 1e4, allowed="a number from 1e-9 to 10000"), relation)


@lru_cache(1024)
def most_mu(epsilon: float, delta: float) -> float:
    """The largest μ that keeps (ε, δ), through the exact profile."""
    return calibrate(GaussianLoss, epsilon=epsilon, delta=delta, tolerance=1e-9).lower
