"""Several people at once: chains of data sets P₀, P₁, …, P_k, each a neighbour of the next.

If every event has P₁(A) ≤ r₁(P₀(A)) and P₂(A) ≤ r₂(P₁(A)), then P₂(A) ≤ r₂(r₁(P₀(A))). In terms of profiles this is the
best split of ε between the two steps:

    H₁₂(e^ε) = min over all real t of  H₂(e^t) + e^t·H₁(e^{ε−t}).

Proof: r₂(y) = min_b H₂(b) + b·y, so sup_x r₂(r₁(x)) − a·x = sup_x min_b H₂(b) + b·r₁(x) − a·x. This is concave in x and
convex in b, and x lives on [0, 1]: sup and min change places (Sion 1958), and sup_x b·r₁(x) − a·x = b·H₁(a/b). ∎

Any t gives an upper bound. For lower bounds a polygon below each profile takes its place: then the right side is a
convex polygon in e^t, least where the tails of the two steps meet: P-tail of the first = Q-tail of the second.

Theorem: k people cost the k-fold composition of r = 1 − f, f the trade-off curve [Dong, Roth & Su 2022, Thm 2.14]
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sfumato import checks
from sfumato.errors import MixedRelations
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.discrete_gaussian import DiscreteGaussianLoss
from sfumato.loss.discrete_laplace import DiscreteLaplaceLoss
from sfumato.loss.gaussian import GaussianLoss
from sfumato.loss.laplace import LaplaceLoss
from sfumato.loss.numeric import ULP, Enclosure, Floats, floats, maximum
from sfumato.loss.signed import ApproxLoss, PureLoss
from sfumato.loss.sums import Sum, nothing, total
from sfumato.loss.tabulated import (
    CAP,
    MOST,
    Curve,
    Side,
    TabulatedLoss,
    both_sides,
    convex,
    first_nodes,
    monotone,
    polygon,
    reach,
    sampled,
    seen,
    table,
)
from sfumato.loss.tabulated import FLOOR as LAST_FLOOR
from sfumato.loss.wrappers import Either, either
from sfumato.sensitivity import Relation

FLOOR = 1e-290  # every step multiplies δ by e^ε, so profiles are followed far below any δ of interest
NODES = 6000  # of the tables on the way
SLACK = 1e-13  # lower bounds: what rounding in the order of nearly equal tails may cost, relatively
STEEP = 1e4  # stands for an infinite slope, and −STEEP for slope 0


class Steps(NamedTuple):
    """Two convex polygons around the profiles of a pair: points (e^t, d) as in `tabulated.seen`."""

    upper: tuple[Floats, Floats]
    lower: tuple[Floats, Floats]

    @property
    def reverse(self) -> "Steps":
        """(Q, P)."""
        (t, d), (s, e) = self
        return Steps((-t[::-1], d[::-1]), (-s[::-1], e[::-1]))


class Chain(NamedTuple):
    """Both profiles of one step after another, each between two curves; without `back` both are the same."""

    ahead: Curve
    back: Curve | None
    end: float  # of the upper polygons
    kinks: Callable[[float], Floats]

    def sampled(self, floor: float, most: int) -> tuple[Floats, Enclosure, Enclosure]:
        """Values at nodes where the upper curves are straight enough between them."""
        curves = [curve for curve in (self.ahead, self.back) if curve]
        end = min(max(reach(curve, floor) for curve in curves), self.end * (1 + 8 * ULP), CAP)
        first = np.union1d(first_nodes(self.ahead, self.back, end), self.kinks(end))
        nodes, _, _ = sampled(above(self.ahead), self.back and above(self.back), first, most)
        return nodes, self.ahead(nodes), (self.back or self.ahead)(nodes)


def group(loss: PrivacyLoss, size: int) -> PrivacyLoss:
    """The loss of `size` people who act together: they leave, or read backwards join, one after the other."""
    size = checks.whole("size", size, 0)
    if size < 2:
        return loss if size else nothing(loss.relation)
    one, alike, atoms = one_step(loss), loss.reverse == loss, loss.atoms()

    def chain(count: int) -> Chain:
        """Two halves, or one person after the others: as many chains as twice the binary digits of the count."""
        first = people(count - 1 if count % 2 else count // 2)
        second = one if count % 2 else first
        ahead, back = best_split(first, second), None if alike else best_split(second.reverse, first.reverse)
        return Chain(ahead, back, float(first.upper[0][-1] + second.upper[0][-1]), lattice(atoms, count))

    def people(count: int) -> Steps:
        return one if count == 1 else steps(*chain(count).sampled(FLOOR, NODES))

    return table(*chain(size).sampled(LAST_FLOOR, MOST), loss.relation)


def replace_one(loss: PrivacyLoss) -> PrivacyLoss:
    """An add/remove loss as a loss about replacing one person: one leaves and another joins, in the worse order.

    Leaving first leads through the smaller data set, joining first through the larger; each chain reads the same
    backwards, so the answer is symmetric.

    Theorem: replacing is removing and adding: the composition of both r [Dong, Roth & Su 2022, Thm 2.14]
    """
    if loss.relation is not Relation.AddRemove:
        raise MixedRelations(
            f"only add/remove losses can become replace-one losses.\n  found:  one about {loss.relation.value}\n"
            "  do:     convert the add/remove loss that it came from, or use it as it is"
        )
    replaced = Relation.ReplaceOne
    match loss:
        case Sum(terms=terms):
            return total(*((count, replace_one(term)) for count, term in terms), relation=replaced)
        case Either(options=options):
            return either(*map(replace_one, options))
        case GaussianLoss(mu=mu):
            return GaussianLoss(2 * mu, relation=replaced)
        case LaplaceLoss(eps=eps):
            return LaplaceLoss(2 * eps, relation=replaced)
        case PureLoss(eps=eps):
            return PureLoss(2 * eps, relation=replaced)
        case ApproxLoss():
            two = loss.group(2)
            return ApproxLoss(two.eps, two.failure, relation=replaced)
        case DiscreteLaplaceLoss(scale=scale, sensitivity=sensitivity):
            return DiscreteLaplaceLoss(scale, 2 * sensitivity, relation=replaced)
        case DiscreteGaussianLoss(sigma=sigma, sensitivity=sensitivity):
            return DiscreteGaussianLoss(sigma, 2 * sensitivity, relation=replaced)
        case _:
            return two_orders(loss)


def two_orders(loss: PrivacyLoss) -> TabulatedLoss:
    """The worse of leaving first and joining first, at every ε."""
    one, atoms = one_step(loss), loss.atoms()
    first, second = best_split(one.reverse, one), best_split(one, one.reverse)

    def worse(eps: Floats) -> Enclosure:
        return maximum(first(eps), second(eps))

    chain = Chain(worse, None, 2 * float(one.upper[0][-1]), lattice(atoms and (atoms[0], 0.0), 1))
    return table(*chain.sampled(LAST_FLOOR, MOST), Relation.ReplaceOne)


# ---- one step as polygons -----------------------------------------------------------------------------------------


def one_step(loss: PrivacyLoss) -> Steps:
    """The loss itself, followed down to the floor."""

    def ahead(eps: Floats) -> Enclosure:
        return loss.forward(eps)

    def back(eps: Floats) -> Enclosure:
        return loss.backward(eps)

    tops = zip((ahead, back), loss.supremum(), strict=True)
    end = max(min(top, CAP) if math.isfinite(top) else reach(curve, FLOOR) for curve, top in tops) or 1.0
    first = np.union1d(first_nodes(ahead, back, end), lattice(loss.atoms(), 1)(end))
    nodes, one, other = sampled(ahead, None if loss.reverse == loss else back, first, NODES)
    return polygons(nodes, monotone(one), monotone(other), monotone(one), monotone(other))


def lattice(atoms: tuple[float, float] | None, count: int) -> Callable[[float], Floats]:
    """Where the profiles of `count` people bend if one person's losses lie on a lattice, up to some end."""

    def bends(end: float) -> Floats:
        if atoms is None or end / atoms[0] > 500:
            return np.zeros(0)
        step, offset = atoms[0], count * atoms[1]
        return np.concatenate([np.arange(start % step, end, step) for start in (offset, -offset)])

    return bends


