"""Several people at once: chains of data sets P₀, P₁, …, P_k, each a neighbour of the next.

Let r(x) = 1 − f(x), f the trade-off curve, be the largest P-probability of an event with Q-probability x: concave and
rising. If P₁(A) ≤ r₁(P₀(A)) and P₂(A) ≤ r₂(P₁(A)) for all events, then P₂(A) ≤ r₂(r₁(P₀(A))): steps compose.

The curve is held between two polygons (polygons.py), which compose to polygons.

Under Poisson sampling more is known than the sampled pair says: the number of people in the batch is binomial, and so
many are what the inner loss is asked about. Their curve is r = Σ w_j r_j, r_j that of j people, r_0(x) = x. Chains of
the sampled pair compose to more: r₁((1−q)x + q·r₁(x)) ≥ (1−q)r₁(x) + q·r₁(r₁(x)), as r₁ is concave.

Theorem: k people cost the k-fold composition of r = 1 − f [Dong, Roth & Su 2022, Thm 2.14]
Theorem: sampled, they cost the binomial mean of r₀, …, r_k [Schuchardt et al. 2024; proof in sampled_group.py]
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.errors import MixedRelations
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import Sum, nothing, total
from sfumato.loss.compose.transforms.sampled_gaussian import binomial_weights
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss
from sfumato.loss.kinds.discrete_gaussian import DiscreteGaussianLoss
from sfumato.loss.kinds.discrete_laplace import DiscreteLaplaceLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.loss.kinds.polygons import FLOOR, NODES, Polygon, Sign, Steps, above, mean_of_curves, round_corners
from sfumato.loss.kinds.sampled_group import MOST_PEOPLE, SampledGaussianGroupLoss
from sfumato.loss.kinds.selected import SelectedLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.loss.kinds.tabulated import MOST, TabulatedLoss, choose_nodes, first_nodes, profile_end, table
from sfumato.loss.kinds.wrappers import Either, either
from sfumato.loss.numeric import ULP, Enclosure, Floats, maximum
from sfumato.loss.views.convex_bounds import CAP, Side, both_sides, convex, monotone, unfold
from sfumato.loss.views.divergences import Curve
from sfumato.progress import with_progress
from sfumato.sensitivity import Relation

NEAR = 1e-7  # least distance of nodes, relative to the last
MOST_CURVES = 10  # people under sampling whose curves are averaged: more are a chain of sampled pairs
Bends = Callable[[float], Floats]


def group(loss: PrivacyLoss, size: int) -> PrivacyLoss:
    """The loss of `size` people who act together: they leave, or read backwards join, one after the other."""
    size = checks.whole("size", size, 0)
    if size < 2:
        return loss if size else nothing(loss.relation)
    if isinstance(loss, PoissonSampledLoss) and (sampled := sampled_people(loss, size)) is not None:
        return sampled
    if isinstance(loss, SampledGaussianGroupLoss) and loss.size * size <= MOST_PEOPLE:
        return SampledGaussianGroupLoss(loss.mu, loss.rate, loss.size * size)
    one, alike = one_step(loss), loss.reverse == loss

    def people(count: int) -> Steps:
        """Two halves, or one person after the others: at most two compositions for each binary digit of the count."""
        if count == 1:
            return one
        first = people(count - 1 if count % 2 else count // 2)
        return first.then(one if count % 2 else first).thin(alike)

    found, (top, bottom) = people(size), highest_losses(loss)
    ahead, back = Stopped(found.forward, size * top), Stopped(found.backward, size * bottom)
    return tabulate_chain(ahead, None if alike else back, lattice(loss.atoms(), size), loss.relation)


def sampled_people(loss: PoissonSampledLoss, size: int) -> PrivacyLoss | None:
    """Several people, each in the batch or not: the binomial mean over how many are.

    None if these are too many, or if the inner loss is a sum, whose groups would each be composed at thousands of
    nodes: the chain of sampled pairs, which is larger, answers then.
    """
    if loss.rate == 1:
        return loss.inner.group(size)
    if isinstance(loss.inner, GaussianLoss) and size <= MOST_PEOPLE:
        return SampledGaussianGroupLoss(loss.inner.mu, loss.rate, size) if loss.inner.mu > 0 else loss
    if size > MOST_CURVES or isinstance(loss.inner, Sum):
        return None
    groups = [loss.inner.group(j) for j in range(1, size + 1)]
    weights = binomial_weights(size, loss.rate)
    found = mean_of_curves(weights.shares, [one_step(inner) for inner in groups])
    tops = [highest_losses(inner) for inner in groups]
    ahead, back = (log_mean_exp(weights.logs, [0.0, *(sign * top[i] for top in tops)]) for i, sign in ((0, 1), (1, -1)))
    return tabulate_chain(
        Stopped(found.forward, ahead), Stopped(found.backward, -back), lattice(None, 1), loss.relation
    )


def log_mean_exp(logs: Sequence[float], powers: Sequence[float]) -> float:
    """log Σ share·e^power for logarithms of shares that add up to 1, rounded away from 0."""
    if max(powers) == math.inf:
        return math.inf
    value = float(np.logaddexp.reduce(np.array(logs) + np.array(powers)))
    size = 1 + max(abs(x) for x in (*logs, *powers) if math.isfinite(x))
    return value + math.copysign(1e-13 * size, max(powers) or min(powers))


@with_progress("computing the loss of replacing somebody")
def replace_one(loss: PrivacyLoss) -> PrivacyLoss:
    """An add/remove loss as a loss about replacing one person: one leaves and another joins, in the worse order.

    Leaving first leads through the smaller data set, joining first through the larger one. Either chain reads the same
    backwards, so the answer is symmetric.

    Theorem: replacing is removing and adding, so both r compose [Dong, Roth & Su 2022, Thm 2.14]
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
            return PureLoss(eps, relation=replaced).group(2)
        case ApproxLoss(eps=eps, failure=failure):
            return ApproxLoss(eps, failure, relation=replaced).group(2)
        case DiscreteLaplaceLoss(scale=scale, sensitivity=sensitivity):
            return DiscreteLaplaceLoss(scale, 2 * sensitivity, relation=replaced)
        case DiscreteGaussianLoss(sigma=sigma, sensitivity=sensitivity):
            return DiscreteGaussianLoss(sigma, 2 * sensitivity, relation=replaced)
        case SelectedLoss(inner=inner, runs=runs):
            return SelectedLoss(replace_one(inner), runs, relation=replaced)
        case _:
            return two_orders(loss)


