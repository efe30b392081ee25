"""Graphs whose edges are private: an edge list in, degrees and common neighbours out."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import InvalidParameter
from sfumato.noise.table import Integers

MARK = 1 << 30
MOST_NODES = MARK


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Nodes 0, …, nodes − 1, a public number; each edge once, as (smaller, larger)."""

    nodes: int
    first: Integers
    second: Integers

    @staticmethod
    def of(data: ArrayLike, nodes: int) -> "Graph":
        """From a row of pairs. Loops, pairs outside the nodes and second copies count as nothing, each by itself."""
        pairs = np.asarray(data)
        if pairs.size == 0:
            pairs = np.zeros((0, 2), np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise InvalidParameter(
                "a graph is a row of pairs of whole numbers.\n"
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

        a = common neighbours. One product of sparse matrices; edges carry a mark of −2³⁰ through it.
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

    def around(self, i: int) -> Integers:
        """The nodes joined to i."""
        found: Integers = self.matrix.indices[self.matrix.indptr[i] : self.matrix.indptr[i + 1]]
        return found
