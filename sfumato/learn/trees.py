"""Trees whose splits are public: thresholds do not depend on data, so a forest costs only what its leaves do."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learn.tables import Matrix


@dataclass(frozen=True, eq=False)
class RandomTree:
    """A complete binary tree: node i of a level splits on a column at a threshold; columns are scaled to [−1, 1].

    Splits halve the cell of a node at a random place near its middle, so that no leaf is of the whole width of a column
    that was split on its way.
    """

    columns: NDArray[np.int64]  # of the 2^depth − 1 inner nodes, level by level
    thresholds: NDArray[np.float64]

    @property
    def depth(self) -> int:
        return (len(self.columns) + 1).bit_length() - 1

    @property
    def leaf_count(self) -> int:
        return len(self.columns) + 1

    def splits(self) -> tuple[tuple[int, float], ...]:
        """Column and threshold of each inner node, level by level."""
        return tuple(zip(self.columns.tolist(), self.thresholds.tolist(), strict=True))

    @staticmethod
    def grow(depth: int, edges: Matrix, rng: np.random.Generator) -> "RandomTree":
        """`edges` has a sorted list of candidate thresholds for each column; each split takes one inside its cell."""
        d, inner = len(edges), (1 << depth) - 1
        columns, thresholds = np.zeros(inner, np.int64), np.zeros(inner)
        cells = [(np.full(d, -1.0), np.full(d, 1.0))]
        for node in range(inner):
            low, high = cells[node]
            column = int(rng.integers(d))
            inside = edges[column][(edges[column] > low[column]) & (edges[column] < high[column])]
            place = float(rng.choice(inside)) if len(inside) else float(rng.uniform(low[column], high[column]))
            columns[node], thresholds[node] = column, place
            left_high, right_low = high.copy(), low.copy()
            left_high[column], right_low[column] = place, place
            cells += [(low, left_high), (right_low, high)]
        return RandomTree(columns, thresholds)

    def leaves(self, X: Matrix) -> NDArray[np.int64]:
        """The leaf of each row, by its own values."""
        node = np.zeros(len(X), np.int64)
        every = np.arange(len(X))
        for _ in range(self.depth):
            right = X[every, self.columns[node]] > self.thresholds[node]
            node = 2 * node + 1 + right
        return node - len(self.columns)


def even_edges(columns: int, count: int = 15) -> Matrix:
    """Thresholds at equal distances within the bounds: public."""
    return np.tile(np.linspace(-1, 1, count + 2)[1:-1], (columns, 1))
