"""Samplers that price whole epochs: their batches, and their prices against exact mixtures and simulations."""

import math
from itertools import islice, product

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss import FinitePairLoss, GaussianLoss
from tests.noise.sources import Recorded
from tests.sampling.test_batches import agrees

N = 6000


# ---- batches --------------------------------------------------------------------------------------------------------


def test_balls_in_bins_hold_everybody_once_in_an_epoch_each_bin_alike():
    batches = sf.BallsInBins(3).batches(4, source=Recorded("bins"))
    count = np.zeros((4, 3), int)
    for _ in range(N):
        epoch = list(islice(batches, 3))
        assert sorted(np.concatenate(epoch).tolist()) == [0, 1, 2, 3]
        for number, batch in enumerate(epoch):
            count[batch, number] += 1
    assert all(agrees(int(k), N, 1 / 3) for k in count.flat)


def test_shuffled_epochs_have_all_orders_alike():
    batches = sf.ShuffledEpochs(4, 3).batches(source=Recorded("orders"))
    alone = np.zeros(4, int)
    for _ in range(N):
        first, second = islice(batches, 2)
        assert sorted([*first.tolist(), *second.tolist()]) == [0, 1, 2, 3]
        alone[second[0]] += 1
    assert all(agrees(int(k), N, 1 / 4) for k in alone)


def test_fixed_cycles_are_the_same_each_time():
    batches = sf.FixedCycles(5, 2).batches()
    assert [b.tolist() for b in islice(batches, 6)] == [[0, 1], [2, 3], [4]] * 2


@pytest.mark.parametrize("sampler", [sf.BallsInBins(4), sf.Poisson(0.25), sf.sampling.PoissonUnits(0.25)])
def test_a_stream_takes_the_number_of_people(sampler):
    assert next(sampler.stream(0)).tolist() == []
    assert sampler.share == 0.25


@pytest.mark.parametrize("sampler", [sf.FixedCycles(8, 2), sf.ShuffledEpochs(8, 2), sf.WithoutReplacement(8, 2)])
def test_a_public_size_must_fit_the_data(sampler):
    assert len(next(sampler.stream(8))) == 2
    assert sampler.share == 0.25
    with pytest.raises(InvalidParameter, match="n = 8"):
        sampler.stream(7)


# ---- prices ---------------------------------------------------------------------------------------------------------


def exact_epoch(p, q, bins):
    """Both profiles of one epoch of a finite pair, as functions of ε, by all outcomes of all batches."""
    ahead, without = [], []
    for outcome in product(range(len(p)), repeat=bins):
        base = math.prod(q[i] for i in outcome)
        ahead.append(sum(base / q[i] * p[i] for i in outcome) / bins)
        without.append(base)
    a, b = np.array(ahead), np.array(without)
    return lambda eps: (np.maximum(a - math.exp(eps) * b, 0).sum(), np.maximum(b - math.exp(eps) * a, 0).sum())


@pytest.mark.parametrize(("low", "bins"), [(0.05, 5), (0.25, 3), (0.45, 2)])
def test_an_epoch_of_balls_in_bins_costs_no_less_than_its_exact_mixture_and_hardly_more(low, bins):
    p, q = (0.5 - low / 2, 0.2, 0.3 + low / 2), (0.5 + low / 2, 0.2, 0.3 - low / 2)
    loss = sf.BallsInBins(bins).amplify(FinitePairLoss(p, q))
    truth = exact_epoch(p, q, bins)
    for eps in (0.0, 0.01, 0.1, 0.3, 0.8, 1.5):
        for found, exact in zip((loss.remove.delta(eps), loss.add.delta(eps)), truth(eps), strict=True):
            assert found.upper >= exact * (1 - 1e-9)
            assert found.upper <= exact * 1.35 + 3e-3  # few bins are where the bound is least sharp


def test_an_epoch_of_balls_in_bins_agrees_with_a_simulation():
    """σ = 1, 20 bins, ε = ½: 200,000 simulated losses; a bound below the truth would be seen at 4 standard errors."""
    rng = np.random.default_rng(7)
    bins, eps, draws = 20, 0.5, 200_000
    x = rng.standard_normal((draws, bins))
    without = np.log(np.mean(np.exp(x - 0.5), axis=1))
    x[:, 0] += 1
    with_it = np.log(np.mean(np.exp(x - 0.5), axis=1))
    loss = sf.BallsInBins(bins).amplify(GaussianLoss(1.0))
    for found, values in (
        (loss.remove.delta(eps).upper, np.maximum(1 - np.exp(eps - with_it), 0)),
        (loss.add.delta(eps).upper, np.maximum(1 - np.exp(eps + without), 0)),
    ):
        mean, error = values.mean(), values.std() / math.sqrt(draws)
        assert mean - 4 * error <= found <= 1.15 * (mean + 4 * error)


def test_balls_in_bins_cost_far_less_than_fixed_batches():
    """One epoch of 100 batches, σ = 1, δ = 1e-5: 0.642, where Poisson sampling costs 0.718 and fixed batches 4.38."""
    assert sf.BallsInBins(100).amplify(GaussianLoss(1.0)).epsilon(1e-5).upper < 0.65


def test_one_bin_changes_nothing_and_batches_of_an_epoch_are_priced_together():
    loss = GaussianLoss(0.7)
    assert sf.BallsInBins(1).amplify(loss) is loss
    assert sf.BallsInBins(1).repeat(loss, 7) == 7 * loss
    replaced = GaussianLoss(0.7, relation=sf.ReplaceOne)
    for sampler in (sf.FixedCycles(100, 10), sf.ShuffledEpochs(100, 10)):
        assert sampler.amplify(replaced) is replaced
        assert sampler.repeat(replaced, 21) == 3 * replaced
        assert sampler.moves == 2


def test_fixed_batches_cost_what_the_closed_form_says():
    """Ten epochs at σ = 1: ε = 17.857 at δ = 1e-5, where Poisson batches of one per cent cost 1.84."""
    loss = sf.FixedCycles(10_000, 100).repeat(GaussianLoss(1.0, relation=sf.ReplaceOne), 1000)
    assert loss.epsilon(1e-5).upper == pytest.approx(17.857, abs=1e-3)


@pytest.mark.parametrize("sampler", [sf.BallsInBins(4), sf.FixedCycles(4, 2), sf.ShuffledEpochs(4, 2)])
def test_losses_about_other_neighbours_are_refused(sampler):
    other = sf.AddRemove if sampler.relation is sf.ReplaceOne else sf.ReplaceOne
    with pytest.raises(MixedRelations, match="do:"):
        sampler.amplify(GaussianLoss(1.0, relation=other))


@pytest.mark.parametrize(
    "make", [lambda: sf.BallsInBins(0), lambda: sf.FixedCycles(3, 4), lambda: sf.ShuffledEpochs(0, 1)]
)
def test_sizes_that_make_no_sense_are_refused(make):
    with pytest.raises(InvalidParameter, match="do:"):
        make()
