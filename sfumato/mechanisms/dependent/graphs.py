"""Triangles and stars of a graph with private edges: counts and local sensitivities at distance k."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.noise.draw_table import Integers
from sfumato.sensitivity import AddRemove, Relation

MARK = 1 << 30
MOST_NODES = MARK


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Nodes 0, …, nodes − 1 (their number is public) and edges, each once as (smaller, larger)."""

    nodes: int
    first: Integers
    second: Integers

    @staticmethod
    def of(data: ArrayLike, nodes: int) -> "Graph":
        """From a list of pairs. Loops, pairs with unknown nodes and duplicates are dropped."""
        pairs = np.asarray(data)
        if pairs.size == 0:
            pairs = np.zeros((0, 2), np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise InvalidParameter(
                "a graph is a list of pairs of whole numbers.\n"
                f"  found:  {pairs.dtype} of shape {pairs.shape}\n  do:     give [(0, 1), (1, 2)]"
            )
        small, large = pairs.min(axis=1), pairs.max(axis=1)
        good = (small >= 0) & (large < nodes) & (small < large)
        keys = np.unique(small[good].astype(np.int64) * nodes + large[good].astype(np.int64))
        return Graph(nodes, keys // nodes, keys % nodes)

    @cached_property
    def degrees(self) -> Integers:
        both = np.concatenate([self.first, self.second])
        return np.bincount(both, minlength=self.nodes).astype(np.int64)

    @cached_property
    def common(self) -> tuple[Integers, Integers, Integers]:
        """(a, d_i + d_j − 2·[ij is an edge], [ij is an edge]) of all ordered pairs that have a > 0 or are edges.

        a is the number of common neighbours. One sparse matrix product; edges are marked in it by −2³⁰.
        """
        marked = (self.matrix @ self.matrix - self.matrix * np.int32(MARK)).tocsr()
        rows = np.repeat(np.arange(self.nodes, dtype=np.int32), np.diff(marked.indptr))
        other = rows != marked.indices
        found, degrees = marked.data[other], self.degrees.astype(np.int32)
        edge = found < 0
        ends = degrees[rows[other]] + degrees[marked.indices[other]] - 2 * edge.astype(np.int32)
        return found + np.int32(MARK) * edge, ends, edge

    @cached_property
    def matrix(self) -> Any:
        """The adjacency matrix."""
        from scipy.sparse import csr_array

        ends = (np.concatenate([self.first, self.second]), np.concatenate([self.second, self.first]))
        return csr_array((np.ones(ends[0].size, np.int32), ends), shape=(self.nodes, self.nodes))

    def neighbours(self, i: int) -> Integers:
        """The neighbours of node i."""
        found: Integers = self.matrix.indices[self.matrix.indptr[i] : self.matrix.indptr[i + 1]]
        return found


@dataclass(frozen=True)
class Triangles(Statistic[ArrayLike | Graph]):
    """The number of triangles; the nodes are public, neighbouring graphs differ by one edge.

    Adding or removing the edge ij changes a_ij triangles, the number of common neighbours of i and j: LS = max a_ij.
    Let b_ij nodes be joined to exactly one of i and j. k further edges create at most ⌊(k + min(k, b_ij))/2⌋ more
    common neighbours: one edge each for these b_ij nodes, two for any other. So
    LS_k = max_ij min(a_ij + ⌊(k + min(k, b_ij))/2⌋, nodes − 2).

    Theorem: this is the local sensitivity at distance k [Nissim, Raskhodnikova & Smith 2007, section 3]
    Theorem: LS itself changes by at most one between neighbours, as each a_ij does [immediate from LS = max a_ij]

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

    def prepare(self, data: ArrayLike | Graph) -> Graph:
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
        fronts = np.array(triangle_front(self.graph(data)), np.int64)
        k, (a, b) = np.arange(most + 1)[:, None], fronts.T[:, None, :]
        found = np.minimum(a + (k + np.minimum(k, b)) // 2, self.nodes - 2).max(axis=1)
        return tuple(int(size) for size in found)


def triangle_front(graph: Graph) -> list[tuple[int, int]]:
    """The Pareto front of (a, 2a + b) over pairs of nodes, as (a, b): only these pairs can attain LS_k.

    2a + b = d_i + d_j − 2·[ij is an edge]. The curve of a pair is min(a + k, ⌊(k + 2a + b)/2⌋), so a pair that is not
    larger in a and in 2a + b is not larger at any k.
    """
    common, ends, _ = graph.common
    most = np.zeros(int(common.max(initial=0)) + 1, np.int32)
    np.maximum.at(most, common, ends)
    most[0] = max(int(most[0]), largest_unconnected(graph, int(most.max(initial=0))))
    best, kept = -1, []
    for a, total in reversed(list(enumerate(most.tolist()))):
        if total > best:
            best = total
            kept.append((a, total - 2 * a))
    return kept


def largest_unconnected(graph: Graph, enough: int) -> int:
    """The largest d_i + d_j of pairs that are no edge and have no common neighbours, or 0 if it is ≤ `enough`.

    Pairs are visited by decreasing d_i + d_j. All other pairs have d_i + d_j ≤ enough + 2, and more than `enough` only
    if they are edges, so the search visits at most one pair more than there are edges.
    """
    order = np.argsort(-graph.degrees, kind="stable")
    size = graph.degrees[order]
    heap: list[tuple[int, int, int]] = [(-int(size[0] + size[1]), 0, 1)]
    while heap:
        total, p, q = heappop(heap)
        if -total <= enough:
            break
        near = graph.neighbours(int(order[p]))
        if order[q] not in near and not np.intersect1d(near, graph.neighbours(int(order[q]))).size:
            return -total
        if q + 1 < size.size:
            heappush(heap, (-int(size[p] + size[q + 1]), p, q + 1))
        if q == p + 1 and q + 1 < size.size:
            heappush(heap, (-int(size[q] + size[q + 1]), q, q + 1))
    return 0


MOST_POINTS = 64


@dataclass(frozen=True)
class Stars(Statistic[ArrayLike | Graph]):
    """The number of k-stars, Σ_v C(d_v, k) with k = `points`; neighbouring graphs differ by one edge.

    The nodes are public. Let p ≥ q be the degrees of i and j without the edge ij: that edge is in C(p, k−1) + C(q, k−1)
    stars. s other edges raise p or q by one each, up to nodes − 2. C(·, k−1) is convex, so they add most at the larger
    degree until it is full. A pair with smaller p and q is not larger at any s, so the Pareto front is enough.

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
        """With two points LS is the largest p + q, and an edge other than ij changes at most one of p and q."""
        return 1 if self.points == 2 else None

    def prepare(self, data: ArrayLike | Graph) -> Graph:
        return self.graph(data)

    def graph(self, data: ArrayLike | Graph) -> Graph:
        return data if isinstance(data, Graph) else Graph.of(data, self.nodes)

    def value(self, data: ArrayLike | Graph) -> int:
        sizes, counts = np.unique(self.graph(data).degrees, return_counts=True)
        return sum(comb(d, self.points) * n for d, n in zip(sizes.tolist(), counts.tolist(), strict=True))

    def curve(self, data: ArrayLike | Graph, most: int) -> tuple[Exact, ...]:
        pairs, full = star_front(self.graph(data)), self.nodes - 2
        return tuple(max(self._stars(p, q, s, full) for p, q in pairs) for s in range(most + 1))

    def _stars(self, p: int, q: int, s: int, full: int) -> int:
        more = min(s, full - p)
        return comb(p + more, self.points - 1) + comb(min(q + s - more, full), self.points - 1)


def star_front(graph: Graph) -> list[tuple[int, int]]:
    """The Pareto front of (p, q) over pairs of nodes: their degrees without the edge between them.

    Let D₁ ≥ D₂ be the two largest degrees. If these two nodes are not joined, (D₁, D₂) dominates all pairs. Otherwise
    (D₁ − 1, D₂ − 1) dominates all edges, and all pairs except unjoined ones with p = D₁ or with both degrees D₂.
    """
    order = np.argsort(-graph.degrees, kind="stable")
    size = graph.degrees[order]
    first, second = int(size[0]), int(size[1])
    found = [(first - 1, second - 1)] if order[1] in graph.neighbours(int(order[0])) else [(first, second)]
    for node in order[: int(np.count_nonzero(size == first))].tolist():
        near = order[: first + 2]  # contains a node that is not joined to this one, if there is any
        unjoined = near[~np.isin(near, np.append(graph.neighbours(node), node))]
        if unjoined.size:
            found.append((first, int(graph.degrees[unjoined[0]])))
            if found[-1][1] == second:
                return [found[-1]]
    equal = order[size == second]
    inside = np.isin(graph.first, equal) & np.isin(graph.second, equal)
    if int(np.count_nonzero(inside)) < equal.size * (equal.size - 1) // 2:
        found.append((second, second))
    return found
