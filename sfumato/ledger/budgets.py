"""Budgets fixed in advance, and the price of a loss under each of them.

Theorem: under each of these budgets the whole transcript of a fully adaptive analyst, who chooses questions and prices
    in the light of all answers, is dominated by `loss()` [docs/theorems/ledger.md]
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import ClassVar

from sfumato import checks
from sfumato.errors import InvalidParameter, LedgerDamaged
from sfumato.ledger.amounts import UNITS, Amount, cost, limit
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import Sum, total
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.loss.kinds.renyi import ZcdpLoss
from sfumato.loss.views.calibrate import calibrate
from sfumato.loss.views.renyi_accountant import renyi_accountant
from sfumato.rounding import rest_down, round_down, round_up, sqrt_up
from sfumato.sensitivity import AddRemove, Relation

SHARP = 1e-4  # relative gap of the price of a sum: a smaller gap costs more time than it saves budget
SMALL = Fraction(1, 10_000)  # the slack of one charge, if it needs one, as a part of the budget's leak


@dataclass(frozen=True)
class Promise(ABC):
    """(ε, δ) for everything that is ever answered, and the counters that enforce it.

    `slack` is the part of δ that charges may use up as leaks; a tenth of δ by default.
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
            raise InvalidParameter(
                "the neighbour relation of a budget is sf.AddRemove or sf.ReplaceOne.\n  found:  another relation\n"
                "  do:     give one of these two as relation"
            )
        object.__setattr__(self, "amount", self.limits())

    @abstractmethod
    def limits(self) -> Amount:
        """The most that may be spent, rounded down."""

    @abstractmethod
    def price(self, loss: PrivacyLoss) -> Amount:
        """The price of a loss, rounded up: a function of its description and of this budget alone."""

    @abstractmethod
    def loss_of(self, spent: Amount) -> PrivacyLoss:
        """The loss that dominates every transcript with this limit."""

    @abstractmethod
    def largest_epsilon(self, left: Amount, delta: float) -> float:
        """The largest ε at this δ of one answer that `left` covers, with the noise that this budget is made for.

        Rounded down, so that it does fit.
        """

    def prices(self, loss: PrivacyLoss) -> tuple[Amount, ...]:
        """The amounts that may be charged, in order of preference. They are fixed before the answer is known."""
        return (self.price(loss),)

    def epsilon_of(self, spent: Amount, delta: float) -> float:
        """An upper bound on ε at this δ for every transcript with this limit."""
        return self.loss_of(spent).epsilon(delta).upper

    def loss(self) -> PrivacyLoss:
        """The loss that dominates everything that is ever answered."""
        return self.loss_of(self.amount)

    def check_loss(self, loss: PrivacyLoss) -> PrivacyLoss:
        """Return the loss. Raises if it is not a privacy loss, or is about another neighbour relation."""
        if not isinstance(loss, PrivacyLoss):
            raise not_a_loss(loss)
        if loss.relation is not self.relation:
            raise InvalidParameter(
                f"loss and budget have different neighbour relations.\n  found:  {loss.relation.value} and "
                f"{self.relation.value}\n  do:     convert the loss, or open a ledger about {loss.relation.value}"
            )
        return loss

    @property
    def small_slack(self) -> float:
        """The slack of a charge that needs one: a whole number of units."""
        return float(Fraction((self.amount.leak * SMALL.numerator) // SMALL.denominator, UNITS["leak"]))


def not_a_loss(found: object) -> InvalidParameter:
    return InvalidParameter(
        f"only a privacy loss can be charged.\n  found:  a {type(found).__name__}\n"
        "  do:     give mechanism.loss(…), or a sum of them"
    )


@dataclass(frozen=True)
class Budget(Promise):
    """Gaussian: Σμ² ≤ B² and Σδ ≤ Δ, with Δ + (1−Δ)·δ_{G_B}(ε) ≤ δ. The ledger to start with.

    With a pure share e, losses of pure ε are charged to Σε ≤ e until that is used up, and B is what e leaves: all
    answers together are dominated by RR(e) ⊗ G_B ⊗ leak(Δ).

    Theorem: Σμᵢ² ≤ B² at every moment gives B-GDP, for adaptively chosen μᵢ [Smith & Thakurta 2022; Koskela et al.
        2023; docs/theorems/ledger.md]
    """

    pure: float = 0.0

    def limits(self) -> Amount:
        e, slack = checks.non_negative("pure", self.pure), self.slack or 0.0
        if e >= self.epsilon or not slack < self.delta:
            raise InvalidParameter(
                f"nothing is left for Gaussian noise.\n  found:  epsilon = {self.epsilon:g} with a pure share of"
                f" {e:g}, delta = {self.delta:g} with slack {slack:g}\n  do:     make the share less than epsilon, the"
                " slack less than a positive delta; or use a PureBudget"
            )
        aside = limit(pure=e, leak=slack)
        sharp = 1e-13 if e == 0 else 1e-6
        b = calibrate(lambda b: self.dominating(b, aside), epsilon=self.epsilon, delta=self.delta, tolerance=sharp)
        return aside + limit(gauss=Fraction(b.lower) ** 2)

    def dominating(self, b: float, aside: Amount) -> PrivacyLoss:
        """RR(e) ⊗ G_b ⊗ leak(Δ), with e and Δ from `aside`."""
        inner: PrivacyLoss = GaussianLoss(b, relation=self.relation)
        if aside.pure:
            inner = total((1, inner), (1, PureLoss(round_up(aside.real("pure")), relation=self.relation)))
        return with_leak(inner, aside)

    def loss_of(self, spent: Amount) -> PrivacyLoss:
        return self.dominating(sqrt_up(spent.real("gauss")), spent)

    def largest_epsilon(self, left: Amount, delta: float) -> float:
        return gaussian_epsilon(left.real("gauss"), delta)

    def prices(self, loss: PrivacyLoss) -> tuple[Amount, ...]:
        top = max(self.check_loss(loss).supremum())
        share = (cost(pure=top, leak=max(loss.leak())),) if self.amount.pure and math.isfinite(top) else ()
        return (*share, self.price(loss))

    def price(self, loss: PrivacyLoss) -> Amount:
        """Fix the slack first, then take the least certified μ. Gaussians cost μ² exactly.

        The slack is the loss's own leak. `small_slack` is added for losses without a largest value, and where it saves
        a larger share of B² than it takes of Δ. This rule is fixed in advance; it keeps small questions from using up
        the slack.
        """
        leak, inner = split_leak(self.check_loss(loss))
        if (square := gaussian_square(inner)) is not None:
            return cost(gauss=square, leak=leak)
        own = max(loss.leak())
        slack = own + self.small_slack  # a double: exactly what is charged
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
        return with_leak(PureLoss(round_up(spent.real("pure")), relation=self.relation), spent)

    def largest_epsilon(self, left: Amount, delta: float) -> float:
        return round_down(left.real("pure"))

    def price(self, loss: PrivacyLoss) -> Amount:
        self.check_loss(loss)
        top, leak = max(loss.supremum()), max(loss.leak())
        if math.isfinite(top):
            return cost(pure=top, leak=leak)
        eased = leak + self.small_slack
        eps = loss.epsilon(eased).upper if self.small_slack > 0 and eased < 1 else math.inf
        if math.isinf(eps):
            raise no_price("pure ε", "the loss has no largest value, and this budget has no slack for it")
        return cost(pure=eps, leak=eased)


@dataclass(frozen=True)
class ZcdpBudget(Promise):
    """Σρ ≤ ρ and Σδ ≤ Δ, with ρ the largest that gives (ε, δ).

    Theorem: zCDP adds up, for adaptively chosen mechanisms too [Bun & Steinke 2016, Lemma 1.7; Feldman & Zrnic 2021;
        docs/theorems/ledger.md]
    """

    def limits(self) -> Amount:
        slack = self.slack or 0.0
        if not slack < self.delta:
            raise InvalidParameter(
                "zCDP gives (ε, δ) for positive δ only.\n"
                f"  found:  delta = {self.delta:g} with slack {slack:g}\n  do:     give a delta above the slack"
            )
        rest = (self.delta - slack) / (1 - slack) * (1 - 1e-4)  # margin: the tabulated curve of `loss()` meets it too
        low, high = 0.0, self.epsilon  # ρ ≤ ε: the divergence of order 1 is at most ε
        for _ in range(60):
            middle = (low + high) / 2
            meets = zcdp_epsilon(middle, rest) <= self.epsilon
            low, high = (middle, high) if meets else (low, middle)
        return limit(rho=Fraction(low) * (1 - Fraction(1, 10**14)), leak=slack)

    def loss_of(self, spent: Amount) -> PrivacyLoss:
        return with_leak(ZcdpLoss(round_up(spent.real("rho")), relation=self.relation), spent)

    def largest_epsilon(self, left: Amount, delta: float) -> float:
        return gaussian_epsilon(2 * left.real("rho"), delta)

    def epsilon_of(self, spent: Amount, delta: float) -> float:
        leak = round_up(spent.real("leak"))
        return zcdp_epsilon(round_up(spent.real("rho")), rest_down(delta, leak)) if leak < delta else math.inf

    def price(self, loss: PrivacyLoss) -> Amount:
        leak, inner = split_leak(self.check_loss(loss))
        if (square := gaussian_square(inner)) is not None:
            return cost(rho=square / 2, leak=leak)
        rho = inner.zcdp().upper
        if math.isinf(rho):
            raise no_price("zCDP", "its Rényi divergences grow too fast, or it leaks")
        return cost(rho=rho, leak=leak)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """ε of ρ-zCDP at this δ. A Gaussian with μ² = 2ρ has the same Rényi curve, and only that curve is used."""
    return renyi_accountant(GaussianLoss(math.sqrt(2 * rho) * (1 + 1e-15)), delta).upper


def with_leak(inner: PrivacyLoss, spent: Amount) -> PrivacyLoss:
    """The inner loss with the leak of an amount."""
    leak = spent.real("leak")
    return LeakyLoss(inner, round_up(leak), relation=inner.relation) if leak else inner


def split_leak(loss: PrivacyLoss) -> tuple[Fraction, PrivacyLoss]:
    """(leak, rest) of a loss that is built from a leak and a rest; (0, loss) for any other."""
    if isinstance(loss, ApproxLoss):
        return Fraction(loss.failure), PureLoss(loss.eps, relation=loss.relation)
    if isinstance(loss, LeakyLoss):
        return Fraction(loss.failure), loss.inner
    return Fraction(0), loss


def gaussian_square(loss: PrivacyLoss) -> Fraction | None:
    """Σμ² exactly, if the loss is a sum of Gaussians."""
    if isinstance(loss, GaussianLoss):
        return Fraction(loss.mu) ** 2
    if isinstance(loss, Sum) and all(isinstance(term, GaussianLoss) for _, term in loss.terms):
        squares = (count * Fraction(term.mu) ** 2 for count, term in loss.terms if isinstance(term, GaussianLoss))
        return sum(squares, Fraction(0))
    return None


def gaussian_epsilon(square: Fraction, delta: float) -> float:
    """A lower bound on ε of a Gaussian with this μ²; 0 for μ = 0."""
    mu = math.sqrt(square) * (1 - 1e-15)
    return GaussianLoss(mu).epsilon(delta).lower if mu > 0 else 0.0


def mu_square(loss: PrivacyLoss, mu: float) -> Fraction:
    if math.isinf(mu):
        raise no_price("Gaussian", "no Gaussian dominates it at the slack of this budget")
    return Fraction(mu) ** 2


def no_price(what: str, why: str) -> InvalidParameter:
    return InvalidParameter(
        f"this loss has no {what} price.\n  found:  {why}\n"
        "  do:     give the budget more slack, or choose another mechanism or budget"
    )


def describe_budget(promise: Promise) -> dict[str, object]:
    """A budget as plain data, for the first line of a ledger and for renewals."""
    values = {f.name: getattr(promise, f.name) for f in fields(promise) if f.init}
    return {"promise": type(promise).__name__, **values, "relation": promise.relation.value}


def budget_from_description(data: object) -> Promise:
    """The budget that `describe_budget` has described."""
    if not isinstance(data, dict) or data.get("promise") not in Promise.known:
        raise LedgerDamaged(
            "the first line of this ledger names a budget that this version does not know.\n"
            "  do:     use the version of sfumato that made the ledger"
        )
    values = {**data, "relation": Relation(data["relation"])}
    return Promise.known[values.pop("promise")](**values)
