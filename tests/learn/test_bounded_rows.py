"""Integer sums of clipped rows move by at most the stated sensitivity, whatever the rows are."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.learn.bounded_rows import COARSE, UNIT, BoundedRows, UnitWeights, add_up
from sfumato.sensitivity import AddRemove, ReplaceOne

ODD = st.one_of(
    st.floats(-2, 2), st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1.0, -1.0, 0.999999999])
)
tables = st.tuples(st.integers(0, 5), st.integers(1, 4)).flatmap(lambda shape: arrays(np.float64, shape, elements=ODD))
norms = st.sampled_from([0.1, 0.5, 1.0, math.sqrt(2), 3.0])


def gram_triangle(rows):
    found = rows.gram()
    return found[np.triu_indices(len(found))]


def within(move, sensitivity):
    size = [int(x) for x in move.reshape(-1)]
    assert math.isqrt(sum(x * x for x in size)) <= sensitivity.l2
    assert sum(map(abs, size)) <= sensitivity.l1
    assert max(map(abs, size), default=0) <= sensitivity.linf


@given(tables, norms, st.sampled_from([0.3, 1.0, math.inf]), st.data())
def test_a_row_moves_sums_and_gram_matrices_within_their_sensitivity(table, norm, box, data):
    """Added, removed and replaced, for odd values too."""
    other = data.draw(arrays(np.float64, (1, table.shape[1]), elements=ODD))
    more = np.vstack([table, other])
    before, after = BoundedRows.of(table, norm, box), BoundedRows.of(more, norm, box)
    within(after.sum() - before.sum(), before.sensitivity(AddRemove))
    within(gram_triangle(after) - gram_triangle(before), before.gram_sensitivity(AddRemove))
    if len(table):
        changed = np.vstack([other, table[1:]])
        replaced = BoundedRows.of(changed, norm, box)
        within(replaced.sum() - before.sum(), before.sensitivity(ReplaceOne))
        within(gram_triangle(replaced) - gram_triangle(before), before.gram_sensitivity(ReplaceOne))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.integers(1, 3), norms, st.data())
def test_a_unit_of_several_rows_moves_sums_within_their_sensitivity(units, rows, norm, data):
    """All rows of unit 0 leave; the others keep their weights."""
    units = np.array(units)
    table = data.draw(arrays(np.float64, (len(units), 2), elements=ODD))

    def bounded(keep):
        return BoundedRows.of(table[keep], norm, 1.0, UnitWeights.of(units[keep], rows), rows)

    with_all, without = bounded(units >= 0), bounded(units != 0)
    within(with_all.sum() - without.sum(), with_all.sensitivity(AddRemove))
    within(gram_triangle(with_all) - gram_triangle(without), with_all.gram_sensitivity(AddRemove))


def test_rows_within_the_norm_keep_their_values():
    table = np.array([[0.25, -0.5], [0.125, 0.75]])
    assert BoundedRows.of(table, 2.0).integers.tolist() == (table * UNIT).astype(int).tolist()


def test_long_rows_keep_their_direction():
    rows = BoundedRows.of(np.array([[30.0, 40.0]]), 1.0).integers[0]
    assert rows == pytest.approx([0.6 * UNIT, 0.8 * UNIT], abs=3)
    assert math.isqrt(int(rows @ rows)) <= UNIT


def test_gram_matrices_are_exact_over_many_blocks():
    table = np.random.default_rng(1).uniform(-1, 1, (20_000, 3))
    rows = BoundedRows.of(table, math.sqrt(3))
    short = rows.shortened(slice(None)).astype(object)
    assert (rows.gram().astype(object) == short.T @ short).all()
    assert rows.gram() / COARSE**2 == pytest.approx(table.T @ table, rel=1e-4, abs=1)


def test_gram_matrices_of_many_rows_do_not_saturate():
    """Five million rows of ones: in units of 2⁻⁴⁰ their sum would not fit 62 bits."""
    rows = BoundedRows(np.full((5_000_000, 1), UNIT), 1.0, 1.0)
    assert rows.gram().tolist() == [[5_000_000 * COARSE**2]]


def test_sums_saturate_instead_of_wrapping():
    huge = np.full((5, 1), 2**62)
    assert add_up(huge).tolist() == [2**63 - 1]
    assert add_up(-huge).tolist() == [-(2**63 - 1)]


def test_weights_of_a_unit_depend_on_that_unit_alone():
    assert UnitWeights.of(np.array([0, 0, 1, 0]), 2).weights == pytest.approx([2 / 3, 2 / 3, 1, 2 / 3])


@given(tables, st.sampled_from([1.0, 40.0]), st.data())
def test_sums_of_classes_are_those_of_their_rows(table, norm, data):
    rows = BoundedRows.of(table, norm)
    labels = np.array(data.draw(st.lists(st.integers(-2, 5), min_size=len(table), max_size=len(table))), np.int64)
    found = rows.sum_by_class(labels, 4)
    assert np.array_equal(found, np.stack([add_up(rows.integers[labels == k]) for k in range(4)]))


def test_sums_of_classes_are_exact_beyond_what_doubles_hold():
    rows = BoundedRows(np.array([[1 << 52], [1], [1 << 52], [1]]), float(1 << 33), math.inf)
    assert rows.sum_by_class(np.zeros(4, np.int64), 1).tolist() == [[(1 << 53) + 2]]