def above(curve: Curve) -> Curve:
    """The upper side alone, as if it were exact."""

    def exact(eps: Floats) -> Enclosure:
        high = curve(eps).upper
        return Enclosure(high * (1 - SLACK), high)

    return exact


def steps(nodes: Floats, ahead: Enclosure, back: Enclosure) -> Steps:
    """Polygons from a chain's values: each side is a convex curve of its own, known up to rounding.

    Treating them as bounds on one unknown curve would double the gap at every step.
    """
    first, second = monotone(ahead), monotone(back)
    lower = (Enclosure(side.lower * (1 - SLACK), side.lower) for side in (first, second))
    return polygons(nodes, first, second, *lower)


def polygons(nodes: Floats, ahead: Enclosure, back: Enclosure, low_ahead: Enclosure, low_back: Enclosure) -> Steps:
    """Chords above `ahead` and `back`, and below the convex curves within `low_ahead` and `low_back`."""
    t = np.concatenate([-nodes[:0:-1], nodes])
    upper = np.concatenate([back.upper[:0:-1], [min(ahead.upper[0], back.upper[0])], ahead.upper[1:]])
    (s, low), (other, back_low) = map(valleys, both_sides(nodes, low_ahead, low_back))
    lower = np.concatenate([back_low[:0:-1], [max(low[0], back_low[0])], low[1:]])
    s = np.concatenate([-other[:0:-1], s])
    return Steps((t, convex(t, upper)), (s, convex(s, lower)))


