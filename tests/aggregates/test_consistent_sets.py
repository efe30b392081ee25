"""Grouping sets are combined by least squares: they add up, and every cell is nearer to the truth."""

import math
from itertools import combinations

import numpy as np
import pytest

from sfumato.aggregates.consistent_sets import GroupingSets

FAMILIES = {
    "rollup": ((3, 4), ((0, 1), (0,), ())),
    "cube": ((2, 3, 2), tuple(one for many in range(3, -1, -1) for one in combinations(range(3), many))),
    "two margins": ((3, 4), ((0,), (1,))),
    "without the finest": ((3, 4), ((0,), (1,), ())),
    "one value": ((1, 5), ((0, 1), (1,), ())),
}


def drawn(family, variances, seed=3):
    """A table, its sums by each set, and these with noise."""
    draws = np.random.default_rng(seed)
    whole = draws.normal(size=family.sizes) * 50
    sums = {s: whole.sum(axis=tuple(i for i in range(whole.ndim) if i not in s)) for s in family.sets}
    noisy = {s: table + draws.normal(size=table.shape) * math.sqrt(variances[s]) for s, table in sums.items()}
    return whole, noisy


def design(family, variances):
    """One row for each noisy cell: which cells of the whole table it sums, divided by its deviation."""
    rows = []
    for s in family.sets:
        for cell in np.ndindex(*(family.sizes[i] for i in s)):
            mask, place = np.zeros(family.sizes), [slice(None)] * len(family.sizes)
            for i, value in zip(s, cell, strict=True):
                place[i] = value
            mask[tuple(place)] = 1.0
            rows.append(mask.ravel() / math.sqrt(variances[s]))
    return np.array(rows)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_tables_are_those_of_least_squares(name):
    sizes, sets = FAMILIES[name]
    family = GroupingSets(sets, sizes)
    variances = {s: 1.0 + 0.7 * i for i, s in enumerate(sets)}
    _, noisy = drawn(family, variances)
    rows = design(family, variances)
    given = np.concatenate([noisy[s].ravel() / math.sqrt(variances[s]) for s in sets])
    best = np.linalg.lstsq(rows, given, rcond=None)[0].reshape(sizes)
    covariance = np.linalg.pinv(rows.T @ rows)
    first = np.cumsum([0, *(noisy[s].size for s in sets)])
    for place, (s, found) in enumerate(family.combine(noisy, variances).items()):
        axes = tuple(i for i in range(len(sizes)) if i not in s)
        assert np.allclose(found, best.sum(axis=axes))
        mask = rows[first[place]] * math.sqrt(variances[s])
        coefficients = (
            mask
            @ np.linalg.pinv(rows)
            / np.repeat([math.sqrt(variances[one]) for one in sets], [noisy[one].size for one in sets])
        )
        sigma, absolute = family.noise(s, variances)
        assert sigma == pytest.approx(math.sqrt(mask @ covariance @ mask))
        assert absolute == pytest.approx(np.abs(coefficients).sum())


@pytest.mark.parametrize("name", FAMILIES)
def test_finer_tables_add_up_to_coarser_ones(name):
    sizes, sets = FAMILIES[name]
    family = GroupingSets(sets, sizes)
    variances = dict.fromkeys(sets, 4.0)
    found = family.combine(drawn(family, variances)[1], variances)
    for s in sets:
        for other in sets:
            if set(other) < set(s):
                axes = tuple(place for place, i in enumerate(s) if i not in other)
                assert np.allclose(found[s].sum(axis=axes), found[other])


@pytest.mark.parametrize("name", FAMILIES)
def test_no_cell_is_worse_than_by_itself_and_shares_are_better_than_equal_ones(name):
    sizes, sets = FAMILIES[name]
    family, whole = GroupingSets(sets, sizes), tuple(range(len(sizes)))
    squares = {s: float(math.prod(sizes[i] for i in whole if i not in s)) for s in sets}

    def errors(shares):
        variances = {s: squares[s] / shares[s] for s in sets}
        return {s: family.noise(s, variances)[0] ** 2 for s in sets}, variances

    equal = dict.fromkeys(sets, 1 / len(sets))
    chosen = family.shares(squares)
    assert math.fsum(chosen.values()) == pytest.approx(1.0)
    before, alone = errors(equal)
    after, _ = errors(chosen)
    assert all(before[s] <= alone[s] * (1 + 1e-12) for s in sets)
    assert sum(after[s] / squares[s] for s in sets) <= sum(before[s] / squares[s] for s in sets) * (1 + 0.02)


def test_a_cube_of_three_binary_keys_has_half_the_error():
    sizes, sets = (2, 2, 2), tuple(one for many in range(4) for one in combinations(range(3), many))
    family, squares = GroupingSets(sets, sizes), dict.fromkeys(sets, 1.0)
    shares = family.shares(squares)
    found = [family.noise(s, {one: 1 / shares[one] for one in sets})[0] for s in sets]
    assert math.sqrt(len(sets)) / math.sqrt(sum(x * x for x in found) / len(sets)) > 1.85