def two_orders(loss: PrivacyLoss) -> TabulatedLoss:
    """The worse of leaving first and joining first, at every ε."""
    one, atoms = one_step(loss), loss.atoms()
    orders = one.reverse.then(one), one.then(one.reverse)

    def worse(eps: Floats) -> Enclosure:
        return maximum(orders[0].forward(eps), orders[1].forward(eps))

    bends = lattice(atoms and (atoms[0], 0.0), 1)
    return tabulate_chain(Stopped(worse, sum(highest_losses(loss))), None, bends, Relation.ReplaceOne)


# ---- one step -----------------------------------------------------------------------------------------------------


def one_step(loss: PrivacyLoss) -> Steps:
    """The loss itself, followed down to the floor: chords above its profiles, valleys below."""

    def ahead(eps: Floats) -> Enclosure:
        return loss.forward(eps)

    def back(eps: Floats) -> Enclosure:
        return loss.backward(eps)

    tops = zip((ahead, back), loss.supremum(), strict=True)
    end = max(min(top, CAP) if math.isfinite(top) else profile_end(curve, FLOOR) for curve, top in tops) or 1.0
    first = space_out(first_nodes(ahead, back, end), *lattice(loss.atoms(), 1)(end))
    nodes = space_out(choose_nodes(ahead, None if loss.reverse == loss else back, first, NODES)[0])
    one, other = monotone(ahead(nodes)), monotone(back(nodes))
    t, upper = unfold((nodes, one.upper), (nodes, other.upper))
    upper[len(nodes) - 1] = min(one.upper[0], other.upper[0])
    right, left = map(valleys, both_sides(nodes, one, other))
    s, lower = unfold(right, left)
    lower[len(left[0]) - 1] = max(right[1][0], left[1][0])
    return Steps(corners(t, convex(t, upper), 1), corners(s, convex(s, lower), -1))


