"""Grouping sets that add up: noisy tables by several sets of public keys, combined by weighted least squares.

ROLLUP, CUBE and GROUPING SETS release one table for each set of keys, all of the same bounded rows. The true cells of a
finer table add up to those of a coarser one; the combined tables do so too, and every cell is nearer to the truth.

A table of all keys is a sum of orthogonal parts: one for each subset A of the keys, which varies along the keys in A,
sums to 0 along each of them, and is constant along all others. The table of a set S, with noise of variance σ_S², shows
the part A ⊆ S, in units of cells of A, with variance σ_S²·Π_{i∈S∖A} nᵢ.

Theorem: the least-squares estimate of each part A is the mean of what all S ⊇ A show, weighted by the inverse of these
    variances, and the estimate of a table is the sum of its parts
Proof. Noise has the same variance in all cells of a table, so the parts of a table have independent noise and
least squares separates into one problem for each A, a weighted mean. ∎ [Darroch & Silvey 1963; Xiao, He, Zhang & Kifer
2023 (ResidualPlanner)]
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Set = tuple[int, ...]  # indexes of keys, rising
ROUNDS = 200  # of the search for shares
LEAST_SHARE = 0.01


def subsets(keys: Set) -> list[Set]:
    return list(chain.from_iterable(combinations(keys, many) for many in range(len(keys) + 1)))


@dataclass(frozen=True)
class GroupingSets:
    """Tables by these sets of keys, of which key i has sizes[i] values."""

    sets: tuple[Set, ...]
    sizes: tuple[int, ...]

    def cells(self, keys: Sequence[int]) -> int:
        return math.prod(self.sizes[i] for i in keys)

    # ---- how the tables are weighted --------------------------------------------------------------------------------

    def weights(self, variances: Mapping[Set, float]) -> dict[Set, dict[Set, float]]:
        """For each subset A of keys: the weight of each table that shows it."""
        found: dict[Set, dict[Set, float]] = {}
        for a in {one for s in self.sets for one in subsets(s)}:
            precision = {
                s: 1 / (variances[s] * self.cells([i for i in s if i not in a])) for s in self.sets if set(a) <= set(s)
            }
            whole = math.fsum(precision.values())
            found[a] = {s: p / whole for s, p in precision.items()}
        return found

    def combine(self, tables: Mapping[Set, Floats], variances: Mapping[Set, float]) -> dict[Set, Floats]:
        """The least-squares tables. Each noisy table has an axis for each of its keys."""
        residuals: dict[Set, Floats] = {}
        for a, weights in self.weights(variances).items():
            total = np.zeros([self.sizes[i] for i in a])
            for s, weight in weights.items():
                axes = tuple(place for place, i in enumerate(s) if i not in a)
                total = total + weight * tables[s].sum(axis=axes)
            for axis in range(len(a)):
                total = total - total.mean(axis=axis, keepdims=True)
            residuals[a] = total
        return {s: self.table(s, residuals) for s in self.sets}

    def table(self, s: Set, residuals: Mapping[Set, Floats]) -> Floats:
        found = np.zeros([self.sizes[i] for i in s])
        for a in subsets(s):
            others = [i for i in s if i not in a]
            spread = np.expand_dims(residuals[a], tuple(place for place, i in enumerate(s) if i not in a))
            found = found + spread / self.cells(others)
        return found

    def noise(self, s: Set, variances: Mapping[Set, float]) -> tuple[float, float]:
        """(standard deviation, Σ|c|) of a cell of a combined table: Σ c·z over all cells z of all noisy tables.

        c depends on which keys of z are those of the cell: `match`.
        """
        weights, variance, absolute = self.weights(variances), 0.0, 0.0
        for other in self.sets:
            shared = tuple(i for i in s if i in other)
            for match in subsets(shared):
                c = math.fsum(
                    weights[a][other]
                    * math.prod((i in match) - 1 / self.sizes[i] for i in a)
                    / self.cells([i for i in s if i not in a])
                    for a in subsets(shared)
                )
                many = math.prod(self.sizes[i] - 1 for i in shared if i not in match)
                many *= self.cells([i for i in other if i not in s])
                variance += many * c * c * variances[other]
                absolute += many * abs(c)
        return math.sqrt(variance), absolute

    # ---- how the price is divided -----------------------------------------------------------------------------------

    def shares(self, squares: Mapping[Set, float]) -> dict[Set, float]:
        """Shares of a price that make errors small, if a table with the share w has noise of variance squares/w.

        The sum over sets of a cell's variance, each against that which its table would have for the whole price, is
        convex in the shares; w ← w·√(−gradient), normalised, never raises it [Silvey, Titterington & Torsney 1978].
        Shares depend on public numbers alone, and no set gets less than LEAST_SHARE.
        """
        parts = {a: tuple(s for s in self.sets if set(a) <= set(s)) for s in self.sets for a in subsets(s)}
        worth = {}  # of the variance of part A, in units of its cells, to all sets together
        for a in parts:
            flat = math.prod(1 - 1 / self.sizes[i] for i in a)
            worth[a] = math.fsum(
                flat / self.cells([i for i in s if i not in a]) ** 2 / squares[s] for s in parts[a]
            )  # fmt: skip
        shows = {(s, a): 1 / (squares[s] * self.cells([i for i in s if i not in a])) for a in parts for s in parts[a]}
        found = dict.fromkeys(self.sets, 1 / len(self.sets))
        for _ in range(ROUNDS):
            precision = {a: math.fsum(found[s] * shows[s, a] for s in parts[a]) for a in parts}
            steps = {
                s: found[s] * math.sqrt(math.fsum(worth[a] * shows[s, a] / precision[a] ** 2 for a in subsets(s)))
                for s in self.sets
            }
            whole = math.fsum(steps.values())
            found = {s: step / whole for s, step in steps.items()}
        raised = {s: max(share, LEAST_SHARE) for s, share in found.items()}
        return {s: share / math.fsum(raised.values()) for s, share in raised.items()}
