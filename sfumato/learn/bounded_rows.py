"""Rows put into a public norm and onto a public lattice: the one place that clips, and sums that are exact integers.

Floating-point sums depend on their order, and their rounding errors on all rows, so the sensitivity of such a sum is
not that of the formula. Here each row becomes integers by itself, within a norm that is checked in integers, and sums
of integers are exact: what one row adds depends on that row alone.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learn.row_wise import row_lengths
from sfumato.learn.tables import Matrix
from sfumato.noise.draw_table import Integers
from sfumato.noise.sampler import LARGEST
from sfumato.rounding import sqrt_up
from sfumato.sensitivity import Relation, Sensitivity

BITS = 20  # rows are multiples of 2⁻²⁰ of the public norm's unit
UNIT = 1 << BITS
GRAM_BITS = 16  # those of Gram matrices, whose sums of products must fit 64 bits for any number of rows
COARSE = 1 << GRAM_BITS
EXACT = 1 << 53  # doubles are exact integers up to here, in whatever order they are added


@dataclass(frozen=True, eq=False)
class UnitWeights:
    """How much each row counts where units own several: all rows of a unit together weigh at most `rows` rows."""

    weights: NDArray[np.float64]
    units: NDArray[np.int64]  # a number for the unit of each row

    @staticmethod
    def of(units: NDArray[np.int64], rows: int) -> "UnitWeights":
        """min(1, rows/m) for the rows of a unit that has m of them: a function of that unit's rows alone."""
        _, place, count = np.unique(units, return_inverse=True, return_counts=True)
        return UnitWeights(np.minimum(1.0, rows / count)[place], place)


