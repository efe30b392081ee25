"""A privacy loss: a pair of distributions (P, Q) that dominates a mechanism, and every view of it.

A mechanism is (ε, δ)-DP exactly when H_{e^ε}(P‖Q) ≤ δ for the pair, in both orders. Two decreasing curves say all there
is to say about a pair:  forward(ε) = H_{e^ε}(P‖Q)  and  backward(ε) = H_{e^ε}(Q‖P)  for ε ≥ 0, because
H_α(P‖Q) = α·H_{1/α}(Q‖P) + 1 − α. A loss class gives these two curves as enclosures; all views follow from them.

Theorem: tight dominating pairs exist, and they compose adaptively [Zhu, Dong & Wang 2022, Prop. 8 and Thm 10]
Theorem: a pair is a profile: any convex non-increasing H with H_0 = 1, H_α ≥ (1 − α)₊ has one [Zhu et al. 2022,
    Lemma 9]
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, Self, SupportsFloat, overload

from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.bound import Bound
from sfumato.loss.compose.transforms.base import Transform
from sfumato.loss.numeric import ULP, Enclosure, Floats, maximum
from sfumato.loss.views.interfaces import OverFitting, RandomVariable
from sfumato.loss.views.renyi_curve import RenyiCurve
from sfumato.sensitivity import Relation

TOLERANCE = 1e-5  # relative gap asked of composed answers, unless the caller says otherwise


class Outcomes(NamedTuple):
    """Losses, their probabilities under P, and how far a computed loss can be from the true one."""

    losses: Floats
    masses: Floats
    slip: float


@dataclass(frozen=True)
class PrivacyLoss(ABC):
    """The privacy loss of a mechanism about one person. Losses add up (`a + b`), repeat (`k * a`) and have views.

    P is the output on the data set with the person (add/remove) or with the one record (replace-one), Q without it or
    with the other. `remove` is the pair (P, Q), `add` the pair (Q, P); an answer is the worse of the two.
    """

    relation: Relation = field(default=Relation.AddRemove, kw_only=True)

    method: ClassVar[str] = "closed form"
    known: ClassVar[dict[str, type["PrivacyLoss"]]] = {}
    operations: ClassVar["Operations"]  # set once, by sfumato.loss

    def __init_subclass__(cls) -> None:
        PrivacyLoss.known[cls.__name__] = cls

    def __post_init__(self) -> None:
        if not isinstance(self.relation, Relation):
            raise InvalidParameter(
                f"relation must be sf.AddRemove or sf.ReplaceOne.\n  found:  {self.relation!r}\n"
                "  do:     leave it out for add/remove"
            )

    # ---- what a loss class must say -------------------------------------------------------------------------------

    @abstractmethod
    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """H_{e^ε}(P‖Q) at finite ε ≥ 0."""

    @abstractmethod
    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """H_{e^ε}(Q‖P) at finite ε ≥ 0."""

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        """The forward profile, sharp at least around the ε where it takes the value `delta`; `eps` guesses that ε."""
        return lambda t: self.forward(t, tolerance)

    def near_backward(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        """The backward profile, sharp at least around the ε where it takes the value `delta`."""
        return lambda t: self.backward(t, tolerance)

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """The least ε with H_{e^ε}(P‖Q) ≤ goal, for losses that have a shorter way than to search the profile."""
        return None

    def transform(self) -> Transform | None:
        """The loss on a vertical line of the complex plane, for losses that the contour engine can compose."""
        return None

    @abstractmethod
    def supremum(self) -> tuple[float, float]:
        """Largest finite loss of (P, Q) and of (Q, P): (sup L, sup −L), each ≥ 0; infinity if unbounded."""

    @abstractmethod
    def leak(self) -> tuple[float, float]:
        """Probability of certainty: P[L = ∞] and Q[L = −∞]; never below the truth."""

    @property
    def one_pair(self) -> bool:
        """Is this one pair, or a class of mechanisms of which the profile shows the worst at each ε?"""
        return True

    @property
    def sharp_ends(self) -> bool:
        """Are supremum() and leak() the truth (up to rounding), or only bounds from above?"""
        return True

    @property
    def attained(self) -> "PrivacyLoss":
        """A pair that some data sets attain, for the lower sides of sums: itself, unless it only bounds from above."""
        return self

    @abstractmethod
    def log_moment(self, s: float) -> Bound:
        """log E_P[e^{sL}; L < ∞] for s > −1: the Rényi curve is D_{s+1} = log_moment(s)/s."""

    @property
    @abstractmethod
    def reverse(self) -> "PrivacyLoss":
        """The pair read backwards: (Q, P)."""

    def mean(self) -> Bound:
        """E_P[L], the divergence D₁(P‖Q) of this direction."""
        return self.operations.mean(self)

    def group(self, size: int) -> "PrivacyLoss":
        """The loss of `size` people who act together."""
        return self.operations.group(self, size)

    def rho_ceiling(self) -> float:
        """A ρ for which the loss is known to be ρ-zCDP at once: ε²/2 (or ε, if that is less) for ε-DP."""
        eps = max(self.supremum()) if max(self.leak()) == 0 else math.inf
        return min(eps * eps / 2, eps) * (1 + 1e-15)

    def rho_beyond(self, order: float) -> float:
        """A ρ with D_a ≤ ρa for all orders a ≥ order: the largest loss over the order, or what holds at all orders."""
        return min(self.supremum()[0] / order * (1 + 2 * ULP), self.rho_ceiling())

    def gaussian_ceiling(self) -> float:
        """A μ whose Gaussian is known to dominate the loss without slack; infinity if nothing is known."""
        return math.inf

    def atoms(self) -> tuple[float, float] | None:
        """(step, offset) if the finite loss lives on the lattice offset + step·ℤ; None for other laws."""
        return None

    def outcomes(self) -> Outcomes | None:
        """The finite losses one by one with their probabilities under P, where these are few and known to 16 ulps."""
        return None

    def renyi_curve(self) -> RenyiCurve | None:
        """The Rényi curve, for losses about which nothing else is known: these add up as curves."""
        return None

    # ---- views ----------------------------------------------------------------------------------------------------

    def worst(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """The profile: the worse direction at each ε."""
        ahead = self.forward(eps, tolerance)
        return ahead if self.relation.one_way or self.reverse == self else maximum(ahead, self.backward(eps, tolerance))

    @overload
    def delta(self, epsilon: float, *, tolerance: float = TOLERANCE) -> Bound: ...
    @overload
    def delta(self, epsilon: Floats | Sequence[float], *, tolerance: float = TOLERANCE) -> Enclosure: ...

    def delta(self, epsilon: float | Floats | Sequence[float], *, tolerance: float = TOLERANCE) -> Bound | Enclosure:
        """δ(ε) = max of H_{e^ε} over both directions: the mechanism is (ε, δ)-DP and no better. Arrays are welcome.

        Theorem: (ε, δ)-DP is a bound on the hockey-stick divergence [Barthe & Olmedo 2013; Balle & Wang 2018, Thm 5]
        """
        if several(epsilon):
            return self.operations.profile(self, epsilon, tolerance)  # type: ignore[arg-type]
        return self.operations.delta(self, epsilon, tolerance)  # type: ignore[arg-type]

    def epsilon(self, delta: SupportsFloat, *, tolerance: float = TOLERANCE) -> Bound:
        """The least ε with δ(ε) ≤ delta."""
        return self.operations.epsilon(self, delta, tolerance)

    @overload
    def trade_off(self, alpha: float, *, tolerance: float = TOLERANCE) -> Bound: ...
    @overload
    def trade_off(self, alpha: Floats | Sequence[float], *, tolerance: float = TOLERANCE) -> Enclosure: ...

    def trade_off(self, alpha: float | Floats | Sequence[float], *, tolerance: float = TOLERANCE) -> Bound | Enclosure:
        """Least type II error of any test with type I error ≤ alpha, in the worse direction (convex hull of both).

        Type I: says "took part" of somebody who did not; type II: misses somebody who did.

        Theorem: profile and trade-off are convex conjugates, f(a) = sup_ε 1 − δ(ε) − e^ε a [Dong et al. 2022, Prop. 6]
        """
        if several(alpha):
            return self.operations.trade_off_curve(self, alpha, tolerance)  # type: ignore[arg-type]
        return self.operations.trade_off(self, alpha, tolerance)  # type: ignore[arg-type]

    def renyi(self, order: SupportsFloat) -> Bound:
        """Rényi divergence D_order of the worse direction; order 1 is KL, order ∞ the largest loss."""
        return self.operations.renyi(self, order)

    def kl(self) -> Bound:
        """Kullback–Leibler divergence E_P[L], worse direction."""
        return self.renyi(1.0)

    def chi_squared(self) -> Bound:
        """χ² divergence E_Q[(P/Q − 1)²] = e^{D₂} − 1, worse direction."""
        return self.operations.chi_squared(self)

    def hellinger(self) -> Bound:
        """Squared Hellinger distance ½∫(√P − √Q)² = 1 − E_P[e^{−L/2}]."""
        return self.operations.hellinger(self)

    def total_variation(self) -> Bound:
        """Total variation distance = δ(0): the best advantage of any guess."""
        return self.delta(0.0)

    def hockey_stick(self, alpha: SupportsFloat) -> Bound:
        """H_alpha = E_Q[(P/Q − alpha)₊] for any alpha ≥ 0, worse direction."""
        return self.operations.hockey_stick(self, alpha)

    def f_divergence(
        self,
        f: Callable[[float], float],
        *,
        growth: SupportsFloat = 2.0,
        at_zero: SupportsFloat | None = None,
        at_infinity: SupportsFloat = math.inf,
    ) -> Bound:
        """E_Q[f(P/Q)] for a convex f with f(1) = 0, worse direction; `loss.remove.f_divergence(f)` is D_f(P‖Q) alone.

        f(x)/x^growth must not rise where x is large, nor x·f(1/x)/x^growth. `at_zero` is f(0), where f cannot say it;
        `at_infinity` the limit of f(x)/x, if finite: what an outcome counts that only P, or only Q, can have.
        """
        return self.operations.f_divergence(self, f, growth, at_zero, at_infinity)

    @property
    def law(self) -> RandomVariable:
        """The privacy loss as a random variable: L = log P/Q under P. `loss.reverse.law` is the other direction."""
        return self.operations.law(self)

    def zcdp(self) -> Bound:
        """Least ρ with D_a ≤ ρ·a for all orders a > 1 (zero-concentrated DP)."""
        return self.operations.least_rho(self)

    def gdp(self, slack: SupportsFloat = 0.0, *, tolerance: float = 1e-6) -> Bound:
        """Least μ such that δ(ε) ≤ slack + (1 − slack)·δ of a Gaussian with that μ, for all ε: the ledger's price.

        `tolerance` is the relative gap asked for; ten times as much of losses that are composed on a lattice.
        """
        return self.operations.least_mu(self, slack, tolerance)

    def generalisation(self, n: int) -> OverFitting:
        """Bounds on over-fitting to n people that this loss implies: in expectation, with high probability, in nats."""
        return self.operations.generalisation(self, n)

    # ---- algebra --------------------------------------------------------------------------------------------------

    def __add__(self, other: "PrivacyLoss") -> "PrivacyLoss":
        return self.operations.add(self, other) if isinstance(other, PrivacyLoss) else NotImplemented

    def __radd__(self, other: object) -> "PrivacyLoss":
        return self if other == 0 and not isinstance(other, PrivacyLoss) else NotImplemented  # sum([...]) starts at 0

    def __mul__(self, times: object) -> "PrivacyLoss":
        return NotImplemented if isinstance(times, PrivacyLoss) else self.operations.total((times, self))

    __rmul__ = __mul__

    def then(self, *_: object) -> Self:
        """Post-processing is free: whatever is computed from the output costs nothing more.

        Theorem: post-processing cannot raise a divergence [Dwork & Roth 2014, Prop. 2.1]
        """
        return self

    @property
    def remove(self) -> "PrivacyLoss":
        """The direction (P, Q) alone: the person is in the first data set."""
        return self.operations.one_way(self, Relation.Remove)

    @property
    def add(self) -> "PrivacyLoss":
        """The direction (Q, P) alone: the person is in the second data set."""
        return self.operations.one_way(self, Relation.Add)

    # ---- descriptions and display ---------------------------------------------------------------------------------

    @property
    def description(self) -> dict[str, object]:
        """Class name and parameters as plain data; equal expressions have equal descriptions."""
        return self.operations.describe(self)

    def to_json(self) -> str:
        """The canonical JSON of this loss: one text per expression."""
        text: str | None = self.__dict__.get("_json")
        if text is None:
            text = self.operations.to_json(self)
            object.__setattr__(self, "_json", text)
        return text

    def __str__(self) -> str:
        return self.operations.name(self)

    def _repr_html_(self) -> str:
        return self.operations.html(self)


class Symmetric(PrivacyLoss):
    """A pair whose two directions are alike: H_α(P‖Q) = H_α(Q‖P) for all α."""

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """The forward profile: both directions are equal."""
        return self.forward(eps, tolerance)

    @property
    def reverse(self) -> "PrivacyLoss":
        """A symmetric pair is its own reverse."""
        return self


class Wrapped(PrivacyLoss):
    """A loss made from one other: it answers as sharply as that one does."""

    inner: PrivacyLoss

    @property
    def method(self) -> str:  # type: ignore[override]  # the method of the loss inside
        return self.inner.method

    @property
    def sharp_ends(self) -> bool:
        return self.inner.sharp_ends

    @property
    def one_pair(self) -> bool:
        return self.inner.one_pair


@dataclass(frozen=True)
class Operations:
    """The functions behind the methods of `PrivacyLoss`.

    They need concrete losses, so they are defined in modules that import this one. `sfumato.loss` sets them when it is
    imported, and Python imports it before any of its modules.
    """

    profile: Callable[[PrivacyLoss, Floats, float], Enclosure]
    delta: Callable[[PrivacyLoss, SupportsFloat, float], Bound]
    epsilon: Callable[[PrivacyLoss, SupportsFloat, float], Bound]
    trade_off: Callable[[PrivacyLoss, SupportsFloat, float], Bound]
    trade_off_curve: Callable[[PrivacyLoss, Floats, float], Enclosure]
    mean: Callable[[PrivacyLoss], Bound]
    renyi: Callable[[PrivacyLoss, SupportsFloat], Bound]
    chi_squared: Callable[[PrivacyLoss], Bound]
    hellinger: Callable[[PrivacyLoss], Bound]
    hockey_stick: Callable[[PrivacyLoss, SupportsFloat], Bound]
    f_divergence: Callable[..., Bound]
    law: Callable[[PrivacyLoss], RandomVariable]
    least_rho: Callable[[PrivacyLoss], Bound]
    least_mu: Callable[[PrivacyLoss, SupportsFloat, float], Bound]
    generalisation: Callable[[PrivacyLoss, object], OverFitting]
    add: Callable[[PrivacyLoss, PrivacyLoss], PrivacyLoss]
    total: Callable[..., PrivacyLoss]
    group: Callable[[PrivacyLoss, int], PrivacyLoss]
    one_way: Callable[[PrivacyLoss, Relation], PrivacyLoss]
    describe: Callable[[PrivacyLoss], dict[str, object]]
    to_json: Callable[[PrivacyLoss], str]
    name: Callable[[PrivacyLoss], str]
    html: Callable[[PrivacyLoss], str]


def several(values: object) -> bool:
    """Is this an array or a list, rather than one number?"""
    return isinstance(values, list | tuple) or bool(getattr(values, "ndim", 0))


def must_be_about(loss: PrivacyLoss, inner: PrivacyLoss, relation: Relation) -> None:
    """A loss built on another speaks of the same neighbours as its theorem, and so does the inner one."""
    if not isinstance(inner, PrivacyLoss):
        raise InvalidParameter(f"{type(loss).__name__} needs a loss inside, found {type(inner).__name__}")
    for found in (loss.relation, inner.relation):
        if found is not relation:
            raise MixedRelations(
                f"{type(loss).__name__} is about {relation.value}.\n  found:  a loss about {found.value}\n"
                f"  do:     build the inner loss with relation=sf.{relation.name}"
            )


def same_relation(losses: "tuple[PrivacyLoss, ...]") -> Relation:
    """The one relation that all the losses speak of, or MixedRelations."""
    found = {loss.relation for loss in losses}
    if len(found) > 1:
        names = " and ".join(sorted(relation.value for relation in found))
        raise MixedRelations(
            f"these losses speak of different neighbours: {names}.\n"
            "  a guarantee about one relation says nothing about the other\n"
            "  do:     give every loss the same relation=, or convert with sf.loss.replace_one(loss)"
        )
    return found.pop() if found else Relation.AddRemove


class Engine(Protocol):
    """Anything that can compute the forward profile of a composition."""

    @property
    def method(self) -> str: ...

    def forward(self, eps: Floats, tolerance: float = ...) -> Enclosure:
        """δ at every ε."""

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        """The profile, sharp at least around the ε where it is `delta`."""

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """The least ε with δ(ε) ≤ goal, if the engine has a shorter way than to search its profile."""
