"""Sampled sums as tables: their profile is needed thousands of times, so it is looked up.

A composition of sampled compositions needs the inner profile at every point of a lattice, and each value would be a
composition of its own. The inner profile is therefore computed once at a few hundred nodes, from both sides. Between
them convexity bounds it, from both sides too (convex_bounds.py), so that the table is as certified as its values.
"""

import dataclasses
import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.facts import Composite
from sfumato.loss.compose.lattice import Lattice
from sfumato.loss.compose.lattice_plan import rough
from sfumato.loss.compose.nested import is_composed, sampled_sum
from sfumato.loss.compose.transforms.edges import EdgedTransform
from sfumato.loss.compose.transforms.gaussian import DiscreteGaussianTransform
from sfumato.loss.kinds.subsampled import PoissonSampledLoss, WithoutReplacementLoss
from sfumato.loss.kinds.tabulated import TabulatedLoss, choose_nodes, table
from sfumato.loss.kinds.wrappers import OneWay, Reversed
from sfumato.loss.numeric import Enclosure, Floats, floats

FLOOR = 1e-20  # a profile below this has ended
LITTLE = 1e-7  # below this a backward profile is left open: it counts beside 1 − e^{−ε} there
FIRST, MOST = 257, 4000  # nodes
MANY = 100  # steps of a sum that contours answer for
BLURRED = 1.5  # gaps, from which on another engine answers
SHARPEST, BLUNTEST = 1e-6, 1e-4  # relative gap of a table
ALL = 2e-3  # relative gap of all steps together

Curve = Callable[[Floats], Enclosure]


def replace_inner_sum(loss: PrivacyLoss, count: int) -> PrivacyLoss:
    """The loss with a table in the place of a sum that is sampled, sharp enough for `count` of it."""
    if sampled_sum(loss) is not None:  # it is put on a lattice atom by atom
        return loss
    if isinstance(loss, Reversed):
        inner = replace_inner_sum(loss.inner, count)
        return loss if inner is loss.inner else Reversed(inner, relation=loss.relation)
    if not isinstance(loss, PoissonSampledLoss | WithoutReplacementLoss) or not is_composed(loss.inner):
        return loss
    gap = min(max(10.0 ** math.floor(math.log10(ALL / count)), SHARPEST), BLUNTEST)
    return dataclasses.replace(loss, inner=tabulate_sum(loss.inner, gap))


@lru_cache(maxsize=16)
def tabulate_sum(loss: Composite, gap: float) -> TabulatedLoss:
    """Both profiles at nodes: the forward one to a relative `gap`, the backward one only until it is little."""
    ahead = Lattice(tuple((count, inside(term)) for count, term in loss.terms))
    top = loss.supremum()[0]
    many = loss.method == "contour" and sum(count for count, _ in loss.terms) >= MANY and has_density(loss)

    def curve(t: Floats) -> Enclosure:
        if many:
            return loss.forward(t, gap / 2)
        found = ahead.forward(t, gap / 2)
        low, high = found.lower, np.where(t >= top, 0.0, found.upper)
        blurred = (high - low > BLURRED * gap * high) & (high > LITTLE)
        if blurred.any():  # many losses that are nearly alike: the contour is sharper
            other = loss.forward(t[blurred], gap / 2)
            low[blurred], high[blurred] = np.maximum(low[blurred], other.lower), np.minimum(high[blurred], other.upper)
        return Enclosure(low, high)

    end = min(top, rough(ahead.terms).saddle(FLOOR)[1])
    nodes, forward, _ = choose_nodes(curve, None, np.linspace(0.0, end, FIRST), MOST, gap)
    if loss.reverse == loss:
        return table(nodes, forward, forward, loss.relation)
    back: Curve = lambda t: loss.backward(t, 10 * gap)  # noqa: E731
    last = where_little(back, min(loss.supremum()[1], end))
    few, backward, _ = choose_nodes(back, None, np.linspace(0.0, last, 33), MOST, 10 * gap)
    both = np.union1d(nodes, few)
    return table(
        both, merge_values(curve, both, nodes, forward), extend_values(back, both, few, backward), loss.relation
    )


def has_density(loss: Composite) -> bool:
    """Does some term smooth the sum? Contours then take as long for a million steps as for a hundred, while lattices
    become finer."""
    return any(not isinstance(term.transform(), EdgedTransform | DiscreteGaussianTransform) for _, term in loss.terms)


def inside(loss: PrivacyLoss) -> PrivacyLoss:
    """The pair itself, and tables in it."""
    return replace_inner_sum(loss.inner if isinstance(loss, OneWay) else loss, 1)


def where_little(curve: Curve, end: float) -> float:
    """About where the profile has fallen to a little."""
    t = end * floats([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.01])
    found = np.flatnonzero(curve(t).upper > LITTLE)
    return float(t[max(int(found[0]) - 1, 0)]) if len(found) else float(t[-1])


def merge_values(curve: Curve, both: Floats, nodes: Floats, values: Enclosure) -> Enclosure:
    """Values at more nodes: only the new ones are asked for."""
    fresh = np.isin(both, nodes, invert=True)
    low, high = np.empty_like(both), np.empty_like(both)
    low[~fresh], high[~fresh] = values
    if fresh.any():
        low[fresh], high[fresh] = curve(both[fresh])
    return Enclosure(low, high)


def extend_values(curve: Curve, both: Floats, nodes: Floats, values: Enclosure) -> Enclosure:
    """Values at more nodes; beyond the last of `nodes` only that the profile does not rise."""
    known = both <= nodes[-1]
    found = merge_values(curve, both[known], nodes, values)
    low, high = np.zeros_like(both), np.full_like(both, found.upper[-1])
    low[known], high[known] = found
    return Enclosure(low, high)