@dataclass(frozen=True, eq=False, repr=False)
class BoundedRows:
    """Integer rows with ‖row‖₂ ≤ norm·2²⁰ and every |entry| ≤ box·2²⁰, each a function of one row of data.

    With weights (units of several rows) entries are truncated, so that the rows of a unit have norms that sum to at
    most `rows`·norm·2²⁰. Without, they are rounded to the nearest, after the norm was reduced by what that may add.

    Theorem: rint of a vector of norm at most r·2²⁰ − √d/2 has a norm of at most r·2²⁰ [triangle inequality]
    """

    integers: Integers
    norm: float
    box: float
    rows: int = 1  # so many rows' worth a unit has at most

    @staticmethod
    def of(
        table: Matrix, norm: float, box: float = math.inf, weights: UnitWeights | None = None, rows: int = 1
    ) -> "BoundedRows":
        """Rows scaled down to `norm` where they are longer, and entries cut to ±box; NaN counts as 0."""
        d = max(table.shape[1], 1)
        cut = min(box, 1e100)
        safe = np.clip(np.nan_to_num(table, nan=0.0, posinf=1e100, neginf=-1e100), -cut, cut)
        spare = 0.5 if weights is None else 0.0  # what rounding may add to an entry, in steps
        length = row_lengths(safe)
        most = max(norm - 2 * spare * math.sqrt(d) / UNIT, 0.0) * (1 - 1e-12 - d * 2.0**-52)
        shrink = np.minimum(1.0, most / np.maximum(length, 1e-300))
        if weights is not None:
            shrink = shrink * weights.weights * (1 - 1e-12)
        scaled = safe * (shrink * UNIT)[:, None]
        integers = (np.rint(scaled) if weights is None else np.trunc(scaled)).astype(np.int64)
        box = min(box, norm)
        edge = math.floor(box * UNIT)
        integers = np.clip(integers, -edge, edge)
        if weights is None:  # certain, whatever floats did above; never found to happen
            squares = np.einsum("ij,ij->i", integers, integers)
            integers[squares > math.floor(norm * UNIT) ** 2] = 0
        return BoundedRows(integers, norm, box, rows)

    def sum(self) -> Integers:
        """Σ row, exactly."""
        return add_up(self.integers)

    def sum_by_class(self, labels: NDArray[np.int64], count: int) -> Integers:
        """Σ row of each of `count` classes, exactly: sums in doubles of so few rows that they are whole numbers."""
        given, d = labels.astype(np.int64), self.integers.shape[1]
        given = np.where((given >= 0) & (given < count), given, count)  # one more for rows that are left out
        size = max(1, EXACT // max(math.floor(self.norm * UNIT), 1))
        parts = [np.zeros(count * d, np.int64)]
        for start in range(0, len(given), size):
            chunk = slice(start, start + size)
            sums = [np.bincount(given[chunk], column[chunk], count + 1)[:count] for column in self.integers.T]
            parts.append(np.stack(sums, axis=1).astype(np.int64).reshape(-1))
        return add_up(np.stack(parts)).reshape(count, d)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Of `sum`, in steps: norm for adding or removing a unit, twice that for replacing one."""
        fold = (2 if relation is Relation.ReplaceOne else 1) * self.rows
        d = max(self.integers.shape[1], 1)
        l2 = fold * math.floor(self.norm * UNIT)
        return Sensitivity(l0=d, l2=l2, linf=fold * math.floor(self.box * UNIT), relation=relation)

    def gram(self) -> Integers:
        """Σ row·rowᵀ, exactly, of rows in whole units of 2⁻¹⁶: blocks of them are exact in doubles, and sums do not
        saturate below 2³¹ rows. Entries are shortened to that, which makes no row longer."""
        d, peak = self.integers.shape[1], max(int(self.box * COARSE), 1)
        size = max(1, EXACT // (peak * peak))
        products = [np.zeros(d * d, np.int64)]
        for start in range(0, len(self.integers), size):
            block = self.shortened(slice(start, start + size)).astype(np.float64)
            products.append((block.T @ block).astype(np.int64).reshape(-1))
        return add_up(np.stack(products)).reshape(d, d)

    def shortened(self, chunk: slice) -> Integers:
        """Rows in units of 2⁻¹⁶, rounded towards zero: by whole numbers alone."""
        rows = self.integers[chunk]
        found: Integers = np.sign(rows) * (np.abs(rows) >> (BITS - GRAM_BITS))
        return found

    def gram_sensitivity(self, relation: Relation) -> Sensitivity:
        """Of the upper triangle of `gram`, in steps of 2⁻³², diagonal included.

        ‖zzᵀ‖_F = ‖z‖² ≤ norm², and ‖zzᵀ − wwᵀ‖_F² = ‖z‖⁴ + ‖w‖⁴ − 2(z·w)² ≤ 2·norm⁴. The entries of the triangle are
        the matrix's with the off-diagonal ones counted once, so their norm is no larger. Units of several rows add
        matrices of norms that sum to `rows`·norm² (where weights shorten rows, squares shorten more).

        Theorem: replacing a row moves XᵀX by at most √2·norm² in Frobenius norm [proof above; Wang 2018, App. A]
        """
        d = max(self.integers.shape[1], 1)
        square, edge = -(-(math.floor(self.norm * UNIT) ** 2) // 256), math.floor(self.box * COARSE) ** 2
        replace = relation is Relation.ReplaceOne
        l2 = sqrt_up(2 * (square * self.rows) ** 2) if replace else float(square * self.rows)
        linf = 2 * edge if replace else edge
        count = d * (d + 1) // 2
        return Sensitivity(l0=count, l2=l2, linf=linf * self.rows, relation=relation)


def add_up(integers: Integers) -> Integers:
    """Column sums that do not wrap: saturated at ±(2⁶³ − 1)."""
    high = (integers >> 32).sum(axis=0)
    low = (integers & ((1 << 32) - 1)).sum(axis=0)
    totals = [max(-LARGEST, min(LARGEST, (int(a) << 32) + int(b))) for a, b in zip(high, low, strict=True)]
    return np.array(totals, np.int64)