def corners(t: Floats, d: Floats, sign: Sign) -> Polygon:
    """Between two nodes a polygonal H is r − e^t·x: these are the corners, from high losses to low ones.

    Backward profiles give 1 − r and 1 − x. Values are known to 8 ulps, differences of neighbours to 16 ulps of the
    larger; inner corners that are not sharp for this reason are dropped.
    """
    ahead = t[:-1] >= 0
    low, high = np.where(ahead, t[:-1], -t[1:]), np.where(ahead, t[1:], -t[:-1])
    more, less = np.where(ahead, d[:-1], d[1:]), np.where(ahead, d[1:], d[:-1])
    drop, slip = np.maximum(more - less, 0.0) / np.expm1(high - low), 16 * ULP * more / np.expm1(high - low)
    sharp = np.concatenate([[True], ((slip <= 1e-9 * (more + drop)) | (sign > 0))[::-1], [True]])
    tall = np.clip((more + drop) * (1 + sign * 16 * ULP) + sign * slip, 0.0, 1.0)
    wide = np.clip((drop * (1 - sign * 16 * ULP) - sign * slip) * np.exp(-low), 0.0, 1.0)
    x, not_r = np.where(ahead, wide, 1 - tall), np.where(ahead, 1 - tall, wide)
    r, not_x = np.where(ahead, tall, 1 - wide), np.where(ahead, 1 - wide, tall)
    last, first = (np.clip(end * (1 + sign * 16 * ULP), 0.0, 1.0) for end in (d[-1:], d[:1]))
    return round_corners(
        np.concatenate([[0.0], x[::-1], 1 - first])[sharp],
        np.concatenate([last, r[::-1], [1.0]])[sharp],
        np.concatenate([1 - last, not_r[::-1], [0.0]])[sharp],
        np.concatenate([[1.0], not_x[::-1], first])[sharp],
        sign,
    )


def valleys(side: Side) -> tuple[Floats, Floats]:
    """Nodes, the points where the continued chords meet inside cells, and where the last one reaches 0.

    A chord from a node to a valley lies below the line it belongs to, so the polygon lies below the profile.
    """
    nodes, low, i = side.nodes, side.values.lower, np.arange(len(side.nodes) - 1)
    fall, rise, width = side.fall[:-1], side.rise[1:], np.diff(nodes)
    with np.errstate(all="ignore"):
        away = np.log((low[:-1] - low[1:] + fall - rise) / (fall - rise * np.exp(-width)))
    eps = np.minimum(nodes[:-1] + np.clip(np.nan_to_num(away, nan=0.0), 0.0, width), nodes[1:])
    inside = (side.lines(nodes[:-1], i)[1] < low[:-1]) & (side.lines(nodes[1:], i)[0] < low[1:])
    end = nodes[-1] + min(math.log1p(low[-1] / max(side.fall[-1], 1e-300)), 100.0)
    where = np.concatenate([nodes, eps[inside], [end]])
    value = np.concatenate([low, np.maximum(np.minimum(*side.lines(eps, i)), 0.0)[inside], [0.0]])
    distinct, place = np.unique(where, return_inverse=True)
    least = np.ones_like(distinct)
    np.minimum.at(least, place, value)
    return distinct, least


# ---- tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stopped:
    """A profile that is 0 from the largest loss on: the losses of the steps of a chain add up."""

    curve: Curve
    top: float

    def __call__(self, eps: Floats) -> Enclosure:
        low, high = self.curve(eps)
        return Enclosure(np.where(eps < self.top, low, 0.0), np.where(eps < self.top, high, 0.0))


def highest_losses(loss: PrivacyLoss) -> tuple[float, float]:
    """Largest losses of either direction, infinite if there is leak; rounded up."""
    ahead, back = (
        top * (1 + 4 * ULP) if leak == 0 else math.inf for top, leak in zip(loss.supremum(), loss.leak(), strict=True)
    )
    return ahead, back


def tabulate_chain(ahead: Stopped, back: Stopped | None, bends: Bends, relation: Relation) -> TabulatedLoss:
    """The profiles of a chain as a table."""
    sides = [side for side in (ahead, back) if side]
    end, top = max(profile_end(side) for side in sides), max(side.top for side in sides)
    first = space_out(first_nodes(ahead, back, min(end, top) or 1.0), *bends(end))
    first = np.append(first, top) if first[-1] < top <= CAP else first
    nodes = choose_nodes(above(ahead), back and above(back), first, MOST)[0]
    return table(nodes, ahead(nodes), (back or ahead)(nodes), relation)


def lattice(atoms: tuple[float, float] | None, count: int) -> Bends:
    """Where the profiles of `count` people bend if one person's losses lie on a lattice, up to some end."""

    def bends(end: float) -> Floats:
        if atoms is None or end / atoms[0] > 500:
            return np.zeros(0)
        step, offset = atoms[0], count * atoms[1]
        return np.concatenate([np.arange(start % step, end, step) for start in (offset, -offset)])

    return bends


def space_out(nodes: Floats, *more: float) -> Floats:
    """All of them from 0 to the last, thinned out where they are too close for differences to be sharp."""
    near = NEAR * nodes[-2]  # the last may lie apart
    found = np.sort(np.append(nodes[:-1], more))
    found = found[np.unique(np.floor(found / near), return_index=True)[1]]
    found = found[np.diff(found, prepend=-1.0) > near / 2]
    return np.append(found[found < nodes[-1] - near / 2], nodes[-1])
