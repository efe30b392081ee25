"""Which engine answers for a sum of losses: a closed form, the contour where every term has a transform, else the
lattice.

Gaussians merge by Σμ², equal randomized responses are binomial, losses known only by a Rényi curve add up as curves.
Where steps lose more than a lattice can hold, moments answer.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, Engine, PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.compose.binomial import Binomial
from sfumato.loss.compose.contour import Composition
from sfumato.loss.compose.contour_engine import ContourEngine
from sfumato.loss.compose.facts import Composite, facts
from sfumato.loss.compose.inner_table import replace_inner_sum
from sfumato.loss.compose.lattice import FAR, Lattice, together
from sfumato.loss.compose.lattice_plan import MOST_POINTS, common_step
from sfumato.loss.compose.moment_bounds import Moments, too_large, too_many
from sfumato.loss.compose.normal_limit import normal
from sfumato.loss.compose.transforms.base import Refused, Transform
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss, RandomizedResponseLoss, SignedLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.loss.kinds.renyi import RenyiLoss, ZcdpLoss
from sfumato.loss.kinds.wrappers import OneWay
from sfumato.loss.numeric import ULP, Enclosure, Floats
from sfumato.loss.views.renyi_curve import RenyiCurve

Terms = list[tuple[int, PrivacyLoss]]
LEAST, MOST = 1e-24, 1e12  # log-moments of order 1
NEARLY_ALL = 1 - 1e-9  # of the mass at +∞: too little is left for a lattice
MANY_COINS = 10**9  # from here on the roundings of M count, not only those of M − 1


@lru_cache(maxsize=64)
def engine(loss: Composite) -> Engine:
    """The engine for the forward direction of this sum."""
    terms = [(count, bare(term)) for count, term in loss.terms]
    leaky = any(isinstance(term, LeakyLoss) for _, term in terms)
    if leaky and common_step(tuple(term for _, term in terms)) is None:
        terms = [pair for count, term in terms for pair in open_leaks(count, term)]
    terms = [(count, term) for count, term in terms if not facts(term).reveals_nothing]
    for _, term in terms:
        if facts(term).leak[0] == 1 and facts(term).sharp_ends:  # a term that reveals everything decides alone
            return term
    if any(isinstance(term, GaussianLoss) for _, term in terms):
        terms = merge_gaussians(terms)
    if any(facts(term).renyi_curve is not None for _, term in terms):
        terms = merge_curves(terms)
    if not terms:
        return GaussianLoss(0.0)
    if len(terms) == 1 and terms[0][0] == 1:
        return terms[0][1]
    steps = tuple(terms)
    if any(facts(term).leak[0] > NEARLY_ALL for _, term in steps):
        return Plain(steps)
    if too_many(steps):
        other = contour(terms, loss) or Plain(steps)
        return normal(steps, other) or other
    if found := binomial(terms):
        return found
    return contour(terms, loss) or Plain(steps)


def bare(loss: PrivacyLoss) -> PrivacyLoss:
    """The pair itself, without the note that only one direction counts; (ξ, 0)-zCDP is ξ-DP."""
    if isinstance(loss, OneWay):
        return bare(loss.inner)
    return (loss.pure or loss) if isinstance(loss, ZcdpLoss) else loss


def open_leaks(times: int, loss: PrivacyLoss) -> Terms:
    """The parts of a leaky loss: its leak is a step of its own, since δ = leak + (1 − leak)·(inner δ)."""
    if not isinstance(loss, LeakyLoss):
        return [(times, loss)]
    inner = loss.inner.terms if isinstance(loss.inner, Composite) else ((1, loss.inner),)
    parts = [pair for count, term in inner for pair in open_leaks(times * count, bare(term))]
    return [*parts, (times, ApproxLoss(0.0, loss.failure, relation=loss.relation))]


def merge_gaussians(terms: Terms) -> Terms:
    """All Gaussians as one, μ = √Σkμ²."""
    mine = [(count, term) for count, term in terms if isinstance(term, GaussianLoss)]
    mu = math.sqrt(math.fsum(count * term.mu * term.mu for count, term in mine))
    within_reach("together these Gaussians have μ", mu)
    return [*((c, t) for c, t in terms if not isinstance(t, GaussianLoss)), (1, GaussianLoss(mu))]


def merge_curves(terms: Terms) -> Terms:
    """All losses known only by a Rényi curve as one, their curves added."""
    curves: list[RenyiCurve] = []
    rest: Terms = []
    for count, term in terms:
        curve = facts(term).renyi_curve
        if curve is None:
            rest.append((count, term))
        else:
            curves.append(curve.times(count))
    total = curves[0]
    for curve in curves[1:]:
        total = total + curve
    within_reach("together these Rényi curves rise to a divergence", max(total.divergences))
    return [*rest, (1, RenyiLoss(total.orders, total.divergences))]


def within_reach(what: str, size: float) -> None:
    """Refuse compositions larger than any parameter may be."""
    if size > checks.MOST:
        raise InvalidParameter(
            f"this composition is out of range: {what} = {size:.3g}.\n"
            f"  found:  more than {checks.MOST:g}, the largest number that is supported\n"
            "  do:     compose fewer of them: no privacy is left long before"
        )


def binomial(terms: Terms) -> Binomial | None:
    """The closed form for terms that are all the same two-sided coin, apart from what they leak."""
    for _, term in terms:
        if not (isinstance(term, PureLoss | ApproxLoss) or (isinstance(term, RandomizedResponseLoss) and term.k == 2)):
            return None
    if len({term.supremum()[0] for _, term in terms}) > 1:
        return None
    leak = together([(count, term.leak()[0]) for count, term in terms])
    return Binomial(terms[0][1].supremum()[0], sum(count for count, _ in terms), leak)


def contour(terms: Terms, loss: Composite) -> ContourEngine | None:
    """The contour engine, if every term has a transform and they do not share a lattice, where sums are exact."""
    parts = group_transforms(terms)
    if parts is None or not moderate(parts):
        return None
    if all(facts(term).atoms is not None for _, term in terms):
        step = common_step(tuple(term for _, term in terms))
        if step is not None and fits(parts, step) and not too_many(tuple(terms)):
            return None
    leak = facts(loss).leak[0]
    composition = Composition(parts, leak * (1 - 16 * ULP) if facts(loss).sharp_ends else 0.0, leak)
    otherwise = Plain(tuple(terms))
    return ContourEngine(composition, facts(loss).supremum[0], otherwise, lambda: loss.log_moment(-0.5).upper)


def fits(parts: Sequence[Transform], step: float) -> bool:
    """Does a window of forty standard deviations of the sum hold few enough points of a lattice?"""
    near = sum((part.log_moments(np.array([1e-3, 2e-3])) for part in parts), start=np.zeros(2))
    variance = max(float(near[1] - 2 * near[0]) / 1e-6, 0.0)  # K(2s) − 2K(s) ≈ s²K″
    return 40 * math.sqrt(variance) <= MOST_POINTS * step


def moderate(parts: Sequence[Transform], least: float = LEAST) -> bool:
    """Is the sum neither too small nor too large for a contour in floats?"""
    try:
        return least < sum(float(part.log_moments(np.ones(1))[0]) for part in parts) < MOST
    except Refused:
        return False


@dataclass(frozen=True, eq=False)
class Plain:
    """The lattice, or moments where no lattice can hold the sum; chosen at first use, since choosing takes time."""

    steps: tuple[tuple[int, PrivacyLoss], ...]

    @cached_property
    def engine(self) -> Lattice | Moments:
        if too_many(self.steps) or any(facts(term).leak[0] > NEARLY_ALL for _, term in self.steps):
            return Moments(self.steps)
        steps = tuple((count, replace_inner_sum(term, count)) for count, term in self.steps)
        return Moments(self.steps) if too_large(steps) else Lattice(steps)

    @property
    def method(self) -> str:
        return self.engine.method

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.within(eps, lambda t: self.engine.forward(t, tolerance))

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        near = self.engine.near(delta, tolerance, eps)
        return lambda t: self.within(t, near)

    def within(self, eps: Floats, curve: Callable[[Floats], Enclosure]) -> Enclosure:
        """The lattice answers up to FAR only; beyond, the profile is at most what it is there."""
        far = FAR if isinstance(self.engine, Lattice) else math.inf
        found = curve(np.minimum(eps, far))
        return Enclosure(np.where(eps > far, 0.0, found.lower), found.upper)

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """No shorter way than to search the profile."""
        return None


def group_transforms(terms: Iterable[tuple[int, PrivacyLoss]]) -> list[Transform] | None:
    """The terms as few transforms, or None if one has none."""
    kinds: dict[type[Transform], list[Transform]] = {}
    for count, term in terms:
        coin = term.bounded_transform() if count > MANY_COINS and isinstance(term, SignedLoss) else None
        found = coin or facts(term).transform
        if found is None:
            return None
        kinds.setdefault(type(found), []).append(found.times(count))
    return [part for kind, found in kinds.items() for part in (kind.together(found) if len(found) > 1 else found)]
