"""Batches have the law that `amplify` prices. Bits are recorded; with other bits a test would fail with p < 1e-6."""

from collections import Counter
from itertools import combinations, islice
from math import comb

import pytest
from scipy.special import bdtr, bdtrc

import sfumato as sf
from sfumato.errors import InvalidParameter
from tests.noise.sources import Recorded

N = 20_000


def agrees(count: int, n: int, p: float) -> bool:
    """May so many of n happen with probability p each? Refused where a tail is below 1e-7."""
    return bdtr(count, n, p) > 1e-7 and bdtrc(count - 1, n, p) > 1e-7


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.75])
def test_poisson_batches_hold_each_subset_as_often_as_independent_coins_do(rate):
    batches = sf.Poisson(rate).batches(3, source=Recorded(f"poisson {rate}"))
    seen = Counter(tuple(batch.tolist()) for batch in islice(batches, N))
    for size in range(4):
        for rows in combinations(range(3), size):
            assert agrees(seen[rows], N, rate**size * (1 - rate) ** (3 - size))


def test_rates_zero_and_one_are_no_coins():
    assert [len(next(sf.Poisson(rate).batches(5))) for rate in (0.0, 1.0)] == [0, 5]
    assert len(next(sf.Poisson(0.5).batches(0))) == 0


@pytest.mark.parametrize(("n", "m"), [(4, 0), (4, 1), (5, 2), (5, 4), (3, 3)])
def test_batches_without_replacement_are_all_subsets_alike(n, m):
    batches = sf.WithoutReplacement(n, m).batches(source=Recorded(f"subsets {n} {m}"))
    seen = Counter(tuple(batch.tolist()) for batch in islice(batches, N))
    assert set(seen) == set(combinations(range(n), m))
    assert len(seen) == 1 or all(agrees(count, N, 1 / comb(n, m)) for count in seen.values())


def test_batches_differ_without_a_source():
    batches = sf.Poisson(0.5).batches(256)
    assert next(batches).tolist() != next(batches).tolist()


@pytest.mark.parametrize("people", [-1, 0.5, "3", None])
def test_what_is_no_number_of_people_is_refused(people):
    with pytest.raises(InvalidParameter, match="do:"):
        next(sf.Poisson(0.5).batches(people))
