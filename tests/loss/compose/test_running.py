"""A growing sum says at every step what a sum composed afresh says."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.loss.compose.running import Running
from sfumato.loss.compose.transforms.base import Refused
from sfumato.sensitivity import Relation
from tests.configurations import Random, magnitude

L = sf.loss
seeds = st.integers(0, 10**6)


def agree(running, fresh):
    """Two enclosures of one number overlap."""
    found = running.epsilon()
    assert found.lower <= fresh.upper, running.loss
    assert fresh.lower <= found.upper, running.loss
    return found


def a_loss(r, scale):
    """Symmetric and not, leaky, bounded or not."""
    eps, kind = scale * magnitude(r, 0.2, 2), r.randrange(6)
    if kind == 0:
        return L.PureLoss(eps)
    if kind == 1:
        return L.ApproxLoss(eps, magnitude(r, 1e-12, 1e-8))
    if kind == 2:
        return L.LaplaceLoss(eps)
    if kind == 3:
        return L.GaussianLoss(eps)
    if kind == 4:
        return L.RandomizedResponseLoss(eps, 4)
    return sf.Poisson(magnitude(r, 0.01, 0.5)).amplify(L.GaussianLoss(min(3 * eps, 2.0)))


@settings(max_examples=6)
@given(seed=seeds)
def test_after_every_addition_the_answer_is_that_of_the_sum(seed):
    r = Random(f"running {seed}")
    scale = magnitude(r, 0.02, 0.5)
    tolerance, delta = magnitude(r, 1e-6, 1e-3), magnitude(r, 1e-9, 1e-2)
    running = Running(delta=delta, tolerance=tolerance)
    losses = [L.GaussianLoss(scale), *(a_loss(r, scale) for _ in range(3))]
    total = 0
    for _ in range(8):
        loss, times = r.choice(losses), r.choice([1, 1, 2, 10])
        running.add(loss, times)
        total = total + times * loss
        fresh = total.epsilon(delta, tolerance=tolerance)
        found = agree(running, fresh)
        assert found.gap <= max(tolerance * found.upper, fresh.gap)


@pytest.mark.parametrize(
    "loss",
    [
        L.GaussianLoss(0.1),
        sf.Poisson(0.05).amplify(L.GaussianLoss(1.0)),
        sf.Poisson(0.05).amplify(L.GaussianLoss(1.0)).add,
    ],
    ids=str,
)
def test_a_long_run_of_one_loss(loss):
    """Line after line is outgrown; nothing adds up on the way."""
    running = Running(delta=1e-6, relation=loss.relation)
    for step in range(1, 31):
        found = running.add(loss).epsilon()
        if step in (1, 2, 10, 29, 30):
            fresh = (step * loss).epsilon(1e-6)
            agree(running, fresh)
            assert found.relative_gap <= max(1e-5, fresh.relative_gap)


def test_the_worse_direction_counts():
    """Sampling makes removing worse: one way alone would say less or the same."""
    loss = sf.Poisson(0.1).amplify(L.GaussianLoss(1.5))
    both = Running(delta=1e-6).add(loss, 20).epsilon()
    for way in (loss.remove, loss.add):
        one = Running(delta=1e-6, relation=way.relation).add(way, 20)
        assert agree(one, (20 * way).epsilon(1e-6)).lower <= both.upper


def test_a_sum_is_added_term_by_term():
    running = Running(delta=1e-6).add(2 * L.LaplaceLoss(0.2) + L.GaussianLoss(0.3), 3)
    assert running.counts == {L.LaplaceLoss(0.2): 6, L.GaussianLoss(0.3): 3}
    agree(running, (6 * L.LaplaceLoss(0.2) + 3 * L.GaussianLoss(0.3)).epsilon(1e-6))


def test_a_leak_up_to_delta_and_beyond():
    running = Running(delta=1e-6).add(L.LaplaceLoss(0.1), 20)
    for times in (1, 4, 4, 2):  # 1e-7 each: the last two are too many
        running.add(L.ApproxLoss(0.1, 1e-7), times)
        agree(running, running.loss.epsilon(1e-6))
    assert running.epsilon().upper == math.inf


@pytest.mark.parametrize("loss", [L.DiscreteGaussianLoss(3.0), L.BoundedRangeLoss(0.3)], ids=str)
def test_a_loss_without_a_transform_is_composed_elsewhere(loss):
    running = Running(delta=1e-5, tolerance=1e-3).add(L.LaplaceLoss(0.2), 3)
    running.epsilon()
    running.add(loss)
    agree(running, running.loss.epsilon(1e-5, tolerance=1e-3))
    running.add(L.LaplaceLoss(0.2))
    assert running.loss == 4 * L.LaplaceLoss(0.2) + loss
    agree(running, running.loss.epsilon(1e-5, tolerance=1e-3))


# ---- nothing is lost ------------------------------------------------------------------------------------------------


def coins_on_a_line():
    running = Running(delta=1e-6)
    for eps in (0.5, 0.5617, 0.6234):
        running.add(L.PureLoss(eps))
    running.epsilon()
    return running


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.01), (4.0, 0.2)])
def test_a_loss_that_the_line_cannot_take_is_not_forgotten(mu, rate):
    """The line of three coins is so long that the quadrature of a sampled Gaussian on it is refused."""
    running = coins_on_a_line()
    loss = sf.Poisson(rate).amplify(L.GaussianLoss(mu))
    running.add(loss)
    assert running.counts[loss] == 1
    agree(running, running.loss.epsilon(1e-6))


def test_a_line_that_refuses_is_dropped(monkeypatch):
    running = Running(delta=1e-6).add(L.LaplaceLoss(0.1), 50)
    before = running.epsilon()

    def refuse(part, line):
        raise Refused("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.loss.compose.running.Totals.of", refuse)
        running.add(L.LaplaceLoss(0.3))
    assert agree(running, (50 * L.LaplaceLoss(0.1) + L.LaplaceLoss(0.3)).epsilon(1e-6)).lower > before.upper


@pytest.mark.parametrize(
    "wrong",
    [
        (0.5,),
        (None,),
        ("LaplaceLoss",),
        (L.LaplaceLoss(0.3), -1),
        (L.LaplaceLoss(0.3), 1.5),
        (L.LaplaceLoss(0.3), math.nan),
        (L.LaplaceLoss(0.3, relation=Relation.Replace),),
        (sf.Poisson(0.1).amplify(L.GaussianLoss(1.0)).remove,),
    ],
    ids=str,
)
def test_what_cannot_be_added_leaves_the_sum_as_it_was(wrong):
    running = Running(delta=1e-6).add(L.LaplaceLoss(0.1), 50)
    before = running.epsilon()
    with pytest.raises(SfumatoError):
        running.add(*wrong)
    assert running.loss == 50 * L.LaplaceLoss(0.1)
    assert running.epsilon() == before
    running.add(L.LaplaceLoss(0.2))
    agree(running, (50 * L.LaplaceLoss(0.1) + L.LaplaceLoss(0.2)).epsilon(1e-6))


@pytest.mark.parametrize("delta", [-1e-9, 1.5, math.nan, "small", None])
def test_delta_is_a_probability(delta):
    with pytest.raises(InvalidParameter):
        Running(delta=delta)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1e-3, math.nan])
def test_a_tolerance_is_a_small_number(tolerance):
    with pytest.raises(InvalidParameter):
        Running(delta=1e-6, tolerance=tolerance)


# ---- ends -----------------------------------------------------------------------------------------------------------


def test_nothing_costs_nothing():
    running = Running(delta=0)
    assert running.epsilon().upper == 0
    running.add(L.LaplaceLoss(1.0), 0).add(L.GaussianLoss(0.0)).add(L.PureLoss(0.0), 7)
    assert running.epsilon().upper == 0


@pytest.mark.parametrize("loss", [L.GaussianLoss(1.0), L.LaplaceLoss(1.0), L.ApproxLoss(1.0, 1e-3)], ids=str)
def test_a_growing_sum_at_delta_zero(loss):
    assert Running(delta=0).add(loss).epsilon().upper == loss.epsilon(0).upper


def test_bounded_losses_at_delta_zero_add_up():
    found = Running(delta=0).add(L.LaplaceLoss(0.25), 8).add(L.PureLoss(0.5)).epsilon()
    assert found.lower <= 2.5 <= found.upper <= 2.5 * (1 + 1e-12)


@pytest.mark.parametrize("loss", [L.GaussianLoss(1.0), L.LaplaceLoss(1.0), L.ApproxLoss(1.0, 1.0)], ids=str)
def test_at_delta_one_everything_is_free(loss):
    assert Running(delta=1).add(loss).add(L.PureLoss(0.3)).epsilon().upper == 0


def test_equal_losses_at_once_or_one_by_one():
    at_once, one_by_one = Running(delta=1e-6).add(L.LaplaceLoss(0.2), 15), Running(delta=1e-6)
    for _ in range(15):
        one_by_one.add(L.LaplaceLoss(0.2))
        one_by_one.epsilon()
    agree(at_once, one_by_one.epsilon())
    assert at_once.loss == one_by_one.loss == 15 * L.LaplaceLoss(0.2)


@pytest.mark.parametrize("delta", [1e-300, 5e-324])
def test_the_least_deltas_there_are(delta):
    running = Running(delta=delta).add(L.LaplaceLoss(1.0)).add(L.PureLoss(0.5))
    agree(running, running.loss.epsilon(delta))
    assert running.epsilon().upper <= 1.5 * (1 + 1e-12)


def test_one_that_tells_everything():
    running = Running(delta=1e-3).add(L.LaplaceLoss(1.0))
    running.epsilon()
    assert running.add(L.ApproxLoss(1.0, 1.0)).epsilon().upper == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("loss", [L.LaplaceLoss(0.1), L.ApproxLoss(0.1, 1e-9)], ids=str)
def test_a_run_of_one_bounded_loss(loss):
    """At first the sum is so short that ε is near its top, where slopes are steep and contours know little."""
    running = Running(delta=1e-6)
    for step in range(1, 21):
        found = running.add(loss).epsilon()
        if step in (1, 2, 3, 10, 19, 20):
            fresh = (step * loss).epsilon(1e-6)
            agree(running, fresh)
            assert found.relative_gap <= max(1e-5, fresh.relative_gap)


@pytest.mark.parametrize("order", [1, -1])
def test_losses_too_large_for_a_line(order):
    running = Running(delta=1e-6)
    for loss in [L.PureLoss(1.0), L.GaussianLoss(0.1), L.LaplaceLoss(1e80)][::order]:
        agree(running.add(loss), running.loss.epsilon(1e-6))


def test_a_line_whose_sides_cross_is_not_an_error(monkeypatch):
    """Another engine answers, and the sum keeps all it was given."""

    def crossed(*_):
        raise Refused("the two sides cross")

    running = Running(delta=1e-6).add(L.LaplaceLoss(0.2), 5).add(L.GaussianLoss(0.3))
    monkeypatch.setattr("sfumato.loss.compose.running.bracket", crossed)
    assert running.epsilon() == running.loss.epsilon(1e-6)
