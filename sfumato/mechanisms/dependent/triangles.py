"""Triangles of a graph whose edges are private."""

from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.mechanisms.dependent.edges import MOST_NODES, Graph
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.sensitivity import AddRemove, Relation


@dataclass(frozen=True)
class Triangles(Statistic[ArrayLike | Graph]):
    """The number of triangles; the nodes are public, neighbours differ by one edge.

    An edge ij is in a_ij triangles, the common neighbours of i and j, whether it is there or not: LS = max a_ij. With
    b_ij nodes joined to exactly one of i, j, k further edges make at most ⌊(k + min(k, b_ij))/2⌋ more of them: one edge
    for each of the b_ij, two for any other. So LS_k = max_ij min(a_ij + ⌊(k + min(k, b_ij))/2⌋, nodes − 2).

    Theorem: this is the local sensitivity at distance k [Nissim, Raskhodnikova & Smith 2007, section 3]
    Theorem: LS itself changes by at most one between neighbours: each a_ij does [the sentence above]

    >>> Triangles(5).curve([(0, 1), (1, 2), (0, 2), (2, 3)], 2)
    (1, 2, 2)
    """

    nodes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", checks.whole("nodes", self.nodes, 3, MOST_NODES))

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def everywhere(self) -> int:
        return self.nodes - 2

    @property
    def grain(self) -> Fraction:
        return Fraction(1)

    @property
    def drift(self) -> int:
        return 1

    def prepared(self, data: ArrayLike | Graph) -> Graph:
        return self.graph(data)

    def graph(self, data: ArrayLike | Graph) -> Graph:
        return data if isinstance(data, Graph) else Graph.of(data, self.nodes)

    def value(self, data: ArrayLike | Graph) -> int:
        """Each triangle is counted at its three edges, from both ends."""
        common, _, edge = self.graph(data).common
        return int(common[edge].sum(dtype=np.int64)) // 6

    def local(self, data: ArrayLike | Graph) -> int:
        return int(self.graph(data).common[0].max(initial=0))

    def curve(self, data: ArrayLike | Graph, most: int) -> tuple[Exact, ...]:
        fronts = np.array(front(self.graph(data)), np.int64)
        k, (a, b) = np.arange(most + 1)[:, None], fronts.T[:, None, :]
        found = np.minimum(a + (k + np.minimum(k, b)) // 2, self.nodes - 2).max(axis=1)
        return tuple(int(size) for size in found)


def front(graph: Graph) -> list[tuple[int, int]]:
    """(a, b) of pairs of nodes, of which none is beaten by one with a ≥ and 2a + b ≥: these have the curves that count.

    2a + b = d_i + d_j − 2·[ij is an edge]. A pair beaten in both is below at every k: k ≤ b gives a + k, and beyond
    ⌊(k + 2a + b)/2⌋, the smaller of which is the curve.
    """
    common, ends, _ = graph.common
    most = np.zeros(int(common.max(initial=0)) + 1, np.int32)
    np.maximum.at(most, common, ends)
    most[0] = max(int(most[0]), apart(graph, int(most.max(initial=0))))
    best, kept = -1, []
    for a, total in reversed(list(enumerate(most.tolist()))):
        if total > best:
            best = total
            kept.append((a, total - 2 * a))
    return kept


def apart(graph: Graph, enough: int) -> int:
    """The largest d_i + d_j of pairs that are no edge and have no common neighbours, if it is more than `enough`.

    Pairs in falling order of d_i + d_j. Others than those looked for have d_i + d_j ≤ enough + 2, and more than
    `enough` only if they are edges: so at most as many pairs are looked at as there are edges, and one.
    """
    order = np.argsort(-graph.degrees, kind="stable")
    size = graph.degrees[order]
    heap: list[tuple[int, int, int]] = [(-int(size[0] + size[1]), 0, 1)]
    while heap:
        total, p, q = heappop(heap)
        if -total <= enough:
            break
        near = graph.around(int(order[p]))
        if order[q] not in near and not np.intersect1d(near, graph.around(int(order[q]))).size:
            return -total
        if q + 1 < size.size:
            heappush(heap, (-int(size[p] + size[q + 1]), p, q + 1))
        if q == p + 1 and q + 1 < size.size:
            heappush(heap, (-int(size[q] + size[q + 1]), q, q + 1))
    return 0
