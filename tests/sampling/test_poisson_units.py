"""Units are sampled whole, each with the rate, and that is what is priced."""

from collections import Counter
from itertools import islice, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr, bdtrc

import sfumato as sf
from sfumato.audit.exhibits import NoisySampledSum
from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.sampling.base import SampledRows
from tests.noise.sources import Recorded

PoissonUnits = sf.sampling.PoissonUnits
N = 20_000


@given(st.lists(st.integers(0, 5), max_size=30), st.floats(0, 1), st.integers(0, 99))
def test_all_rows_of_a_unit_are_there_or_none(units, rate, seed):
    for batch in islice(PoissonUnits(rate).batches(np.array(units, int), source=Recorded(f"{seed}")), 3):
        there = {units[row] for row in batch}
        assert batch.tolist() == [row for row, unit in enumerate(units) if unit in there]


def test_units_are_independent_coins_whatever_their_number_of_rows():
    """Recorded bits; with other bits this would fail with probability below 1e-6."""
    units, rate = ["a", "b", "a", "a", "c"], 0.3
    batches = islice(PoissonUnits(rate).batches(units, source=Recorded("units")), N)
    seen = Counter(frozenset(units[row] for row in batch) for batch in batches)
    for coins in product([False, True], repeat=3):
        names = frozenset(name for name, coin in zip("abc", coins, strict=True) if coin)
        p = np.prod([rate if coin else 1 - rate for coin in coins])
        assert bdtr(seen[names], N, p) > 1e-8 and bdtrc(seen[names] - 1, N, p) > 1e-8


def test_with_one_row_for_each_unit_it_is_poisson_sampling():
    one, other = (
        PoissonUnits(0.4).batches(np.arange(50), source=Recorded("same")),
        sf.Poisson(0.4).batches(50, source=Recorded("same")),
    )
    for _ in range(5):
        assert next(one).tolist() == next(other).tolist()
    loss = sf.Laplace(1.0).loss(3)
    assert PoissonUnits(0.4).amplify(loss) == sf.Poisson(0.4).amplify(loss)


def test_the_price_of_a_unit_is_refuted_by_rows_sampled_one_by_one():
    """Ten rows sampled apart: the unit is nearly always there, and the amplified loss would be far too small."""
    unit, nobody = SampledRows((10,), (1,) * 10), SampledRows((0,), ())
    size = sf.Sensitivity.of(10)
    claim = PoissonUnits(0.1).amplify(sf.DiscreteLaplace(0.5).loss(size))
    apart = NoisySampledSum(sf.Poisson(0.1), 0.5, size, Recorded("apart"))
    assert sf.audit.audit(apart, unit, nobody, loss=claim, samples=4000).violated
    whole = NoisySampledSum(PoissonUnits(0.1), 0.5, size, Recorded("whole"))
    rows = SampledRows(([1] * 10,), (1,) * 10)
    assert not sf.audit.audit(whole, rows, SampledRows(([0][:0],), ()), loss=claim, samples=2000).violated


@pytest.mark.parametrize("units", [3, [[1, 2]], [0.5], [None], [object()]])
def test_what_names_no_units_is_refused(units):
    with pytest.raises(InvalidParameter, match="do:"):
        next(PoissonUnits(0.5).batches(units))


def test_losses_about_other_neighbours_are_refused():
    with pytest.raises(MixedRelations, match="do:"):
        PoissonUnits(0.5).amplify(sf.loss.GaussianLoss(1.0, relation=sf.ReplaceOne))
