"""One row's numbers do not depend on another row, to the last bit; sums of integers then move by their sensitivity."""

import numpy as np
import pytest

from sfumato.learn.bounded_rows import BoundedRows
from sfumato.learn.k_means import nearest
from sfumato.learn.logistic_regression import probabilities
from sfumato.learn.row_wise import row_lengths, row_products, row_sums

SHAPES = [(1, 1), (7, 3), (64, 8), (101, 17), (1000, 5)]


def functions(d):
    rng = np.random.default_rng(d)
    vectors = rng.normal(size=(4, d))
    return {
        "sums": row_sums,
        "lengths": row_lengths,
        "products": lambda x: row_products(x, vectors),
        "softmax": lambda x: probabilities(row_products(x, vectors)),
        "exp": lambda x: np.exp(row_products(x, vectors)),
        "nearest": lambda x: nearest(x, vectors),
        "bounded": lambda x: BoundedRows.of(x, 1.0).integers,
    }


@pytest.mark.parametrize("name", functions(1))
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_other_rows_do_not_matter(name, n, d):
    """Remove a row, reverse the rows, or take one alone: what is left stays what it was, to the last bit."""
    rows, work = np.random.default_rng(3).normal(size=(n, d)) * 3, functions(d)[name]
    whole = work(rows)
    for out in {0, n // 3, n // 2, n - 1}:
        left = np.delete(rows, out, axis=0)
        assert np.array_equal(work(left), np.delete(whole, out, axis=0))
    assert np.array_equal(work(np.ascontiguousarray(rows[::-1])), whole[::-1])
    assert np.array_equal(work(np.asfortranarray(rows)), whole)
    for i in {0, n // 2, n - 1}:
        assert np.array_equal(work(rows[i : i + 1]), whole[i : i + 1])


def test_they_are_the_usual_sums():
    rng = np.random.default_rng(4)
    rows, vectors = rng.normal(size=(50, 6)), rng.normal(size=(3, 6))
    assert np.allclose(row_products(rows, vectors), rows @ vectors.T)
    assert np.allclose(row_lengths(rows), np.linalg.norm(rows, axis=1))
    assert row_products(rows[:0], vectors).shape == (0, 3) and row_sums(rows[:, :0]).shape == (50,)
