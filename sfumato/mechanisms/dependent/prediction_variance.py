"""The variance of a linear regression's prediction at a public point, with a bound on its local sensitivities."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpq_mat, fmpz, fmpz_mat
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.dependent.statistic import Exact, Statistic
from sfumato.sensitivity import AddRemove, Relation

BITS = 20  # rows are rounded to multiples of 2⁻²⁰, so that Gram matrices are integer multiples of 2⁻⁴⁰
UNIT = 1 << 2 * BITS
GRID = 1 << 10  # the least eigenvalue is rounded down to multiples of 1/GRID
CHUNK = 1 << 20
MOST_COLUMNS = 64


@dataclass(frozen=True)
class PredictionVariance(Statistic[ArrayLike]):
    """z·(XᵀX + ridge)⁻¹·z at a public point z; a row of X is a person, clipped to norm at most 1.

    With λ the least eigenvalue of A = XᵀX + ridge, removing a row x adds (zᵀA⁻¹x)²/(1 − xᵀA⁻¹x) ≤ |z|²/(λ(λ−1)) if
    λ > 1, adding one subtracts less, and no answer is above |z|²/ridge. λ changes by at most 1 (Weyl), so
    A_k = g(λ − k), g(λ) = |z|²·min(1/(λ(λ−1)), 1/ridge), is a bound as `Statistic` requires; λ is rounded down to
    2⁻¹⁰ by exact arithmetic. Proof. With u = A^{−½}z, w = A^{−½}x: (u·w)²/(1 − |w|²), |u|² ≤ |z|²/λ, |w|² ≤ 1/λ. ∎

    Theorem: removing a row changes the inverse by a rank-one matrix [Sherman & Morrison 1950, and the proof above]
    Theorem: eigenvalues move by at most the norm of what is added [Weyl 1912]
    """

    point: tuple[float, ...]
    ridge: float = 1.0

    def __post_init__(self) -> None:
        try:
            point = tuple(checks.number("point", z, -1.0, 1.0, allowed="numbers from -1 to 1") for z in self.point)
        except TypeError as problem:
            raise InvalidParameter(
                f"point must be a row of numbers.\n  found:  a {type(self.point).__name__}\n  do:     give (0.6, 0.8)"
            ) from problem
        if not 1 <= len(point) <= MOST_COLUMNS or not any(point):
            raise InvalidParameter(
                "point must have from 1 to 64 numbers, not all 0.\n"
                f"  found:  {len(point)} numbers\n  do:     give such as (0.6, 0.8)"
            )
        object.__setattr__(self, "point", point)
        allowed = "a number from 1e-6 to 1e6"
        object.__setattr__(self, "ridge", checks.number("ridge", self.ridge, 1e-6, 1e6, allowed=allowed))

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def size(self) -> Fraction:
        """|z|²."""
        return sum((Fraction(z) ** 2 for z in self.point), Fraction(0))

    @property
    def least(self) -> Fraction:
        """The ridge, rounded down to multiples of 1/UNIT."""
        return Fraction(int(Fraction(self.ridge) * UNIT), UNIT)

    @property
    def everywhere(self) -> Fraction:
        return self.size / self.least

    def gram(self, data: ArrayLike) -> list[list[int]]:
        """XᵀX + ridge in units of 2⁻⁴⁰, exactly, for rows clipped to norm 1 and truncated to multiples of 2⁻²⁰."""
        d = len(self.point)
        rows = np.asarray(data, np.float64)
        rows = rows.reshape(0, d) if rows.size == 0 else rows
        if rows.ndim != 2 or rows.shape[1] != d:
            raise InvalidParameter(
                f"data must be rows of {d} numbers.\n  found:  shape {rows.shape}\n  do:     give a table"
            )
        total = np.zeros((d, d), object)
        for start in range(0, rows.shape[0], CHUNK):
            part = whole_rows(rows[start : start + CHUNK])
            total = total + (part.T @ part).astype(object)
        total[np.diag_indices(d)] += int(self.least * UNIT)
        return [[int(entry) for entry in row] for row in total]

    @property
    def span(self) -> Fraction:
        """No answer is above |z|²/ridge."""
        return self.everywhere

    def value(self, data: ArrayLike) -> Fraction:
        d, matrix = len(self.point), self.gram(data)
        scale = 1 << 60  # finer than the last bit of doubles near 1: turns the point into integers
        z = [int(Fraction(x) * scale) for x in self.point]
        solved = fmpq_mat(fmpz_mat(matrix)).solve(fmpq_mat(fmpz_mat([[x] for x in z])))
        found = sum((int(z[i]) * solved[i, 0] for i in range(d)), start=fmpz(0) * solved[0, 0])
        return Fraction(int(found.p), int(found.q)) * UNIT / scale**2

    def eigenvalue(self, data: ArrayLike) -> Fraction:
        """The least eigenvalue of XᵀX + ridge, rounded down to 2⁻¹⁰; certified by integer elimination."""
        matrix = self.gram(data)
        guess = float(np.linalg.eigvalsh(np.array(matrix, object).astype(np.float64) / UNIT)[0])
        place = max(0, int(guess * GRID))
        while place and not positive_definite(matrix, place):
            place -= 1
        while positive_definite(matrix, place + 1):
            place += 1
        return max(Fraction(place, GRID), Fraction(int(self.least * GRID), GRID))

    def curve(self, data: ArrayLike, most: int) -> tuple[Exact, ...]:
        top = self.eigenvalue(data)
        return tuple(self._bound(top - k) for k in range(most + 1))

    def _bound(self, eigenvalue: Fraction) -> Fraction:
        if eigenvalue <= 1:
            return self.everywhere
        return min(self.size / (eigenvalue * (eigenvalue - 1)), self.everywhere)


def whole_rows(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows clipped to norm 1, in units of 2⁻²⁰, truncated towards 0; NaN counts as 0. Each row by itself."""
    safe = np.clip(np.nan_to_num(rows, nan=0.0, posinf=1e100, neginf=-1e100), -1e100, 1e100)
    norm = np.sqrt(np.sum(np.square(safe), axis=1, keepdims=True))
    short = safe / np.maximum(norm * (1 + 2.0**-30), 1.0)  # the rounding error of the norm is far below 2⁻³⁰
    found: NDArray[np.int64] = np.trunc(short * 2**BITS).astype(np.int64)
    return found


def positive_definite(matrix: list[list[int]], place: int) -> bool:
    """Whether the matrix minus place/GRID is positive definite: Sylvester's criterion, fraction-free elimination."""
    d, shift = len(matrix), place * (UNIT // GRID)
    rows = [[entry - shift * (i == j) for j, entry in enumerate(row)] for i, row in enumerate(matrix)]
    last = 1
    for k in range(d):
        if rows[k][k] <= 0:  # the leading minor of size k + 1
            return False
        for i in range(k + 1, d):
            for j in range(k + 1, d):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // last
        last = rows[k][k]
    return True
