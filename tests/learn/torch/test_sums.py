"""Sums on the lattice: rounding is within its bound, examples do not see each other, noise is exact and on the sum."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import sfumato as sf
from sfumato.learn.torch import Banded, Independent, Tree
from sfumato.learn.torch.batches import Data, physical_batches, places_of
from sfumato.learn.torch.bookkeeping import Bookkeeper
from sfumato.learn.torch.clipping import Adaptive, Automatic, Flat, PerLayer
from sfumato.learn.torch.engine import Engine, Shape
from sfumato.learn.torch.parts import Lookups, Outers, Vectors, gamma
from sfumato.learn.torch.sums import ClippedSum, float_error
from tests.learn.torch.models import MODELS, loss_of
from tests.noise.sources import Recorded

BITS = 30


def parts_of(model, x):
    keeper = Bookkeeper(model)
    with keeper.recording(len(x)) as tape:
        return keeper, keeper.gradients(loss_of(model(x)), tape)


def rows(part):
    if isinstance(part, Outers):
        return [part.inputs, part.outputs]
    if isinstance(part, Lookups):
        return [part.outputs]
    return [part.values if isinstance(part, Vectors) else part.each()]


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("tied", "words")])
def test_an_example_does_not_depend_on_the_others_bit_by_bit(name):
    """What the bound on the sensitivity rests on; checked here for the kernels of this machine."""
    make, data = MODELS[name]
    torch.manual_seed(4)
    model = make()
    x, other = (data(16, torch.Generator().manual_seed(seed)) for seed in (1, 2))
    for place in (0, 3, 15):
        other[place] = x[place]
        for first, second in zip(parts_of(model, x)[1], parts_of(model, other)[1], strict=True):
            for a, b in zip(rows(first), rows(second), strict=True):
                assert torch.equal(a[place], b[place])


def test_the_others_stay_in_their_places_if_one_example_leaves():
    """All injections are equally likely, so the places of the others have the same law with and without it."""
    seen = {with_it: set() for with_it in (True, False)}
    for with_it in seen:
        batch = np.array([0, 1, 2] if with_it else [0, 1])
        for i in range(400):
            table = places_of(batch, 2, 4, Recorded(f"injection {i}")).flatten().tolist()
            seen[with_it].add((table.index(0), table.index(1)))
    assert seen[True] == seen[False] == {(a, b) for a in range(4) for b in range(4) if a != b}


def test_more_examples_than_places_get_further_physical_batches():
    table = places_of(np.arange(11), 3, 6, Recorded("more"))
    assert table.shape == (4, 3)
    assert sorted(v for v in table.flatten().tolist() if v >= 0) == list(range(11))
    assert bool((table[:2] >= 0).all())


@settings(max_examples=9)
@given(st.integers(0, 10**6), st.sampled_from([None, torch.float32, torch.float64]), st.sampled_from([1e-20, 1.0, 1e8]))
def test_one_example_moves_the_whole_numbers_by_no_more_than_is_priced(seed, dtype, size):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(9, 30), nn.ReLU(), nn.LayerNorm(30), nn.Linear(30, 3))
    x = torch.randn(100, 9) * size
    keeper, parts = parts_of(model, x)
    error = float_error(parts, 100, BITS, dtype, keeper.names, True)
    sums = []
    for gone in (False, True):
        total = ClippedSum(keeper.parameters, BITS, dtype)
        mask = torch.ones(100, dtype=torch.bool)
        mask[seed % 100] = not gone
        total.add(parts_of(model, x)[1], mask, Flat(0.5))
        sums.append(total.take())
    moved = sum(Fraction(int(a - b)) ** 2 for a, b in zip(*sums, strict=True))
    assert error.certified
    assert moved <= (Fraction(1 + error.growth) * 2**BITS) ** 2
    assert moved >= (Fraction(1, 2) * 2**BITS) ** 2 or size != 1.0  # this example was clipped: the bound is not idle


@pytest.mark.parametrize("terms", [1, 10**5, 10**7, 2 * 10**7])
def test_the_error_of_many_terms_is_never_below_what_is_proved(terms):
    part = Fraction(terms, 2**24)
    assert gamma(terms, torch.float32) >= (part / (1 - part) if part < 1 else float("inf"))


@pytest.mark.parametrize("clipping", [Flat(0.5), Automatic(0.5), PerLayer(0.5), Adaptive(0.5)])
def test_no_kind_of_clipping_lets_an_example_move_the_sum_by_more_than_the_norm(clipping):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2))
    for size in (1e-3, 1.0, 1e3):
        keeper, parts = parts_of(model, torch.randn(1, 5) * size)
        total = ClippedSum(keeper.parameters, BITS, torch.float64)
        total.add(parts, torch.ones(1, dtype=torch.bool), clipping)
        length = int((total.take().astype(object) ** 2).sum()) ** 0.5 / 2**BITS
        assert length <= 1 + 1e-6
        assert length > 0.7 or size == 1e-3


def test_adaptive_clipping_moves_towards_its_quantile():
    clip = Adaptive(1.0, quantile=0.5, rate=0.2)
    assert clip.next(1.0).start < 1.0 < clip.next(0.0).start
    assert clip.next(-5.0).start == clip.next(0.0).start
    assert clip.next(0.5).start == 1.0


def test_noise_is_on_the_sum_and_has_the_deviation_that_is_priced():
    """20,002 coordinates: the empirical deviation is within 2.5 % of the true one but with probability 1e-6."""
    model = nn.Linear(20_000, 1)
    engine = Engine(model, Flat(3.0), Independent(1.5), Shape(4), divisor=7.0, source=Recorded("deviation"))
    engine.release()  # an empty batch
    grads = torch.cat([p.grad.flatten() for p in model.parameters()]).double()
    assert float(grads.std()) == pytest.approx(1.5 * 3.0 / 7.0, rel=0.025)
    multiples = grads * 7.0 / 3.0 * 2**engine.noise.bits
    assert torch.allclose(multiples, multiples.round(), atol=2**8)  # float32 keeps 24 bits of them


def test_torchs_generator_has_no_part_in_noise():
    def released(seed):
        torch.manual_seed(seed)
        model = nn.Linear(3, 1)
        Engine(model, Flat(1.0), Independent(1.0), Shape(2), 1.0, source=Recorded("same")).release()
        return model.weight.grad

    assert torch.equal(released(1), released(2))


@pytest.mark.parametrize("noise", [Tree(1.0, epoch=8), Banded(1.0, band=4)])
def test_prefix_sums_under_correlated_noise_have_less_of_it(noise):
    """After 7 of 8 steps, independent noise has variance 7; the tree has 3 nodes, the band about 2.2."""
    session, total = noise.begin(Recorded("prefix")), np.zeros(4000)
    exact = np.zeros(4000)
    for step in range(7):
        values = np.full(4000, step << noise.bits, np.int64)
        total += session.release(values) / 2.0**noise.bits
        exact += step
    assert (total - exact).var() < 4.0
    assert abs((total - exact).mean()) < 0.2


@pytest.mark.parametrize("noise", [Independent(1e-6), Tree(1e-6, epoch=2), Banded(1e-6, band=1024)])
def test_sums_of_large_batches_do_not_wrap_round(noise):
    """Tiny noise has a fine lattice; 2^20 gradients along one coordinate must stay what they are."""
    large = np.array([1 << 20 + noise.bits, -(1 << 20 + noise.bits)])
    session = noise.begin(Recorded("large"))
    for _ in range(4):
        found = session.release(large)
        assert found[0] > 0 > found[1]


@given(st.integers(0, 40), st.integers(1, 12))
def test_physical_batches_hold_each_drawn_example_once(people, places):
    data = Data((torch.arange(1, people + 1)[:, None].double(), torch.zeros(people)))
    drawn = list(physical_batches(data, sf.Poisson(1.0), Shape(places), 2, Recorded("places")))
    assert sum(batch.last for batch in drawn) == 2
    assert all(len(batch.tensors[0]) == places for batch in drawn)
    for batch in drawn:
        assert bool((batch.tensors[0][~batch.mask] == 0).all())
    found = sorted(int(v) for batch in drawn for v in batch.tensors[0][batch.mask])
    assert found == sorted([*range(1, people + 1)] * 2)


def test_a_unit_counts_once_and_its_rows_share_its_weight():
    units = [7, 3, 7, 7, 3]
    data = Data((torch.arange(5.0)[:, None], torch.zeros(5)), units, 2)
    (batch,) = physical_batches(data, sf.Poisson(1.0), Shape(3, 2), 1, Recorded("units"))
    assert data.people == 2
    assert int(batch.mask.sum()) == 2
    shares = batch.share.view(3, 2).sum(1)
    assert torch.equal(shares.sort().values, torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64))
    assert {float(v) for v in batch.tensors[0][batch.share > 0]} == {0.0, 2.0, 1.0, 4.0}


def test_several_versions_of_the_rows_of_a_unit():
    data = Data((torch.arange(5.0)[:, None], torch.zeros(5)), [7, 3, 7, 7, 3], 2, versions=3)
    (batch,) = physical_batches(data, sf.Poisson(1.0), Shape(3, 6), 1, Recorded("versions"))
    assert data.each == 6
    assert sorted(batch.tensors[0][batch.share > 0].flatten().tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 4, 4, 4]


def test_units_are_in_random_order_so_that_one_that_is_replaced_leaves_the_others_where_they_are():
    """By their names, unit 9 in the place of unit 0 would move all others to earlier places, and to other batches."""
    data = Data((torch.arange(3.0)[:, None], torch.zeros(3)), [0, 1, 2], 1)
    seen = {tuple(data.in_random_order(Recorded(f"order {i}")).table.flatten().tolist()) for i in range(100)}
    assert len(seen) == 6


def test_data_sets_that_are_no_tensors_are_read_row_by_row():
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return np.full(2, float(i), np.float32), i

    (batch,) = physical_batches(Data(Rows()), sf.Poisson(1.0), Shape(5), 1, Recorded("rows"))
    assert sorted(batch.tensors[1][batch.mask].tolist()) == [0, 1, 2]
