"""Sums along rows in which one row's result cannot depend on another row.

Matrix products are not like that: a kernel may add up a row in another order when it stands elsewhere, so that removing
one row changes the last bit of others. Then rows that nobody touched could move by a step of the lattice, and a sum by
more than its sensitivity. Here columns are taken one after the other, by products and sums of single numbers, each of
which IEEE 754 fixes to the last bit.
"""

import numpy as np

from sfumato.learn.tables import Matrix, Vector


def row_sums(rows: Matrix) -> Vector:
    """Σⱼ xⱼ of each row."""
    found = np.zeros(len(rows))
    for column in rows.T:
        found = found + column
    return found


def row_lengths(rows: Matrix) -> Vector:
    """The Euclidean norm of each row."""
    found: Vector = np.sqrt(row_sums(rows * rows))
    return found


def row_products(rows: Matrix, vectors: Matrix) -> Matrix:
    """x·v for each row x, and each row v of `vectors`."""
    found = np.zeros((len(rows), len(vectors)))
    for column, weights in zip(rows.T, vectors.T, strict=True):
        found = found + column[:, None] * weights
    return found