def valleys(side: Side) -> tuple[Floats, Floats]:
    """Nodes, the points where the continued chords meet inside cells, and where the last one reaches 0.

    A chord from a node to a valley lies below the line it belongs to, so the polygon lies below the profile.
    """
    nodes, low, i = side.nodes, side.values.lower, np.arange(len(side.nodes) - 1)
    fall, rise, width = side.fall[:-1], side.rise[1:], np.diff(nodes)
    with np.errstate(all="ignore"):
        place = np.log((low[:-1] - low[1:] + fall - rise) / (fall - rise * np.exp(-width)))
    eps = nodes[:-1] + np.clip(np.nan_to_num(place, nan=0.0, posinf=0.0, neginf=0.0), 0.0, width)
    inside = (side.lines(nodes[:-1], i)[1] < low[:-1]) & (side.lines(nodes[1:], i)[0] < low[1:])
    inside &= (eps > nodes[:-1]) & (eps < nodes[1:])
    last = min(math.log1p(low[-1] / max(side.fall[-1], 1e-300)), 100.0)
    where = np.concatenate([nodes, eps[inside], [nodes[-1] + last]])
    value = np.concatenate([low, np.maximum(np.minimum(*side.lines(eps, i)), 0.0)[inside], [0.0]])
    value[len(nodes) - 1] *= last > 1e-12
    order = np.argsort(where, kind="stable")[: None if last > 1e-12 else -1]
    return where[order], value[order]


# ---- one step after another -----------------------------------------------------------------------------------------


def best_split(first: Steps, second: Steps) -> Curve:
    """min over t of H₂(e^t) + e^t·H₁(e^{ε−t}), between the polygons."""
    most, least = splits(first.upper, second.upper), splits(first.lower, second.lower)

    def curve(eps: Floats) -> Enclosure:
        return Enclosure(np.minimum(least(eps) * (1 - SLACK), 1.0), np.minimum(most(eps) * (1 + 32 * ULP), 1.0))

    return curve


def splits(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> Callable[[Floats], Floats]:
    """The same for one polygon each. Corners of both, in the order of their tails, are the corners of the composition;
    from one to the next the slopes of both multiply. The corner where the product passes e^ε is the best split.
    """
    inner, outer = tails(*first)[1], tails(*second)[0]
    order = np.argsort(np.concatenate([inner, outer]), kind="stable")
    i = np.concatenate([[0], np.cumsum(order < len(inner))])
    j = np.concatenate([[0], np.cumsum(order >= len(inner))])
    slopes = [np.concatenate([[STEEP], t[::-1], [-STEEP]]) for t, _ in (first, second)]
    one, two = slopes[0][i], slopes[1][j]

    def value(eps: Floats, t: Floats) -> Floats:
        t = np.clip(t, -CAP, CAP + 1)
        here, rest = polygon(*second, t), polygon(*first, eps - t)
        return floats(seen(t, here) + np.exp(t) * seen(eps - t, rest))

    def least(eps: Floats) -> Floats:
        k = np.searchsorted(-(one + two), -eps)
        near = [np.clip(k + step, 0, len(one) - 1) for step in (-2, -1, 0, 1)]  # nearly equal tails may be out of order
        return floats(np.min([value(eps, t) for m in near for t in (two[m], eps - one[m])], axis=0))

    return least


def tails(t: Floats, d: Floats) -> tuple[Floats, Floats]:
    """Q-tail and P-tail at the corners of the trade-off curve, from both ends of the loss inwards, as log x/(1 − x).

    Between two nodes H = r − e^t·x. Backward profiles give 1 − x and 1 − r: each tail is known where it is small.
    """
    ahead = t[:-1] >= 0
    low, high = np.where(ahead, t[:-1], -t[1:]), np.where(ahead, t[1:], -t[:-1])
    more, less = np.where(ahead, d[:-1], d[1:]), np.where(ahead, d[1:], d[:-1])
    drop = np.maximum(more - less, 0.0) / np.expm1(high - low)
    x, r = logit(drop * np.exp(-low)), logit(more + drop)
    q, p = np.where(ahead, x, -r), np.where(ahead, r, -x)
    q = np.concatenate([[-np.inf], q[::-1], -logit(d[:1])])
    p = np.concatenate([logit(d[-1:]), p[::-1], [np.inf]])
    return np.maximum.accumulate(q), np.maximum.accumulate(p)


def logit(u: Floats) -> Floats:
    """log u/(1 − u), infinite at 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.log(np.minimum(u, 1.0)) - np.log1p(-np.minimum(u, 1.0))
