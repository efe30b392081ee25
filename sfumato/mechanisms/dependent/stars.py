"""Stars of a graph whose edges are private: a node and k of its neighbours."""

from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.mechanisms.dependent.edges import MOST_NODES, Graph
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.sensitivity import AddRemove, Relation

MOST_POINTS = 64


@dataclass(frozen=True)
class Stars(Statistic[ArrayLike | Graph]):
    """Σ_v C(d_v, k), k = `points`; the nodes are public, neighbours differ by one edge.

    Let p ≥ q be the degrees of i and j without the edge ij: that edge is in C(p, k−1) + C(q, k−1) stars. Other edges
    raise p and q one by one, up to nodes − 2 each, and C(·, k−1) is convex: s of them do most at the larger one, until
    it is full. A pair with smaller p and q is below at every s, so the pairs that no other beats are enough.

    Theorem: this is the local sensitivity at distance s [Karwa, Raskhodnikova, Smith & Yaroslavtsev 2011]

    >>> Stars(4, points=2).local([(0, 1), (0, 2)])
    2
    """

    nodes: int
    points: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", checks.whole("nodes", self.nodes, 3, MOST_NODES))
        object.__setattr__(self, "points", checks.whole("points", self.points, 2, MOST_POINTS))

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def everywhere(self) -> int:
        return 2 * comb(self.nodes - 2, self.points - 1)

    @property
    def grain(self) -> Fraction:
        return Fraction(1)

    @property
    def drift(self) -> int | None:
        """With two points LS is the largest p + q, and an edge other than ij touches at most one of i and j."""
        return 1 if self.points == 2 else None

    def prepared(self, data: ArrayLike | Graph) -> Graph:
        return self.graph(data)

    def graph(self, data: ArrayLike | Graph) -> Graph:
        return data if isinstance(data, Graph) else Graph.of(data, self.nodes)

    def value(self, data: ArrayLike | Graph) -> int:
        sizes, counts = np.unique(self.graph(data).degrees, return_counts=True)
        return sum(comb(d, self.points) * n for d, n in zip(sizes.tolist(), counts.tolist(), strict=True))

    def curve(self, data: ArrayLike | Graph, most: int) -> tuple[Exact, ...]:
        pairs, full = front(self.graph(data)), self.nodes - 2
        return tuple(max(self._stars(p, q, s, full) for p, q in pairs) for s in range(most + 1))

    def _stars(self, p: int, q: int, s: int, full: int) -> int:
        more = min(s, full - p)
        return comb(p + more, self.points - 1) + comb(min(q + s - more, full), self.points - 1)


def front(graph: Graph) -> list[tuple[int, int]]:
    """(p, q) of pairs of nodes, their degrees without the edge between them, of which none is beaten in both.

    With D₁ ≥ D₂ the two largest degrees: where these two nodes are apart, (D₁, D₂) beats all. Else (D₁ − 1, D₂ − 1)
    beats all edges, and all pairs but those apart with p = D₁, or with both degrees D₂.
    """
    order = np.argsort(-graph.degrees, kind="stable")
    size = graph.degrees[order]
    first, second = int(size[0]), int(size[1])
    found = [(first - 1, second - 1)] if order[1] in graph.around(int(order[0])) else [(first, second)]
    for node in order[: int(np.count_nonzero(size == first))].tolist():
        near = order[: first + 2]  # one of these, at least, is apart from the node and not itself, if any is
        alone = near[~np.isin(near, np.append(graph.around(node), node))]
        if alone.size:
            found.append((first, int(graph.degrees[alone[0]])))
            if found[-1][1] == second:
                return [found[-1]]
    equal = order[size == second]
    inside = np.isin(graph.first, equal) & np.isin(graph.second, equal)
    if int(np.count_nonzero(inside)) < equal.size * (equal.size - 1) // 2:
        found.append((second, second))
    return found
