"""Choosing nodes: from two enclosed profiles to the table that says as much in few points."""

import numpy as np

from sfumato.loss.kinds.tabulated import TabulatedLoss
from sfumato.loss.numeric import Enclosure, Floats
from sfumato.loss.views.convex_bounds import CAP, Side, both_sides, convex, monotone, unfolded
from sfumato.loss.views.divergences import Curve, merge
from sfumato.sensitivity import Relation

GAP = 1e-6  # relative gap asked of a table
MOST = 3000  # nodes of a table
FLOOR = 1e-18  # a profile below this has ended


def tabulate(ahead: Curve, back: Curve | None, end: float, relation: Relation, most: int = MOST) -> TabulatedLoss:
    """Two enclosed profiles as a table on [0, end]; without `back` both are the same."""
    return table(*sampled(ahead, back, first_nodes(ahead, back, end), most), relation)


def table(nodes: Floats, ahead: Enclosure, back: Enclosure, relation: Relation) -> TabulatedLoss:
    """The loss with these values at the nodes, its upper side made convex."""
    ahead, back = monotone(ahead), monotone(back)
    t, upper = unfolded((nodes, ahead.upper), (nodes, back.upper))
    middle = len(nodes) - 1
    upper[middle] = min(ahead.upper[0], back.upper[0])
    upper = convex(t, upper)
    ahead = monotone(Enclosure(ahead.lower, upper[middle:]))
    back = monotone(Enclosure(back.lower, upper[middle::-1]))
    columns = (ahead.upper, np.minimum(ahead.lower, ahead.upper), back.upper, np.minimum(back.lower, back.upper))
    return TabulatedLoss(tuple(nodes.tolist()), *(tuple(values.tolist()) for values in columns), relation=relation)


def reach(curve: Curve, floor: float = FLOOR) -> float:
    """Where the profile has ended, roughly: below the floor, or at what it never falls below."""

    def ended(eps: float) -> bool:
        here, last = curve(np.array([eps, CAP])).upper
        return bool(here <= max(floor, last * (1 + 1e-9)))

    low, high = 0.5, 1.0
    while high < CAP and not ended(high):
        low, high = high, min(2 * high, CAP)
    while low > 1e-12 and ended(low):
        low, high = low / 2, low
    for _ in range(5):
        middle = (low + high) / 2
        low, high = (low, middle) if ended(middle) else (middle, high)
    return high


def first_nodes(ahead: Curve, back: Curve | None, end: float) -> Floats:
    """Even cells; if there is leak, a node beyond the end, so that the last chord is as flat as the profile."""
    nodes = np.linspace(0.0, end, 65)
    leaks = any(curve(nodes[-2:]).lower[-1] > FLOOR for curve in (ahead, back) if curve)
    return np.append(nodes, end + 1) if leaks else nodes


def sampled(
    ahead: Curve, back: Curve | None, nodes: Floats, most: int = MOST, gap: float = GAP
) -> tuple[Floats, Enclosure, Enclosure]:
    """Nodes halved where the gap is largest until it is small everywhere; if they do not suffice, spread evenly."""
    values = [ahead(nodes), (back or ahead)(nodes)]
    while True:
        first, second = both_sides(nodes, *map(monotone, values))
        excess = gaps(first, gap) if back is None else np.maximum(gaps(first, gap), gaps(second, gap))
        worst = np.argsort(-excess)[: most - len(nodes)]
        chosen = np.sort(worst[excess[worst] > max(1.0, float(excess.max()) / 4)])
        if not len(chosen):
            break
        fresh = (nodes[chosen] + nodes[chosen + 1]) / 2
        found = ahead(fresh)
        other = found if back is None else back(fresh)
        values = [merge(nodes, v, fresh, f)[1] for v, f in zip(values, (found, other), strict=True)]
        nodes = np.insert(nodes, np.searchsorted(nodes, fresh), fresh)
    if len(nodes) < most:
        return nodes, values[0], values[1]
    nodes = spread(nodes, excess, most)
    return nodes, ahead(nodes), (back or ahead)(nodes)


def spread(nodes: Floats, excess: Floats, most: int) -> Floats:
    """The gap of a cell grows with its width squared: nodes at equal steps of ∫√gap have equal gaps."""
    share = np.concatenate([[0.0], np.cumsum(np.sqrt(excess + 0.05 * np.mean(excess)))])
    return np.unique(np.interp(np.linspace(0.0, share[-1], most), share, nodes))


def gaps(side: Side, gap: float = GAP) -> Floats:
    """Largest gap inside each cell, in units of what is asked and of what the nodes themselves allow.

    Less is asked of profiles below the floor: they matter only where many people act together.
    """
    nodes, width = side.nodes, np.diff(side.nodes)
    noise = side.values.upper - side.values.lower
    noise = np.maximum(noise[:-1], noise[1:])
    noise = 4 * np.maximum(noise, np.maximum(np.append(noise[1:], 0.0), np.append(0.0, noise[:-1])))
    worst = np.zeros_like(width)
    for place in (0.25, 0.5, 0.75):
        low, high = side(nodes[:-1] + place * width)
        asked = gap * (1 + (np.log10(np.maximum(high, 1e-300)) / np.log10(FLOOR)) ** 2)
        size = (high - low) / np.maximum(asked * high + noise, 1e-300)
        worst = np.maximum(worst, np.where(width > 1e-13 * nodes[-1], size, 0.0))
    return worst
