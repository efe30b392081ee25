"""Promises fixed in advance, and what a loss costs under each of them.

Theorem: under each of these budgets the whole transcript of a fully adaptive analyst, who chooses questions and prices
    in the light of all answers, is dominated by `loss()` [docs/theorems/ledger.md]
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.ledger.amounts import UNITS, Amount, cost, limit
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.calibrate import calibrate
from sfumato.loss.compose.sums import Sum, total
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.loss.kinds.renyi import ZcdpLoss
from sfumato.loss.views.renyi_accountant import renyi_accountant
from sfumato.rounding import rest_down, round_down, round_up, sqrt_up
from sfumato.sensitivity import AddRemove, Relation

SHARP = 1e-4  # relative gap of the price of a sum: a sharper one takes longer than it saves
SMALL = Fraction(1, 10_000)  # of the leak: the slack of one charge, where it needs one


@dataclass(frozen=True)
class Promise(ABC):
    """(ε, δ) for everything that is ever answered, and the counters that keep it.

    `slack` is the part of δ that charges may use up as leaks; a tenth of δ unless said otherwise.
    """

    epsilon: float
    delta: float
    slack: float | None = None
    relation: Relation = AddRemove
    amount: Amount = field(init=False)

    known: ClassVar[dict[str, type["Promise"]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Promise.known[cls.__name__] = cls

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive("epsilon", self.epsilon))
        delta = checks.number("delta", self.delta, 0.0, 0.9, allowed="a number from 0 to 0.9")
        object.__setattr__(self, "delta", delta)
        slack = (
            delta / 10 if self.slack is None else checks.number("slack", self.slack, 0.0, delta, allowed="0 to delta")
        )
        object.__setattr__(self, "slack", slack)
        if not isinstance(self.relation, Relation) or self.relation.one_way:
            raise InvalidParameter("a budget is about sf.AddRemove or sf.ReplaceOne; give one of them as relation")
        object.__setattr__(self, "amount", self.limits())

    @abstractmethod
    def limits(self) -> Amount:
        """The most that may be spent, rounded down."""

    @abstractmethod
    def price(self, loss: PrivacyLoss) -> Amount:
        """What a loss costs, rounded up: a function of its description and of this budget alone."""

    @abstractmethod
    def loss_of(self, spent: Amount) -> PrivacyLoss:
        """What dominates a transcript that has this limit."""

    @abstractmethod
    def largest(self, left: Amount, delta: float) -> float:
        """The largest ε at this δ of one answer that `left` covers, if it has the noise that this budget is made for:
        from below, so that it does fit."""

    def prices(self, loss: PrivacyLoss) -> tuple[Amount, ...]:
        """What may be charged for it, the first that the account still holds; known before the answer is."""
        return (self.price(loss),)

    def epsilon_of(self, spent: Amount, delta: float) -> float:
        """ε at this δ for a transcript that has this limit, from above."""
        return self.loss_of(spent).epsilon(delta).upper

    def loss(self) -> PrivacyLoss:
        """What dominates everything that is ever answered."""
        return self.loss_of(self.amount)

    def checked(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The loss, if it is one and speaks of the same neighbours."""
        if not isinstance(loss, PrivacyLoss):
            raise InvalidParameter(
                f"only a privacy loss can be charged.\n  found:  a {type(loss).__name__}\n"
                "  do:     give mechanism.loss(…), or a sum of them"
            )
        if loss.relation is not self.relation:
            raise InvalidParameter(
                f"this loss is about other neighbours.\n  found:  {loss.relation.value}; the budget is about "
                f"{self.relation.value}\n  do:     convert the loss, or open a ledger about {loss.relation.value}"
            )
        return loss

    @property
    def small(self) -> float:
        """The slack of a charge that needs one, as a whole number of units."""
        return float(Fraction((self.amount.leak * SMALL.numerator) // SMALL.denominator, UNITS["leak"]))


@dataclass(frozen=True)
class Budget(Promise):
    """Gaussian: Σμ² ≤ B² and Σδ ≤ Δ, with Δ + (1−Δ)·δ_{G_B}(ε) ≤ δ. The ledger to start with.

    With a pure share e, losses of pure ε are charged to Σε ≤ e as long as that lasts, and B is what e leaves:
    everything together is dominated by RR(e) ⊗ G_B ⊗ leak(Δ).

    Theorem: Σμᵢ² ≤ B² at every moment gives B-GDP, for adaptively chosen μᵢ [Smith & Thakurta 2022; Koskela et al.
        2023; docs/theorems/ledger.md]
    """

    pure: float = 0.0

    def limits(self) -> Amount:
        e, slack = checks.non_negative("pure", self.pure), self.slack or 0.0
        if e >= self.epsilon or not slack < self.delta:
            raise InvalidParameter(
                f"nothing is left for Gaussian answers.\n  found:  epsilon = {self.epsilon:g} with a pure share of"
                f" {e:g}, delta = {self.delta:g} with slack {slack:g}\n  do:     make the share less than epsilon, the"
                " slack less than a positive delta; or use a PureBudget"
            )
        whole = limit(pure=e, leak=slack)
        sharp = 1e-13 if e == 0 else 1e-6
        found = calibrate(lambda b: self.dominating(b, whole), epsilon=self.epsilon, delta=self.delta, tolerance=sharp)
        return whole + limit(gauss=Fraction(found.lower) ** 2)

    def dominating(self, b: float, whole: Amount) -> PrivacyLoss:
        inner: PrivacyLoss = GaussianLoss(b, relation=self.relation)
        if whole.pure:
            inner = total((1, inner), (1, PureLoss(round_up(whole.real("pure")), relation=self.relation)))
        return leaky(inner, whole)

    def loss_of(self, spent: Amount) -> PrivacyLoss:
        return self.dominating(sqrt_up(spent.real("gauss")), spent)

    def largest(self, left: Amount, delta: float) -> float:
        return gaussian_epsilon(left.real("gauss"), delta)

    def prices(self, loss: PrivacyLoss) -> tuple[Amount, ...]:
        top = max(self.checked(loss).supremum())
        share = (cost(pure=top, leak=max(loss.leak())),) if self.amount.pure and math.isfinite(top) else ()
        return (*share, self.price(loss))

    def price(self, loss: PrivacyLoss) -> Amount:
        """Slack first, then the least certified μ. Gaussians cost μ² exactly.

        The slack is the loss's own leak, or that and `small` for losses without a largest value and where it saves a
        larger share of B² than it takes of Δ: a rule fixed in advance. (Small questions must not use up the slack.)
        """
        leak, inner = unleaked(self.checked(loss))
        if (square := gaussian_square(inner)) is not None:
            return cost(gauss=square, leak=leak)
        own = max(loss.leak())
        slack = own + self.small  # a double, and the very one that is charged
        roomy = own < slack < 1
        sharp = SHARP if isinstance(inner, Sum) else 1e-6
        exact = loss.gdp(own, tolerance=sharp).upper if math.isfinite(max(loss.supremum())) or not roomy else math.inf
        eased = loss.gdp(slack, tolerance=sharp).upper if roomy else math.inf
        if math.isfinite(exact) and math.isfinite(eased):
            eases = Fraction(exact) ** 2 - Fraction(eased) ** 2 > SMALL * self.amount.real("gauss")
        else:
            eases = roomy and exact > eased
        if not eases:
            return cost(gauss=mu_square(loss, exact), leak=own)
        return cost(gauss=mu_square(loss, eased), leak=slack)


@dataclass(frozen=True)
class PureBudget(Promise):
    """Σε ≤ ε and Σδ ≤ slack: basic composition, which is fully adaptive.

    A loss without a largest value is charged as (ε(s), s)-DP at the small slack s.

    Theorem: epsilons and deltas add up, for adaptively chosen mechanisms too [Dwork & Roth 2014, Thm 3.16; Rogers et
        al. 2016, Thm 3.6; docs/theorems/ledger.md]
    """

    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.slack is None:
            object.__setattr__(self, "slack", self.delta)
        super().__post_init__()

    def limits(self) -> Amount:
        return limit(pure=self.epsilon, leak=self.slack or 0.0)

    def loss_of(self, spent: Amount) -> PrivacyLoss:
        return leaky(PureLoss(round_up(spent.real("pure")), relation=self.relation), spent)

    def largest(self, left: Amount, delta: float) -> float:
        return round_down(left.real("pure"))

    def price(self, loss: PrivacyLoss) -> Amount:
        self.checked(loss)
        top, leak = max(loss.supremum()), max(loss.leak())
        if math.isfinite(top):
            return cost(pure=top, leak=leak)
        eased = leak + self.small
        eps = loss.epsilon(eased).upper if self.small > 0 and eased < 1 else math.inf
        if math.isinf(eps):
            raise unpayable("pure ε", "its losses have no largest value, and this budget has no slack for them")
        return cost(pure=eps, leak=eased)


@dataclass(frozen=True)
class ZcdpBudget(Promise):
    """Σρ ≤ ρ and Σδ ≤ Δ, with ρ the most that keeps (ε, δ).

    Theorem: zCDP adds up, for adaptively chosen mechanisms too [Bun & Steinke 2016, Lemma 1.7; Feldman & Zrnic 2021;
        docs/theorems/ledger.md]
    """

    def limits(self) -> Amount:
        slack = self.slack or 0.0
        if not slack < self.delta:
            raise InvalidParameter(
                "zCDP promises (ε, δ) for positive δ only.\n"
                f"  found:  delta = {self.delta:g} with slack {slack:g}\n  do:     give a delta above the slack"
            )
        rest = (self.delta - slack) / (1 - slack) * (1 - 1e-4)  # so that the tabulated curve of `loss()` meets it too
        low, high = 0.0, self.epsilon  # ρ ≤ ε: the divergence of order 1 is at most ε
        for _ in range(60):
            middle = (low + high) / 2
            meets = concentrated(middle, rest) <= self.epsilon
            low, high = (middle, high) if meets else (low, middle)
        return limit(rho=Fraction(low) * (1 - Fraction(1, 10**14)), leak=slack)

    def loss_of(self, spent: Amount) -> PrivacyLoss:
        return leaky(ZcdpLoss(round_up(spent.real("rho")), relation=self.relation), spent)

    def largest(self, left: Amount, delta: float) -> float:
        return gaussian_epsilon(2 * left.real("rho"), delta)

    def epsilon_of(self, spent: Amount, delta: float) -> float:
        leak = round_up(spent.real("leak"))
        return concentrated(round_up(spent.real("rho")), rest_down(delta, leak)) if leak < delta else math.inf

    def price(self, loss: PrivacyLoss) -> Amount:
        leak, inner = unleaked(self.checked(loss))
        if (square := gaussian_square(inner)) is not None:
            return cost(rho=square / 2, leak=leak)
        rho = inner.zcdp().upper
        if math.isinf(rho):
            raise unpayable("zCDP", "its Rényi divergences grow too fast, or it leaks")
        return cost(rho=rho, leak=leak)


def concentrated(rho: float, delta: float) -> float:
    """ε of ρ-zCDP at this δ: a Gaussian with μ² = 2ρ has the same Rényi curve, and no more of it is used."""
    return renyi_accountant(GaussianLoss(math.sqrt(2 * rho) * (1 + 1e-15)), delta).upper


def leaky(inner: PrivacyLoss, whole: Amount) -> PrivacyLoss:
    """The inner loss, and the leak of an amount."""
    leak = whole.real("leak")
    return LeakyLoss(inner, round_up(leak), relation=inner.relation) if leak else inner


def unleaked(loss: PrivacyLoss) -> tuple[Fraction, PrivacyLoss]:
    """(leak, rest) where the loss says that it is made so; otherwise the leak is in the rest."""
    if isinstance(loss, ApproxLoss):
        return Fraction(loss.failure), PureLoss(loss.eps, relation=loss.relation)
    if isinstance(loss, LeakyLoss):
        return Fraction(loss.failure), loss.inner
    return Fraction(0), loss


def gaussian_square(loss: PrivacyLoss) -> Fraction | None:
    """Σμ² exactly, if the loss is made of Gaussians."""
    if isinstance(loss, GaussianLoss):
        return Fraction(loss.mu) ** 2
    if isinstance(loss, Sum) and all(isinstance(term, GaussianLoss) for _, term in loss.terms):
        squares = (count * Fraction(term.mu) ** 2 for count, term in loss.terms if isinstance(term, GaussianLoss))
        return sum(squares, Fraction(0))
    return None


def gaussian_epsilon(square: Fraction, delta: float) -> float:
    """ε of a Gaussian with this μ², from below; 0 if there is none."""
    mu = math.sqrt(square) * (1 - 1e-15)
    return GaussianLoss(mu).epsilon(delta).lower if mu > 0 else 0.0


def mu_square(loss: PrivacyLoss, mu: float) -> Fraction:
    if math.isinf(mu):
        raise unpayable("Gaussian", "no Gaussian dominates it at the slack of this budget")
    return Fraction(mu) ** 2


def unpayable(what: str, why: str) -> InvalidParameter:
    return InvalidParameter(
        f"this loss has no {what} price.\n  found:  {why}\n"
        "  do:     give the budget more slack, or choose another mechanism or budget"
    )
