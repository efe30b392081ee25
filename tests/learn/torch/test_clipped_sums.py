"""Clipped sums without per-example gradients are those of a plain loop over examples."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sfumato.learn.torch import products
from sfumato.learn.torch.bookkeeping import Bookkeeper
from sfumato.learn.torch.clipping import Flat
from sfumato.learn.torch.costs import WAYS, Costs, by_kernel, by_other, keeping
from sfumato.learn.torch.parts import Outers, Streamed, Vectors
from sfumato.learn.torch.sums import ClippedSum
from tests.learn.torch.models import MODELS, clipped_sum, each_gradient, loss_of

BITS = 40


def parts_of(model, x):
    keeper = Bookkeeper(model)
    with keeper.recording(len(x)) as tape:
        return keeper, keeper.gradients(loss_of(model(x)), tape)


def summed(model, x, clip, dtype=torch.float64, change=lambda part: part):
    keeper, parts = parts_of(model, x)
    total = ClippedSum(keeper.parameters, BITS, dtype)
    total.add([change(part) for part in parts], torch.ones(len(x), dtype=torch.bool), Flat(clip))
    return (torch.from_numpy(total.take()).double() * clip / 2**BITS).split(total.sizes)


def agree(found, expected, tolerance=1e-4):
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other.flatten(), rtol=0, atol=tolerance)


def real(x):
    return x.double() if x.dtype.is_floating_point else x


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 6), clip=st.sampled_from([0.1, 1.0, 100.0]))
def test_every_layer_agrees_with_a_loop_over_examples(name, seed, count, clip):
    torch.manual_seed(seed)
    make, data = MODELS[name]
    model, x = make(), data(count, torch.Generator().manual_seed(seed))
    expected = clipped_sum(each_gradient(model.double(), real(x)), clip)
    agree(summed(model, real(x), clip), expected, 1e-6 * clip)
    agree(summed(model.float(), x, clip), expected, 1e-4 * clip)  # norms are rounded up in float32, and that is all


@given(st.integers(1, 5), st.integers(1, 7), st.integers(1, 9), st.integers(1, 9), st.integers(0, 10**6))
def test_ghost_norms_and_formed_gradients_agree_for_random_shapes(count, places, d, p, seed):
    g = torch.Generator().manual_seed(seed)
    weight = nn.Parameter(torch.zeros(p, d))
    part = Outers(weight, torch.randn(count, places, d, generator=g), torch.randn(count, places, p, generator=g))
    formed = Vectors(weight, part.each())
    exact = formed.values.double().flatten(1).square().sum(1)
    for way in (part, formed):
        assert bool((way.norm_squared() >= exact * (1 - 1e-12)).all())
        torch.testing.assert_close(way.norm_squared(), exact, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(
            way.weighted_sum(torch.ones(count), torch.float64), formed.values.double().sum(0), rtol=0, atol=1e-5
        )


@pytest.mark.parametrize("name", ["linear with places", "transformer", "LSTM", "attention"])
def test_all_ways_of_the_cost_model_give_the_same_sum(name):
    make, data = MODELS[name]
    torch.manual_seed(1)
    model, x = make(), data(4, torch.Generator().manual_seed(1))

    expected = clipped_sum(each_gradient(model, x), 1.0)
    for way in WAYS:
        for dtype in (None, torch.float32, torch.float64):
            agree(
                summed(model, x, 1.0, dtype, lambda part, way=way: way(part) if isinstance(part, Outers) else part),
                expected,
            )


@pytest.mark.parametrize("name", ["conv 1", "conv 2", "conv 3"])
def test_all_ways_to_form_kernels_give_the_same_sum(name):
    make, data = MODELS[name]
    torch.manual_seed(3)
    model, x = make(), data(5, torch.Generator().manual_seed(2))
    expected = clipped_sum(each_gradient(model, x), 1.0)
    for form in (by_kernel, by_other):
        for way in (partial(form, 40), partial(keeping, form, 40)):
            for dtype in (None, torch.float32):
                agree(
                    summed(
                        model, x, 1.0, dtype, lambda part, way=way: way(part) if isinstance(part, Streamed) else part
                    ),
                    expected,
                )


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 30), st.integers(1, 30), st.booleans(), st.booleans(), st.integers(0, 10**6))
def test_both_kernels_of_products_agree_and_keep_rows_apart(rows, inner, columns, left, right, seed):
    """For all layouts; and a row has the same bits whatever the others are."""
    g = torch.Generator().manual_seed(seed)
    x, other = (
        torch.randn(inner, rows, generator=g).t() if left else torch.randn(rows, inner, generator=g) for _ in range(2)
    )
    weight = torch.randn(inner, columns, generator=g).t() if right else torch.randn(columns, inner, generator=g)
    other[rows // 2] = x[rows // 2]
    exact = x.double() @ weight.double().t()
    for kernel in (products.second, torch.nn.functional.linear):
        found = kernel(x, weight, None)
        torch.testing.assert_close(found.double(), exact, rtol=0, atol=1e-4)
        assert torch.equal(found[rows // 2], kernel(other, weight, None)[rows // 2])


def test_products_choose_a_kernel_by_shape_and_give_the_same(monkeypatch):
    x, weight, bias = torch.randn(3, 5, 6), torch.randn(4, 6), torch.randn(4)
    expected = torch.nn.functional.linear(x, weight, bias), torch.bmm(x, x.transpose(1, 2))
    monkeypatch.setattr(products, "SMALL", 0)
    for chosen in (True, False):
        monkeypatch.setattr(products, "second_is_faster", lambda *shape, chosen=chosen: chosen)
        found = products.linear(x, weight, bias), products.batched(x, x.transpose(1, 2))
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b)


def test_the_cost_model_decides_by_shapes_and_only_for_layers_with_places():
    costs = Costs(torch.float64)
    weight = nn.Parameter(torch.zeros(3, 4))
    one = Outers(weight, torch.ones(2, 1, 4), torch.ones(2, 1, 3))
    assert costs.choose(one) is one
    costs.ways[(2, 6, 4, 3)] = 0
    assert isinstance(costs.choose(Outers(weight, torch.ones(2, 6, 4), torch.ones(2, 6, 3))), Vectors)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
def test_a_gradient_that_is_not_finite_adds_nothing(bad):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 2))
    x = torch.randn(4, 3)
    broken = x.clone()
    broken[1, 0] = bad
    rest = torch.cat([x[:1], x[2:]])
    agree(summed(model, broken, 1.0), summed(model, rest, 1.0))  # the square of 1e30 is infinite in float32


def test_frozen_parameters_are_left_alone():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    model[2].weight.requires_grad_(False)
    x = torch.randn(5, 3)
    agree(summed(model, x, 1.0), clipped_sum(each_gradient(model, x), 1.0))


def test_the_model_is_what_it_was_outside_of_recording():
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    parts_of(model, torch.randn(2, 3))
    assert all("forward" not in vars(module) for module in model.modules())
    loss_of(model(torch.randn(2, 3))).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
